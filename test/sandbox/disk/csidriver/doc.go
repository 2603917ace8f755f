// SPDX-License-Identifier: Apache-2.0

// Package csidriver speaks CSI's Identity and Controller services for the disk service, and optionally
// Group Controller, snapshots, clones and expansion. It checks requests and hands them to a Backend, which
// decides and logs. It omits: topology of snapshots, parameters and secrets, imported snapshots,
// modification by attributes classes, and shrinking.
package csidriver
