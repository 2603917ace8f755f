// SPDX-License-Identifier: Apache-2.0

// Package judge finds broken storage rules in the disk service's log. It knows
// the calls and the writes that reached the service and nothing else: no
// Kubernetes object, no controller, no intention. It is pure and deterministic; it only records, and
// what a violation costs is for the scenario to say.
//
// # When a volume is at a node
//
// From the instant a ControllerPublish arrives until a ControllerUnpublish
// returns success. Precisely, a volume is at a node while
//
//   - a ControllerPublish for the pair is open (arrived, not returned), or
//   - one returned success, was applied, or ended in doubt, and no
//     ControllerUnpublish for the pair has returned success since.
//
// In doubt are: a caller that gave up, a service that was killed, and every
// error whose code does not say that the request was turned down before anything
// was done (diskapi.Ambiguous). So a publish that failed with Internal counts as
// there until it is unpublished, whether or not the cloud did anything: its
// caller can't know either. An unpublish that failed, or succeeded without its
// answer arriving, frees nothing.
//
// # When it is staged, or published to a pod
//
// From the arrival of NodeStage until NodeUnstage returns success, except that a
// NodeStage that changed nothing and failed with a code which the kubelet takes
// as final (diskapi.Interrupted) leaves nothing behind. NodePublish likewise,
// target by target. A fault that stages and then lies with a final code makes
// even a correct kubelet break the rules: lie with Unavailable instead.
//
// # Rules
//
//	two-nodes               publish arrives; the volume is at another node; either use is exclusive
//	over-limit              publish of a volume that is not at the node arrives; as many as the slots are
//	unpublish-while-staged  unpublish arrives; staged or published to a pod there. Or: stage arrives during an unpublish
//	stage-before-publish    stage arrives; no publish there returned success since the last unpublish arrived
//	wrong-node              the same, and the volume is published at another node
//	staged-at-two           stage of an exclusive volume arrives; another node, to which it is not attached any more, has it staged or published
//	publish-context         stage or node publish carries another context than the last publish answered
//	publish-before-stage    node publish arrives; no stage returned success since the last unstage arrived
//	unstage-while-published unstage arrives; some target is published
//	two-pods                node publish of a SINGLE_NODE_SINGLE_WRITER volume to a second target
//	delete-while-attached   delete arrives; the volume is at some node
//	fenced-node             a node call arrives from a node that was declared dead
//	let-in-mounted          UnfenceClusterNetwork arrives; a node that it lets in has a volume staged or published that was detached from it, or is at another node
//	written-by-two          a write to an exclusive volume is carried out; another node can write to it, or has written to it since the writer's node has it mounted
//	write-lost              a detach takes effect; the node has writes in memory only. Or: a writer's first write; one with a higher number was flushed before
//	torn-operation          a detach takes effect; the storage is copying or expanding the volume, needs it attached for that, and has no other node to go through
//	leftover                at the end of the run, a volume is at a node, staged or published
//
// An attempt counts although the cloud refused it: a controller must not even
// try. The violation says what came of it.
//
// A node's slots are what its last NodeGetInfo was answered, that is, what the
// cluster could know: a limit that shrank behind its back breaks no rule.
//
// # Declared dead
//
// Fencing a node (the scenario killed the machine) ends what was staged and
// published there, and so permits unpublishing. It does not end the attachment:
// publishing elsewhere before the unpublish returned is two-nodes all the same,
// for the cloud still has the disk there. Calls that were open at a node when it
// died change nothing any more.
//
// # Cut off
//
// A node whose client the storage refuses (FenceClusterNetwork took effect for its address)
// lives, and keeps what it has mounted. While it is refused that is harmless: the volume may
// be detached from it, and staged elsewhere. What it asks for meanwhile is refused, and breaks
// no rule, for its kubelet may not know. To let it in with such a mount is a fault.
//
// # Writes
//
// Every node writes to every volume that is published to a pod there for reading and writing
// (package csinode), and the log has of that what package writes notes. These two rules go by
// what took effect, and not by what a caller can know. A node that has written to a volume can
// write to it
//
//   - until a NodeUnpublish or NodeUnstage that ends its writer takes effect, or its machine
//     is declared dead;
//   - and not while the disk is detached from it, or the storage refuses it;
//   - and not after a write of it was refused, which ends its writer.
//
// A node that can write again, after the disk came back or it was let in, may not, if another
// one has written meanwhile: what its machine has read is old, and it writes over what is new.
//
// A snapshot and a clone have what was flushed when they were begun, and a disk that is made
// from one is judged as if that had been flushed to it.
//
// A write that its pod was told of is in the machine's memory first. It may be lost with the
// machine, and with the storage's refusal. It may not be lost by a detach, or by somebody's
// flush: whoever mounts the volume next finds all that was flushed. That a detach was forced
// without proof is nothing that the log shows: then a scenario has to say that it expects a
// loss.
package judge
