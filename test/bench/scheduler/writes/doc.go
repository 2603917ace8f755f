// SPDX-License-Identifier: Apache-2.0

// Command writes measures what CPU the API server takes for each kind of write
// that a grant is made of, with the watches that a scheduler and a controller
// have on them. It tells whether a change of the CRDs makes writes cheaper.
//
//	reads    the CRDs, from files
//	decides  nothing: it writes, and counts
//	writes   VolumeTickets and VolumeHolds, to an API server in this process
//
// An etcd must be in the PATH, as test/bench/scheduler/etcd builds one.
package main
