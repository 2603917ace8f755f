// SPDX-License-Identifier: Apache-2.0

// Package convert makes the ledger's facts from Kubernetes' and Moorage's objects, and back. It has no
// client, state or clock, and never panics.
//
// It translates migrated in-tree volumes, so that a disk is one volume: except GCE's, whose project is
// unknown. iSCSI and FC stay: kubelets wait for their names in volumesAttached (kubernetes
// pkg/volume/{iscsi,fc}).
package convert
