// SPDX-License-Identifier: Apache-2.0

// Package decide holds the rules of the attacher: which CSI call or API write
// comes next for a volume. It is told what was seen in the API and how each
// call and write ended, and answers with steps. It does no I/O, reads no clock
// and has no goroutines.
//
// The unit of work is a volume: a driver's volume handle, over all its
// VolumeAttachments. What a step is follows from what is known at that moment,
// never from what was done last, so that restarts, retries and lost events are
// harmless. What only this process can know is kept in a Book: for each
// attachment, whether the volume is at that node, is certainly not, or may be.
//
// How much the driver is asked is decided over all volumes: a Limit says how many
// calls it is given at a time, and when it pushes everybody back, the Book tries
// again for all of them together.
//
// Invariants:
//   - An exclusive volume is published at a node only while it is certainly
//     nowhere else, and with one call under way at a time.
//   - The finalizer is on before the first publish, and comes off only after a
//     confirmed unpublish; the one exception is record.mayStay.
//   - A call whose outcome is unknown leaves the volume unknown until another
//     call proves where it is.
//   - An attachment of an exclusive volume that has older transitions than another
//     one of the volume is not published.
package decide
