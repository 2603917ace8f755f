// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Look judges the waiting pods by the changes since the last look. A newly entered pod waits for the next
// look. Without a waiting pod a look costs nothing.
func (w *Requeuer) Look(ctx context.Context) {
	w.mu.Lock()
	if len(w.pods.idle) == 0 {
		w.mu.Unlock()
		return
	}
	now, volumes, nodes := w.changes.Take()
	entries := make([]*waiting, 0, len(w.pods.idle))
	for _, entry := range w.pods.idle {
		if entry.Based && (entry.touched || len(volumes)+len(nodes) > 0) {
			entry.touched = false
			entries = append(entries, entry)
		}
	}
	w.mu.Unlock()

	c := change{now, volumes, nodes, map[ledger.NodeName]rank{}}
	for _, entry := range entries {
		if w.reconsider(entry, c) && !w.config.Gone(entry.pod) {
			w.wake(ctx, entry)
		}
	}
	w.serveLine(ctx, now)
}

const sweepInterval = time.Second

// Sweep takes gone pods off the list. Run calls it now and then.
func (w *Requeuer) Sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, entry := range w.pods.all {
		if w.config.Gone(entry.pod) {
			w.drop(uid)
		}
	}
	if len(w.pods.idle) == 0 {
		w.changes.Take() // no pod needs them
	}
}

// timePasses has the next look judge the pods that wait for a volume at a node fenced by time alone,
// without an event. If every node is Ready it costs a look at each.
func (w *Requeuer) timePasses() {
	s, now := w.config.Facts.Snapshot(), w.config.Now()
	if !someNotReady(s) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, entry := range w.pods.idle {
		if !entry.Based {
			continue
		}
		if entry.asked == nil {
			entry.asked = w.asked(entry.Base, entry)
		}
		if rules.FencedSince(entry.Base, entry.judged, s, now, entry.asked.Request) {
			entry.touched = true
			w.next()
		}
	}
}

func someNotReady(s ledger.Snapshot) bool {
	for n := range s.Nodes() {
		if !n.Exists || n.Ready != ledger.ReadyTrue {
			return true
		}
	}
	return false
}

type change struct {
	after   ledger.Snapshot
	volumes map[ledger.VolumeID]bool
	nodes   map[ledger.NodeName]bool
	lowest  map[ledger.NodeName]rank // by node, once requested
}

type rank struct {
	priority int32
	some     bool
}

func (c change) outranksSome(pod *corev1.Pod, n ledger.NodeName) bool {
	lowest, known := c.lowest[n]
	if !known {
		lowest.priority, lowest.some = rules.LowestPriority(c.after, n)
		c.lowest[n] = lowest
	}
	return lowest.some && mayEvict(pod) && lowest.priority < corev1helpers.PodPriority(pod)
}

func mayEvict(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy == nil || *pod.Spec.PreemptionPolicy != corev1.PreemptNever
}

// reconsider says whether to try a pod at once. It puts it in line for opened nodes, and notes its facts.
func (w *Requeuer) reconsider(entry *waiting, c change) bool {
	w.mu.Lock()
	base, then, now := entry.Base, entry.judged, w.config.Now()
	gated, was := entry.gated, entry.asked
	w.mu.Unlock()
	if was == nil {
		was = w.asked(base, entry)
	}
	is := w.asked(c.after, entry)
	own := ownTouched(was.Request, c.volumes) || ownTouched(is.Request, c.volumes) ||
		rules.FencedSince(base, then, c.after, now, is.Request)
	lifted, opened := admission(was.inTheWay, is.inTheWay, gated), openings{}
	if !lifted {
		opened = w.opened(entry.pod, judgement{base, then, was}, judgement{c.after, now, is}, c, own)
	}
	// If the gate has changed, the pod's condition is no longer true.
	if gated || own && !lifted && !opened.any() {
		before, after := gated || w.config.Gated(entry.pod, base, was.Request), w.config.Gated(entry.pod, c.after, is.Request)
		lifted = lifted || before != after
		gated = gated && after
	}
	w.mu.Lock()
	entry.Base, entry.judged, entry.asked, entry.gated, entry.open = c.after, now, is, gated, entry.open.add(opened)
	if lifted {
		entry.open = openings{} // it is tried anyway
	}
	if lifted || opened.any() {
		entry.woken, entry.sampled, entry.lifted = 0, 0, w.config.Now()
	}
	w.mu.Unlock()
	if own || gated {
		w.config.Waits(entry.pod)
	}
	return lifted
}

