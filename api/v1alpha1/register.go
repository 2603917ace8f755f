// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "moorage.dev"

// Kinds and resources (plural, as in URLs and roles).
const (
	KindVolumeTicket    = "VolumeTicket"
	KindVolumeHold      = "VolumeHold"
	KindAttachPolicy    = "AttachPolicy"
	KindNodeMountReport = "NodeMountReport"

	ResourceVolumeTickets    = "volumetickets"
	ResourceVolumeHolds      = "volumeholds"
	ResourceAttachPolicies   = "attachpolicies"
	ResourceNodeMountReports = "nodemountreports"
)

// SchemeGroupVersion is the group and version that AddToScheme registers.
// It is never assigned to.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource returns the group resource of a plural name, for errors and
// authorization.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the kinds of this package, with the list, get and watch options of their group
// version. It has the signature that scheme builders expect and returns no error of its own. Not safe
// for parallel use of the same scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&VolumeTicket{}, &VolumeTicketList{},
		&VolumeHold{}, &VolumeHoldList{},
		&AttachPolicy{}, &AttachPolicyList{},
		&NodeMountReport{}, &NodeMountReportList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
