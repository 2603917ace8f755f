// SPDX-License-Identifier: Apache-2.0

// Package convert is the only package with both vocabularies: it makes the ledger's facts from
// Kubernetes' and Moorage's objects, and objects from facts. It knows the API's types only, has no
// client, no state and no clock, and never panics on any object.
//
// In-tree volumes that Kubernetes migrates to CSI are translated first, so that both spellings of a
// disk are one volume: all except GCE's, whose project (and zone, inline) the translation does not
// know. iSCSI and FC stay unchanged: their attach does nothing, and their kubelet still waits for their
// name in volumesAttached (kubernetes pkg/volume/{iscsi,fc}).
package convert
