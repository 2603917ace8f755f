// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Objects are what was listed from the API server.
type Objects struct {
	Pods              []*corev1.Pod
	Claims            []*corev1.PersistentVolumeClaim
	PersistentVolumes []*corev1.PersistentVolume
	Nodes             []*corev1.Node
	Classes           []*storagev1.StorageClass
	Drivers           []*storagev1.CSIDriver
	NodeDrivers       []*storagev1.CSINode
	Attachments       []*storagev1.VolumeAttachment
	Tickets           []*v1alpha1.VolumeTicket
	Holds             []*v1alpha1.VolumeHold
	Policies          []*v1alpha1.AttachPolicy
	NodeVolumes       []*v1alpha1.NodeVolumes
	// Leases are what was read of them beside.
	Leases Leases
	// Home is the namespace in which Moorage is installed; see Home. Empty means
	// DefaultHome.
	Home string
	// HoldsSeen is since when each of Holds says what it says, by UID, as far as that is known;
	// see HoldsSeen.
	HoldsSeen map[types.UID]time.Time
}

// Add puts an object into the list of its kind; false for a kind that nothing
// here is computed from.
func (o *Objects) Add(object runtime.Object) bool {
	switch object := object.(type) {
	case *corev1.Pod:
		o.Pods = append(o.Pods, object)
	case *corev1.PersistentVolumeClaim:
		o.Claims = append(o.Claims, object)
	case *corev1.PersistentVolume:
		o.PersistentVolumes = append(o.PersistentVolumes, object)
	case *corev1.Node:
		o.Nodes = append(o.Nodes, object)
	default:
		return o.addStorage(object)
	}
	return true
}

func (o *Objects) addStorage(object runtime.Object) bool {
	switch object := object.(type) {
	case *storagev1.StorageClass:
		o.Classes = append(o.Classes, object)
	case *storagev1.CSIDriver:
		o.Drivers = append(o.Drivers, object)
	case *storagev1.CSINode:
		o.NodeDrivers = append(o.NodeDrivers, object)
	case *storagev1.VolumeAttachment:
		o.Attachments = append(o.Attachments, object)
	case *v1alpha1.VolumeTicket:
		o.Tickets = append(o.Tickets, object)
	case *v1alpha1.VolumeHold:
		o.Holds = append(o.Holds, object)
	case *v1alpha1.AttachPolicy:
		o.Policies = append(o.Policies, object)
	case *v1alpha1.NodeVolumes:
		o.NodeVolumes = append(o.NodeVolumes, object)
	default:
		return false
	}
	return true
}

// Unseen is a kind of object that could not be listed, in full or at all.
type Unseen struct {
	// Resource is the plural with its group, as kubectl auth can-i takes it.
	Resource string `json:"resource"`
	// Namespace is the only one that was listed; empty when none was.
	Namespace string `json:"namespace,omitempty"`
	// Message is the API server's own.
	Message string `json:"message"`
	// Missing says that the cluster does not serve the kind at all.
	Missing bool `json:"missing,omitempty"`
	// Failed says that the API server answered neither: Message is what it said.
	Failed bool `json:"failed,omitempty"`
}

// OwnResources are the kinds that Moorage adds to a cluster, as kubectl auth can-i
// takes them.
func OwnResources() []string {
	var list []string
	for _, plural := range []string{v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies} {
		list = append(list, plural+"."+v1alpha1.GroupName)
	}
	return list
}
