// SPDX-License-Identifier: Apache-2.0

// Package world is the environment of simulator, explorer and scripts: an API server, machines with
// kubelets, disks, and a judge of their real state. It decides nothing: a driver makes one request, call or
// mount at a time, in any order. A World can be cloned. Objects are the ledger's facts; an API server's
// additions are kept beside them.
package world
