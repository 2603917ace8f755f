// SPDX-License-Identifier: Apache-2.0

// Package sim plays Moorage against a hostile cluster, with a seed for the dice.
//
// The rules are real: internal/ledger keeps the facts, internal/rules and controller/ticket decide,
// internal/protocol makes the requests. The simulator replaces everything around them: queues, watches,
// execution, the API server, kubelets, attacher, disks, schedulers, users, and a clock that moves only
// between actions. There is one goroutine and no I/O; a seed always gives the same run.
//
// A run is a list of actions. Each process offers its possible next actions, and the dice choose, so that
// any order of events can happen. Faults are actions too: processes are killed, paused and started;
// requests are lost, answered too late, or carried out long after their caller gave up; watches lag, each
// at its own pace; disks fail, lie and hang; nodes die, lose their network, and come back. Each run has its
// own mix.
//
// Package world judges each write, mount and call as it happens. Then the faults end, everything runs until
// nothing moves, and the run is judged as a whole: each pod runs or is told why it waits, nothing leaks,
// and no work is left undone.
//
// A failure prints its seed, and the actions that it needs: the list is shortened while it still fails.
package sim
