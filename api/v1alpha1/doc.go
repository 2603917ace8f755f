// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of Moorage, group moorage.dev, version v1alpha1:
// VolumeTicket (a request that volumes be at a node), VolumeHold (who holds an
// exclusive volume), AttachPolicy (how volumes of a driver are handled),
// NodeMountReport (what a node itself has staged, published and mounted) and VolumeStatus, the JSON of an annotation on pods.
//
// It holds types, names, defaults and the validation that the API server runs (structural schema and
// CEL, as markers on the fields). It has no behaviour and does no I/O. ValidatingAdmissionPolicies in
// the chart check facts that a custom resource's own rules can't see, such as owner references and
// namespaces: see docs/decisions/0030-ticket-types-by-right.md.
//
// +kubebuilder:object:generate=true
// +groupName=moorage.dev
package v1alpha1
