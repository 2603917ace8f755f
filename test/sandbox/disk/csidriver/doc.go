// SPDX-License-Identifier: Apache-2.0

// Package csidriver speaks the CSI Identity and Controller services for the disk
// service, as the controller part of a driver does.
//
// With the options of operations it also speaks the Group Controller service, and makes snapshots,
// clones, volumes from snapshots, and larger volumes. It leaves out: topology of snapshots, parameters
// and secrets, imported snapshots, modification by attributes classes, and shrinking.
//
// It reads gRPC requests, checks their form, and hands them to a Backend, which
// decides and logs; it writes nothing but the answer.
package csidriver
