// SPDX-License-Identifier: Apache-2.0

package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ metav1.Object = (*brief)(nil)

// Informers often ask for metadata: an ObjectMeta for every question was a tenth of a start's allocations.
func (b *brief) GetNamespace() string { return b.namespace }

func (b *brief) GetName() string { return b.text[:b.uid] }

func (b *brief) GetUID() types.UID { return types.UID(b.text[b.uid:b.version]) }

func (b *brief) GetResourceVersion() string { return b.text[b.version:] }

// To set a missing field does nothing, as metav1.Object requires.
type noMeta struct{}

func (noMeta) GetGenerateName() string                       { return "" }
func (noMeta) GetGeneration() int64                          { return 0 }
func (noMeta) GetSelfLink() string                           { return "" }
func (noMeta) GetCreationTimestamp() metav1.Time             { return metav1.Time{} }
func (noMeta) GetDeletionTimestamp() *metav1.Time            { return nil }
func (noMeta) GetDeletionGracePeriodSeconds() *int64         { return nil }
func (noMeta) GetLabels() map[string]string                  { return nil }
func (noMeta) GetAnnotations() map[string]string             { return nil }
func (noMeta) GetFinalizers() []string                       { return nil }
func (noMeta) GetOwnerReferences() []metav1.OwnerReference   { return nil }
func (noMeta) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }
func (noMeta) SetNamespace(string)                           {}
func (noMeta) SetName(string)                                {}
func (noMeta) SetGenerateName(string)                        {}
func (noMeta) SetUID(types.UID)                              {}
func (noMeta) SetResourceVersion(string)                     {}
func (noMeta) SetGeneration(int64)                           {}
func (noMeta) SetSelfLink(string)                            {}
func (noMeta) SetCreationTimestamp(metav1.Time)              {}
func (noMeta) SetDeletionTimestamp(*metav1.Time)             {}
func (noMeta) SetDeletionGracePeriodSeconds(*int64)          {}
func (noMeta) SetLabels(map[string]string)                   {}
func (noMeta) SetAnnotations(map[string]string)              {}
func (noMeta) SetFinalizers([]string)                        {}
func (noMeta) SetOwnerReferences([]metav1.OwnerReference)    {}
func (noMeta) SetManagedFields([]metav1.ManagedFieldsEntry)  {}
