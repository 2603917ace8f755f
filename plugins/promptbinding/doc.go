// SPDX-License-Identifier: Apache-2.0

// Package promptbinding is the kube-scheduler plugin PromptVolumeBinding: upstream's
// VolumeBinding, which goes on as soon as a pod's claims are bound. Upstream looks for that
// once a second, first after a second (pkg/scheduler/framework/plugins/volumebinding,
// BindPodVolumes), so that a pod whose volume is provisioned on first use is bound up to a
// second after its volume is there. In a profile it replaces VolumeBinding.
//
// Reads: claims, PersistentVolumes and nodes, from the caches that VolumeBinding reads.
// Decides: upstream's VolumeBinding, about everything; this package only ends its wait. Writes:
// nothing by itself.
package promptbinding
