// SPDX-License-Identifier: Apache-2.0

// Package writes is the model of what pods write to the disks. It is pure: Take looks at a
// write and says what of it is to be noted, Apply folds an entry of the log into the state.
//
// A disk holds one number, that of the last write that was flushed to it, as the log of a
// database ends with its last transaction. A writer reads it when it begins, and counts on
// from there. The disk takes what it is given: where two write, each goes on from what it
// knows, and the number on the disk is that of whoever flushed last.
//
// A snapshot and a clone have what was flushed when they were begun, and a disk that is made
// from one begins with that. What is in a machine's memory then is not in them.
//
// # What is noted
//
// A write is a matter of a second, and the log is not to grow by each. Noted is the first
// write of a writer; how far each writer of a volume has come before something about the
// volume changes (Before); and its first write after that. So whoever reads the log knows
// between which changes there were writes, and what was written when a change came.
//
// What is newer than the last note is in memory only: a service that was killed comes back
// with older numbers, and goes on from those that the writers have.
package writes
