// SPDX-License-Identifier: Apache-2.0

// Package operation decides which tickets Moorage makes for drivers' snapshots, clones and expansions,
// if an AttachPolicy says that the volume has to be attached for that, or detached (attachFor,
// detachFor). It decides on all present objects as a whole, and talks to no server: package
// controller/operation does.
package operation
