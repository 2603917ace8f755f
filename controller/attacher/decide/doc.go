// SPDX-License-Identifier: Apache-2.0

// Package decide holds the rules of the attacher: which CSI call or API write comes next for a
// volume. Its inputs are the seen objects and the ends of calls and writes; its outputs are steps.
// It does no I/O, reads no clock and has no goroutines.
//
// The unit of work is a volume: a driver's volume handle, over all its VolumeAttachments. A step
// follows from the present facts, never from the last step: restarts, retries and lost events are
// harmless. A Tracker keeps the facts that only this process can know: for each attachment, whether
// the volume is at that node, is certainly not, or may be.
//
// The load of the driver is decided over all volumes: a Limit bounds its simultaneous calls. When
// it pushes all calls back, the Tracker tries again for all together.
//
// Invariants:
//   - An exclusive volume is published at a node only while it is certainly nowhere else, and with one
//     call under way at a time.
//   - The finalizer is on before the first publish, and comes off only after a confirmed unpublish; the
//     exception is record.mayStay.
//   - A call with an unknown outcome leaves the volume unknown until another call proves where it is.
//   - An attachment of an exclusive volume that has older transitions than another one of the volume is
//     not published.
package decide
