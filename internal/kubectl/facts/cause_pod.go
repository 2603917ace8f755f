// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// cause says what keeps a pod from running, whatever it is: the node first, since
// nothing happens on one that is not ready, then volumes, then what the kubelet
// says. Nil when nothing does.
func (w *World) cause(x *Pod, p *corev1.Pod) *Cause {
	if x.State == PodFinished {
		return finishedCause(p)
	}
	if p.Spec.NodeName == "" {
		return w.unplacedCause(x, p)
	}
	if p.DeletionTimestamp != nil {
		return w.terminatingCause(p)
	}
	if c := w.nodeCause(p); c != nil {
		return c
	}
	if x.State == PodWaitsForVolumes {
		return w.volumeCause(x)
	}
	if c := w.containerCause(p); c != nil {
		return c
	}
	return w.mountCause(p)
}

// finishedCause says why a pod failed; nil when it succeeded.
func finishedCause(p *corev1.Pod) *Cause {
	if p.Status.Phase != corev1.PodFailed {
		return nil
	}
	c := &Cause{Of: OfContainer, Code: "Failed", Message: "it has failed", Do: fmt.Sprintf("Read what it said: kubectl logs -n %s %s", p.Namespace, p.Name)}
	if p.Status.Reason != "" {
		c.Of, c.Code, c.Message = OfNode, p.Status.Reason, fmt.Sprintf("it has failed (%s): %s", p.Status.Reason, shortened(p.Status.Message, "the kubelet ended it"))
		c.Do = whoMakesAnother(p) + "; what is left of it can be deleted"
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			c.Since = t.FinishedAt.Time
			if p.Status.Reason == "" {
				c.Message = fmt.Sprintf("container %s has failed with exit code %d", s.Name, t.ExitCode)
			}
		}
	}
	return c
}

// unplacedCause says why a pod has no node: claims first, which its scheduler
// waits for, then the scheduler itself, then what volumes and nodes say.
func (w *World) unplacedCause(x *Pod, p *corev1.Pod) *Cause {
	if c := w.claimsCause(p); c != nil {
		return c
	}
	if x.Reserved != "" && x.State == PodWaitsForVolumes {
		return w.volumeCause(x)
	}
	for i := range x.Volumes {
		if len(x.Volumes[i].Reasons) > 0 && x.Reserved == "" {
			return w.volumeCause(x)
		}
	}
	scheduling := w.schedulingCause(p)
	if scheduling != nil && scheduling.Of == OfComponent {
		return scheduling
	}
	if x.State == PodWaitsForGrant {
		if c := w.componentCause(&Reason{Code: "NotGranted"}, ""); c != nil {
			return c
		}
		return &Cause{Of: OfVolume, Code: "NotGranted", Since: w.chosenSince(p),
			Message: fmt.Sprintf("%s was chosen for it, and moorage-controller has not decided on its ticket yet", x.Reserved),
			Changes: w.advice["NotGranted"].Changes, Do: w.advice["NotGranted"].Do}
	}
	if c := w.fitCause(x); c != nil {
		return c
	}
	if scheduling != nil {
		return scheduling
	}
	if w.createdFor(p) > schedulerPatience {
		return &Cause{Of: OfScheduling, Code: "NotScheduled", Since: p.CreationTimestamp.Time,
			Message: "its scheduler " + p.Spec.SchedulerName + " has not said why it has no node", Do: fmt.Sprintf("kubectl describe pod -n %s %s: its events may say", p.Namespace, p.Name)}
	}
	return nil
}

// chosenSince is when a node was chosen for a pod, which is when its ticket was made.
func (w *World) chosenSince(p *corev1.Pod) time.Time {
	return w.askedSince(Requester{Namespace: p.Namespace, Name: string(p.UID)})
}

// volumeCause is the first reason of the first volume that keeps a pod waiting.
func (w *World) volumeCause(x *Pod) *Cause {
	waiting := 0
	var first *PodVolume
	for i := range x.Volumes {
		v := &x.Volumes[i]
		if v.SafeToMount || len(v.Reasons) == 0 {
			continue
		}
		waiting++
		if first == nil || transient(first.Reasons[0]) && !transient(v.Reasons[0]) {
			first = v
		}
	}
	if first == nil {
		return nil
	}
	r := first.Reasons[0]
	if r.Code == NotVisible && x.Phase == string(corev1.PodRunning) {
		return nil // it runs: nothing is known to be wrong
	}
	if c := w.componentCause(&r, first.Driver); c != nil {
		return c
	}
	c := &Cause{Of: OfVolume, Code: r.Code, Message: r.Message, Changes: r.Changes, Do: r.Do, Since: r.Since}
	if waiting > 1 {
		c.Message = fmt.Sprintf("%d of %d volumes are not ready, the first: %s", waiting, len(x.Volumes), r.Message)
	}
	return c
}

// fitCause says what the volumes of a pod lack at the nodes that are a choice;
// nil when one of them fits, or none is a choice.
func (w *World) fitCause(x *Pod) *Cause {
	var parts []string
	var first *Reason
	for _, n := range x.Nodes {
		if n.Barred != "" {
			continue
		}
		if n.Fits || len(n.Reasons) == 0 {
			return nil
		}
		if first == nil {
			first = &n.Reasons[0]
		}
		parts = append(parts, fmt.Sprintf("%s: %s", count(len(n.Nodes), "node"), messages(n.Reasons)))
	}
	if first == nil {
		return nil
	}
	message := "no node can take its volumes. " + strings.Join(parts, "; ")
	if barred := barredNodes(x); barred > 0 {
		message += fmt.Sprintf(". %s no choice for other reasons", countVerb(barred, "node"))
	}
	return &Cause{Of: OfVolume, Code: first.Code, Message: message, Changes: first.Changes, Do: first.Do, Since: first.Since}
}

func barredNodes(x *Pod) int {
	n := 0
	for _, group := range x.Nodes {
		if group.Barred != "" {
			n += len(group.Nodes)
		}
	}
	return n
}

func transient(r Reason) bool { return arbiter.Transient(ledger.Code(r.Code)) }
