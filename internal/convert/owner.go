// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The longest, in bytes, that the API server lets a real object have: a name and the group of its
// apiVersion are DNS subdomains, the version and the kind are DNS labels. A UID of Kubernetes' has 36.
const (
	maxOwnerName       = 253
	maxOwnerKind       = 63
	maxOwnerAPIVersion = 253 + len("/") + 63
	maxOwnerUID        = 128
)

// RealOwner says whether an owner can be a real object, by the lengths of its names. The API server
// checks of an ownerReference only that it is not empty: a writer of an object can name an owner with a
// megabyte.
func RealOwner(o *metav1.OwnerReference) bool {
	return len(o.Name) <= maxOwnerName && len(o.Kind) <= maxOwnerKind && len(o.APIVersion) <= maxOwnerAPIVersion && len(o.UID) <= maxOwnerUID
}

// CutOwner cuts an owner's names to real lengths. A longer name stays longer by some bytes: it is still
// no RealOwner, and names no existing object.
func CutOwner(o *metav1.OwnerReference) {
	o.Name, o.Kind, o.APIVersion = beyond(o.Name, maxOwnerName), beyond(o.Kind, maxOwnerKind), beyond(o.APIVersion, maxOwnerAPIVersion)
	o.UID = types.UID(beyond(string(o.UID), maxOwnerUID))
}

// beyond is a text's beginning, one to four bytes more than longest for a longer text.
func beyond(text string, longest int) string {
	if len(text) <= longest+utf8.UTFMax {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:longest+utf8.UTFMax], ""))
}
