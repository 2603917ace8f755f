// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
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

	// GrantTimeout is how long a pod waits for its grant at one node where no
	// AttachPolicy of its volumes says otherwise; up to four times as long while
	// moorage-controller decides on other pods and has said nothing of this one.
	// Default 30s; above 0 and below 15m, where the scheduling framework itself
	// gives up.
	GrantTimeout *metav1.Duration `json:"grantTimeout,omitempty"`

	// OnControllerDown says what becomes of a pod whose ticket moorage-controller
	// has not answered at all within that time, where no AttachPolicy of its
	// volumes says otherwise. Wait, the default, gives the node up and tries
	// again. BindUngranted binds the pod to the node that the scheduler chose by
	// what it knows itself, so that a cluster without a controller still places
	// pods; what another scheduler promised meanwhile may then be one too many,
	// and waits for the attach.
	OnControllerDown v1alpha1.ControllerDownAction `json:"onControllerDown,omitempty"`
}

// VolumeHoldWeights weigh against each other what speaks for a node, each from
// 0 to 1000. Only their ratios matter: the plugin's score is normalised to 0 to
// 100, and the plugin's weight in the profile sets it against other plugins.
// Not all of them may be 0.
type VolumeHoldWeights struct {
	// Held is for the node that has the volume for somebody. Default 100.
	Held *int64 `json:"held,omitempty"`
	// Near is for a node where the volume still is, though nobody uses it there
	// any more. Default 60.
	Near *int64 `json:"near,omitempty"`
	// Balance is for a node with all of the driver's slots free, and falls with
	// them. Default 20.
	Balance *int64 `json:"balance,omitempty"`
}
