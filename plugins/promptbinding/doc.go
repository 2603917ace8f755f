// SPDX-License-Identifier: Apache-2.0

// Package promptbinding is the kube-scheduler plugin PromptVolumeBinding: upstream's VolumeBinding, but a
// pod continues as soon as its claims are bound. Upstream checks that once a second
// (pkg/scheduler/framework/plugins/volumebinding, BindPodVolumes), so that a pod whose volume is
// provisioned on first use is bound up to a second late. In a profile it replaces VolumeBinding.
//
// Reads: claims, PersistentVolumes and nodes, from VolumeBinding's caches. Decides: upstream's
// VolumeBinding decides everything; this package only ends its wait. Writes: nothing by itself.
// plugins/scheduler registers it.
package promptbinding
