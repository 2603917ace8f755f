// SPDX-License-Identifier: Apache-2.0

// Package world is the environment of the simulator, the explorer and the scripts of internal/rules: an API
// server with objects, versions and preconditions, machines with kubelets, containers and mounts, a disk
// service, and a judge of their real state.
//
// It is data. It decides nothing, waits for nothing and draws nothing: a driver makes one request, one call
// or one mount at a time, in any order. A World can be cloned, and two Worlds driven alike are equal.
//
// Objects are the ledger's facts; an API server's additions (versions, finalizers, the log for watchers)
// are kept beside them. The node's status is patched as internal/protocol composes it.
package world
