// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kubeletPatience is for how long a kubelet may say nothing of a pod whose volumes may be
// mounted. It looks at its pods every few seconds, and complains of what it can't mount.
const kubeletPatience = 2 * time.Minute

// silentCause says that a kubelet has neither started a pod nor complained of it, though
// nothing that is seen keeps it. Nil before that has lasted, and where nobody has asked for
// the pod's events.
func (w *World) silentCause(x *Pod, p *corev1.Pod) *Cause {
	since := w.quietSince(x, p)
	if p.Status.Phase != corev1.PodPending || !w.Evidence.Asked[p.UID] || w.Now.Sub(since) < kubeletPatience || !startedAt(p).IsZero() || !w.imagesBegun(p).IsZero() {
		return nil
	}
	if same := w.sameVolume(p); same != nil {
		return same
	}
	what := fmt.Sprintf("every volume is attached at %s and may be mounted", p.Spec.NodeName)
	if x.State == PodNoVolumes {
		what = "no volume of it needs an attachment"
	}
	log := fmt.Sprintf("kubelet's log at %s says what it waits for", p.Spec.NodeName)
	if u := w.Evidence.Unseen; u != nil {
		return &Cause{Of: OfMount, Code: NotVisible, Since: since,
			Message: fmt.Sprintf("%s; what the kubelet reports is not known: %s", what, u.why()),
			Do:      askFor("events") + " -n " + p.Namespace + ". Or the " + log}
	}
	do := "The " + log
	if look := w.lookAt(p); look != "" {
		do = look + ". If it does, the " + log
	}
	return &Cause{Of: OfMount, Code: "KubeletSilent", Since: since, Do: do,
		Message: what + ", and the kubelet has neither started it nor said in an event why not"}
}

// quietSince is since when nothing that is seen has kept a bound pod, and nothing was said of
// it: its binding, its volumes' attachments, its node, or its last event.
func (w *World) quietSince(x *Pod, p *corev1.Pod) time.Time {
	last := p.CreationTimestamp.Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, c := range p.Status.Conditions {
		later(c.LastTransitionTime.Time)
	}
	if n := w.Node(p.Spec.NodeName); n != nil {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				later(c.LastTransitionTime.Time)
			}
		}
	}
	for i := range x.Volumes {
		for _, at := range x.Volumes[i].Nodes {
			va := w.vas[at.Attachment]
			if va == nil || at.Node != p.Spec.NodeName {
				continue
			}
			later(va.CreationTimestamp.Time)
			if written, ok := lastWrite(va, ""); ok {
				later(written.at)
			}
		}
	}
	for _, e := range w.Evidence.eventsOf(p.UID) {
		later(eventTime(&e))
	}
	return last
}

// unseenWith is what could not be read, with the events of what is explained.
func (w *World) unseenWith() []Unseen {
	if w.Evidence.Unseen == nil {
		return w.Unseen
	}
	return append(w.Unseen[:len(w.Unseen):len(w.Unseen)], *w.Evidence.Unseen)
}
