// SPDX-License-Identifier: Apache-2.0

// Package promptbinding is the kube-scheduler plugin PromptVolumeBinding: upstream's VolumeBinding, but a
// pod continues as soon as its claims are bound. Upstream checks once a second
// (pkg/scheduler/framework/plugins/volumebinding, BindPodVolumes). It replaces VolumeBinding in a profile.
// plugins/scheduler registers it.
package promptbinding
