// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The API server's longest values, in bytes: name and group are DNS subdomains, version and kind DNS
// labels. Kubernetes' UIDs have 36.
const (
	maxOwnerName       = 253
	maxOwnerKind       = 63
	maxOwnerAPIVersion = 253 + len("/") + 63
	maxOwnerUID        = 128
)

// RealOwner: the names are short enough for a real object. The API server only checks that an
// ownerReference is not empty: it may have a megabyte.
func RealOwner(o *metav1.OwnerReference) bool {
	return len(o.Name) <= maxOwnerName && len(o.Kind) <= maxOwnerKind && len(o.APIVersion) <= maxOwnerAPIVersion && len(o.UID) <= maxOwnerUID
}

// CutOwner cuts an owner's names. A cut name stays some bytes too long: it is no RealOwner, and names no
// existing object.
func CutOwner(o *metav1.OwnerReference) {
	o.Name, o.Kind, o.APIVersion = beyond(o.Name, maxOwnerName), beyond(o.Kind, maxOwnerKind), beyond(o.APIVersion, maxOwnerAPIVersion)
	o.UID = types.UID(beyond(string(o.UID), maxOwnerUID))
}

// beyond keeps one to four bytes more than longest of a longer text.
func beyond(text string, longest int) string {
	if len(text) <= longest+utf8.UTFMax {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:longest+utf8.UTFMax], ""))
}
