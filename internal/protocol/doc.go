// SPDX-License-Identifier: Apache-2.0

// Package protocol turns decisions into requests to the API server, one at a time, and says what follows
// from each answer. It is pure: it sends nothing, waits for nothing and reads no clock. Everything that
// keeps data safe between a decision and the API server is here: the precondition of each request,
// reads before a write and after it, what an answer proves, and how an answer that does not come is
// outlasted. The controller (internal/write), the simulator and everything else that plays a
// controller drive this one package.
//
// Reads: snapshots of the ledger, and answers. Decides: the next request, the meaning of its answer,
// and whether to decide again. Writes: nothing.
//
// # How to drive it
//
// A driver keeps one Memory for each term of leadership, and carries out Tasks:
//
//   - Do(step) is a step of rules.Plan, and Round and Rule decide on tickets, whose Decided becomes
//     Decide(d), or Interruption(…) for a grant that is taken back; Ending(t) ends a ticket.
//     Memory.TakeOver lists what a new leader does first: call it again and again until it lists
//     nothing, and decide on nothing before. Renew(t) then takes over each ticket in doubt, beside all
//     else.
//   - Call Memory.Next for a new task, and do what the Move says: first the ledger takes in Tell, in
//     its order. Then Send set: send this request, and hand its answer to Memory.Answer, which returns
//     the next Move; Wait set: let that time pass, then call Next; End set: the task is over. Finished:
//     look at its key again when something touches it. Stale: decide anew at once. Failed: decide anew
//     after a pause that grows. Why says more, for people; none of them set: call Next, with a new
//     snapshot.
//   - The snapshots that are handed in hold all earlier tells, and all objects of the answer: a driver
//     takes those in before it calls Answer. Objects that do not exist (NotFound) are not taken in:
//     this package says what that proves.
//   - A task that has begun is carried to its end, or ends with the process: only then has every
//     request been outlasted. A volume has one task at a node at a time, and a node's tickets are
//     decided in one round at a time.
//   - A process has one Memory, with serial methods. Tasks and Requests are values; a driver may keep
//     and copy them, and reads their fields.
//
// A driver decides when and in which order requests are sent, and how they share the wire:
//
//   - PatchNode: gather the Changes that wait for a Node, hand them to Compose with the newest version
//     of the Node that is known, and send one patch. Stale changes, and all changes of an unknown Node,
//     are answered Unfit; the others share the answer of the patch. A Node has one patch under way at a
//     time.
//   - ListPods, ListObjects and GetObject: equal requests that were made before one was sent may share
//     its answer.
//   - Every request has a deadline: the driver's own timeout, the end of its lease, or Request.Until,
//     the earliest of them. A request at its deadline is answered NotSent. The API server gets the
//     timeout as well. Memory.Outlast is that timeout and a margin.
//   - A driver answers a Verb or a Kind that it does not know with an error.
package protocol
