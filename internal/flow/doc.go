// SPDX-License-Identifier: Apache-2.0

// Package flow turns what was decided into requests to the API server, one at a
// time, and says what follows from each answer. It is pure: it sends nothing,
// waits for nothing and reads no clock. Everything that keeps data safe between a
// decision and the API server is here: the precondition of each request, reads
// before a write and after it, what an answer proves, and how an answer that
// does not come is outlasted. The controller (internal/execute), the simulator
// and everything else that plays a controller drive this one package.
//
// Reads: snapshots of the ledger, and answers. Decides: which request is next,
// what its answer proves, and whether to decide anew. Writes: nothing.
//
// # How to drive it
//
// A driver keeps one Memory for each term of leadership, and carries out Tasks:
//
//   - Do(step) is a step of arbiter.Plan, and Round and Rule decide on tickets,
//     whose Decided becomes Decide(d), or Interruption(…) where a grant is taken back;
//     Ending(t) ends a ticket. Memory.TakeOver lists what a new leader
//     does first: call it again and again until it lists nothing, and decide on
//     nothing before. Renew(t) then takes over each ticket in doubt, beside all
//     else.
//   - Call Memory.Next for a new task, and do what the Move says: first the ledger
//     takes in Tell, in its order. Then
//     Send set: send this request, and hand its answer to Memory.Answer, which
//     returns the next Move;
//     Wait set: let that time pass, then call Next;
//     End set: the task is over. Finished: look at its key again when something
//     touches it. Stale: decide anew at once. Failed: decide anew after a pause
//     that grows. Why says more, for people;
//     none of them set: call Next, with a new snapshot.
//   - The snapshots that are handed in hold all that was told, and all objects
//     that the answer showed: a driver takes those in before it calls Answer.
//     Objects that do not exist (NotFound) are not taken in: flow tells what that
//     proves.
//   - A task that has begun is carried to its end, or ends with the process: only
//     then has everything been outlasted that may still have an effect. One volume
//     has one task at a node at a time, and a node's tickets are decided in one
//     round at a time.
//   - One Memory serves all tasks of a process, and its methods are serial. Tasks
//     and Requests are values; a driver may keep and copy them, and reads their
//     fields.
//
// What a driver decides is when and in which order, and how requests share the
// wire:
//
//   - PatchNode: gather the Changes that wait for a Node, hand them to Compose
//     with the newest version of the Node that is known, and send one patch. Those
//     that are stale, and all where no Node is known, are answered Unfit; the
//     others share the answer of the patch. One patch of a Node is under way at a
//     time.
//   - ListPods, ListObjects and GetObject: those that ask for the same, and asked before a
//     request was sent, may share its answer.
//   - Every request has a deadline: the driver's own timeout, the end of its
//     lease, and Request.Until, whichever comes first. One whose deadline has come
//     is answered NotSent. The API server is told the timeout, too.
//     Memory.Outlast is that timeout and a margin.
//   - A Verb or a Kind that a driver does not know is an error, never another one.
package flow
