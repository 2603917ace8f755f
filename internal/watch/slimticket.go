// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
)

// The API server permits a megabyte of owners, and a quarter of annotations.
const (
	maxTicketOwners = 16
	// maxTicketNote limits an annotation, in bytes. For AnnotationRenewed 64 characters of four bytes
	// count; AnnotationLetsGo is a time.
	maxTicketNote = 256
)

// slimTicket keeps the meaning: whether it is an operation's, its renewal, that it lets go, and its owners.
// An owner with an impossibly long name is cut, and many owners stay several.
func slimTicket(t *v1alpha1.VolumeTicket) {
	t.ManagedFields = nil
	t.Labels = only(t.Labels, v1alpha1.LabelManagedBy, v1alpha1.LabelOperation)
	t.Annotations = only(t.Annotations, v1alpha1.AnnotationRenewed, v1alpha1.AnnotationLetsGo)
	for key, value := range t.Annotations {
		if len(value) > maxTicketNote {
			value = strings.ToValidUTF8(value, "")
			t.Annotations[key] = strings.Clone(value[:min(len(value), maxTicketNote)])
		}
	}
	if len(t.OwnerReferences) > maxTicketOwners {
		t.OwnerReferences = slimOwners(t)
	}
	for i := range t.OwnerReferences {
		convert.CutOwner(&t.OwnerReferences[i])
	}
}

// slimOwners keeps the first owners, and the controller.
func slimOwners(t *v1alpha1.VolumeTicket) []metav1.OwnerReference {
	kept := slices.Clone(t.OwnerReferences[:maxTicketOwners])
	controller := slices.IndexFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
	if controller >= maxTicketOwners {
		kept = append(kept, t.OwnerReferences[controller])
	}
	return kept
}

func only(of map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := of[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}
