// SPDX-License-Identifier: Apache-2.0

// Package sim plays Moorage against a hostile cluster, with a seed for dice.
//
// The rules are the real ones: internal/ledger keeps the facts,
// internal/rules and controller/ticket decide, internal/write makes the
// patches and preconditions. What the simulator has instead of the real thing
// is everything around them: queues, watches, execution, the API server,
// kubelets, attacher, disks, schedulers, users, and a clock that moves only
// between actions. There is one goroutine and no I/O; a seed always gives the
// same run.
//
// A run is a list of actions. Each process offers what it could do next, and
// the dice choose: so whatever can happen at all can happen at any time, and
// before or after anything else. Faults are actions like any other: processes
// are killed, paused and started; requests are lost, answered too late, or
// carried out long after their caller has given up; watches lag, each at its
// own pace; disks fail, lie and hang; nodes die, lose their network, and come
// back. Each run has its own mix of them.
//
// Package world judges every write, mount and call as it happens. Then the
// faults end, everything is run until nothing moves any more, and the run is
// judged as a whole: every pod runs or is told what it waits for, nothing
// leaks, and nothing is left to do that nobody does.
//
// A failure prints its seed, and the actions that are needed for it: the list
// is shortened for as long as it still fails.
package sim
