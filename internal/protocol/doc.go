// SPDX-License-Identifier: Apache-2.0

// Package protocol turns decisions into requests to the API server, one at a time, and says what follows
// from each answer. It is pure: it sends nothing, waits for nothing and reads no clock. It has all that
// keeps data safe between a decision and the API server: the precondition of each request, reads before and
// after a write, the proof in an answer, and how an unanswered request is outlasted. The controller
// (internal/write), internal/tickets and the simulator drive it.
//
// Reads: snapshots of the ledger, and answers. Decides: the next request, the meaning of its answer, and
// whether to decide again. Writes: nothing.
//
// # How to drive it
//
// A driver keeps one Memory for each term of leadership, and carries out Tasks:
//
//   - Do(step) carries out a step of rules.Plan. Round and Rule decide on tickets; a Decided becomes
//     Decide(d), or Interruption(…) for a grant that is taken back; Ending(t) ends a ticket.
//     Memory.TakeOver lists a new leader's first tasks: call it again and again until it lists nothing, and
//     decide on nothing before. Renew(t) then takes over each ticket in doubt, beside all else.
//   - Call Memory.Next for a new task, and follow the Move: first the ledger takes in Tell, in its order.
//     Then Send set: send this request, and hand its answer to Memory.Answer, which returns the next Move;
//     Wait set: let that time pass, then call Next; End set: the task is over. Finished: check its key
//     again after the next event about it. Stale: decide anew at once. Failed: decide anew after a growing
//     pause. Why has a message. None of them set: call Next, with a new snapshot.
//   - The snapshots that a driver hands in hold all earlier tells, and all objects of the answer: it takes
//     these in before it calls Answer. It does not take in missing objects (NotFound): this package says
//     what they prove.
//   - A task is carried to its end, or ends with the process: only then has each request been outlasted. A
//     volume has one task at a node at a time, and a node's tickets are decided in one round at a time.
//   - A process has one Memory, with serial methods. Tasks and Requests are values; a driver may keep and
//     copy them, and reads their fields.
//
// A driver decides when and in which order requests are sent, and how they share the wire:
//
//   - PatchNode: gather the Changes that wait for a Node, hand them to Compose with the newest known
//     version of the Node, and send one patch. Stale changes, and all changes of an unknown Node, are
//     answered Unfit; the others share the answer of the patch. A Node has one patch in flight at a time.
//   - ListPods, ListObjects and GetObject: equal requests from before the send may share its answer.
//   - Each request has a deadline: the earliest of the driver's own timeout, the end of its lease, and
//     Request.Until. A request at its deadline is answered NotSent. The API server gets the timeout too.
//     Memory.Outlast is that timeout and a margin.
//   - A driver answers an unknown Kind or Object with an error.
package protocol
