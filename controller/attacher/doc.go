// SPDX-License-Identifier: Apache-2.0

// Package attacher is moorage-attacher: a CSI sidecar that carries VolumeAttachments out against
// the driver beside it. It can take external-attacher's place at any moment and give it back: same
// flags, lock, finalizers, annotation and status.
//
// Reads: VolumeAttachments, PersistentVolumes and CSINodes through informers; Secrets, and objects
// that a write found changed, live; the driver's list of its volumes. Decides: package decide.
// Writes: calls to the driver; the finalizer and node ID of VolumeAttachments, their status; the
// finalizer of PersistentVolumes; its Lease.
//
// All state is behind one mutex. An event, the end of a step or a timer takes it, tells the Tracker,
// asks for the next steps of the touched volumes, and starts these; steps run outside of it. Only
// volumes that wait for the driver's room queue.
package attacher
