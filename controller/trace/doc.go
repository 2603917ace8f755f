// SPDX-License-Identifier: Apache-2.0

// Package trace makes one OpenTelemetry trace of each pod's way from its creation to its
// running, with a span for each stage that its volumes go through. It is off unless an
// endpoint or a file is named.
//
// The controller makes the whole trace by what it sees of pods, tickets, VolumeAttachments
// and nodes, whoever wrote them. So nobody has to hand a context on, nothing is written to
// any object, and the stages of kube-scheduler, kubelets and attachers are in it, too. The
// trace's ID is the pod's UID, so that who has the one finds the other
// (docs/decisions/0046-traces-are-observed.md).
//
// Nothing is decided by it: a Tracer is told, and answers nothing.
package trace
