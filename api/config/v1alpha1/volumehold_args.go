// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupVersion and the kinds that a file may name; it may leave them out.
const (
	GroupVersion       = "config.moorage.dev/v1alpha1"
	KindVolumeHoldArgs = "VolumeHoldArgs"
)

// VolumeHoldArgs are the args of the scheduler plugin VolumeHold in the
// pluginConfig of a KubeSchedulerConfiguration. All fields are optional.
//
// +kubebuilder:object:root=true
type VolumeHoldArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Weights say which of the nodes that fit comes first.
	Weights *VolumeHoldWeights `json:"weights,omitempty"`
}

// VolumeHoldWeights weigh the arguments for a node against each other, each from 0 to 1000. Only their
// ratios matter: the plugin's score is normalised to 0 to 100, and the plugin's weight in the profile
// sets it against other plugins. Not all of them may be 0.
type VolumeHoldWeights struct {
	// Held is for the node that has the volume for another claimant. Default 100.
	Held *int64 `json:"held,omitempty"`
	// Near is for a node where the volume still is, without a user there. Default 60.
	Near *int64 `json:"near,omitempty"`
	// Balance is for a node with all of the driver's slots free, and falls with
	// them. Default 20.
	Balance *int64 `json:"balance,omitempty"`
}
