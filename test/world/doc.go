// SPDX-License-Identifier: Apache-2.0

// Package world is what the simulator, the explorer and the scripts of
// internal/rules play in: an API server with objects, versions and
// preconditions, machines with kubelets, containers and mounts, a disk service,
// and a judge of what really happens to them.
//
// It is data. Nothing in it decides, waits or draws lots: a driver makes one request, one call or one
// mount at a time, in any order. A World can be cloned, and two Worlds driven alike are equal.
//
// Objects are the ledger's facts; what an API server adds to them (versions,
// finalizers, the log that watchers follow) is kept beside. The node's status
// is patched as internal/protocol composes it.
package world