func (w *Requeuer) asked(s ledger.Snapshot, entry *waiting) *asked {
	r := rules.PodRequest(s, &entry.fact)
	return &asked{r, codes(w.config.Arbiter.Admissible(s, r))}
}

// admission says whether to retry a pod because of its claims and volumes: they no longer refuse it, or for
// another reason to tell. An unknown PersistentVolume is no reason: claims are often seen as bound a moment
// earlier.
func admission(was, is []ledger.Code, gated bool) bool {
	switch {
	case len(was) == 0:
		return false
	case len(is) == 0:
		return true
	}
	return !gated && !slices.Equal(was, is) && !slices.Contains(is, rules.VolumeMissing)
}

// codes are in the reasons' order; nil: allowed.
func codes(v rules.Verdict) []ledger.Code {
	var all []ledger.Code
	for _, reason := range v.Reasons {
		all = append(all, reason.Code)
	}
	return all
}

type judgement struct {
	ledger.Snapshot
	at time.Time
	*asked
}

// opened says where a refusal has ended, or an eviction would newly help. It judges only the touched nodes
// that are easier now, or all nodes if the pod's volumes or policy were touched. own: a volume of the pod
// was touched, or is at a node fenced by time.
func (w *Requeuer) opened(pod *corev1.Pod, was, is judgement, c change, own bool) openings {
	a, priority := w.config.Arbiter, corev1helpers.PodPriority(pod)
	fitted := func(n ledger.NodeName) bool {
		return !came(was.Snapshot, is.Snapshot, n) && a.Fit(was.Snapshot, was.Request, n, was.at).Allowed()
	}
	fits := func(n ledger.NodeName) bool {
		return a.Fit(is.Snapshot, is.Request, n, is.at).Allowed() && !fitted(n)
	}
	fitsByEviction := func(n ledger.NodeName) bool {
		return c.outranksSome(pod, n) && a.FitsByEviction(is.Snapshot, is.Request, priority, n, is.at) &&
			!fitted(n) && !a.FitsByEviction(was.Snapshot, was.Request, priority, n, was.at)
	}
	if own || policyChanged(was.Snapshot, is.Snapshot, is.Request) {
		for n := range is.Nodes() {
			if fits(n.Name) || fitsByEviction(n.Name) {
				return openings{anywhere: true}
			}
		}
		return openings{}
	}
	var o openings
	for n := range c.nodes {
		if rules.Eased(was.Snapshot, is.Snapshot, is.Request, n) && fits(n) || fitsByEviction(n) {
			o.nodes = append(o.nodes, n)
		}
	}
	return o
}

// came: pods were not tried there before.
func came(before, after ledger.Snapshot, n ledger.NodeName) bool {
	was, is := before.Node(n), after.Node(n)
	return is != nil && (was == nil || is.Exists && !was.Exists)
}

func ownTouched(r rules.Request, volumes map[ledger.VolumeID]bool) bool {
	return slices.ContainsFunc(r.Needs, func(n rules.Need) bool { return volumes[n.Volume] })
}

// A changed policy of a needed driver touches every node.
func policyChanged(before, after ledger.Snapshot, r rules.Request) bool {
	return slices.ContainsFunc(r.Needs, func(n rules.Need) bool {
		was, is := rules.PolicyFor(before, n.Volume.Driver, ""), rules.PolicyFor(after, n.Volume.Driver, "")
		return was.Name != is.Name || was.Version != is.Version
	})
}
