// SPDX-License-Identifier: Apache-2.0

// Package operation decides which tickets Moorage makes so that drivers can carry out what
// they are asked for: snapshots, clones and expansions, where an AttachPolicy says that the
// volume has to be attached for that, or detached (attachFor, detachFor). It reads objects as
// they are, decides on them as a whole, and talks to no server: package controller/operation
// does.
package operation
