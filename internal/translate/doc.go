// SPDX-License-Identifier: Apache-2.0

// Package translate is the one place that knows both vocabularies: it makes
// the ledger's facts of Kubernetes objects and of Moorage's own, and objects
// of facts. It knows the API's types only, has no client, no state and no
// clock, and never panics, whatever an object holds.
//
// In-tree volumes that Kubernetes migrates to CSI are translated first, so
// that both spellings of a disk are one volume: all but GCE's, whose project (and
// zone, inline) the translation does not know. iSCSI and FC stay as they are: their attach does nothing, and their kubelet still waits for their
// name in volumesAttached (kubernetes pkg/volume/{iscsi,fc}).
package translate
