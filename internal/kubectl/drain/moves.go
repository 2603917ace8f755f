// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

const (
	// retryAfter is when an eviction that was refused is asked for again: as kubectl drain.
	retryAfter = 5 * time.Second
	// nobodyAfter is for how long a claim waits for its next pod, before it counts as one
	// that nobody makes a pod for.
	nobodyAfter = 30 * time.Second
	// awayAtMost is after what time a pod that is not back no longer delays others.
	awayAtMost = 2 * time.Minute
)

// departure is a pod that is to leave the node, from before its eviction until a pod with its
// volumes runs elsewhere.
type departure struct {
	pod *corev1.Pod
	// asking: an eviction is under way.
	asking bool
	// notBefore is when an eviction that was refused may be asked for again; refusal is why
	// the API server refused it.
	notBefore time.Time
	refusal   string
	// stays is why it has no room elsewhere; told is what was said last of why it stays.
	stays, told string
	evicted     time.Time // zero before
	gone        time.Time // when its object was seen gone; zero before
	back        bool      // its next pod runs, or nobody makes one
	runs        bool
	away        time.Duration // from its eviction until its next pod was seen to run
}

// moves is all that a drain knows between two looks at the cluster. Whatever it knows of
// pods that were evicted before it began is in the cluster.
type moves struct {
	node   string
	atOnce int
	pods   map[types.UID]*departure
	say    func(format string, args ...any)
}

func newMoves(node string, atOnce int, pods []*corev1.Pod, say func(string, ...any)) *moves {
	m := &moves{node: node, atOnce: atOnce, pods: map[types.UID]*departure{}, say: say}
	for _, p := range pods {
		m.pods[p.UID] = &departure{pod: p}
	}
	return m
}

// next are the pods to evict now.
func (m *moves) next(w *facts.World) []*departure {
	m.look(w)
	refused := map[types.UID]bool{}
	for uid, d := range m.pods {
		refused[uid] = d.refusal != ""
	}
	now := w.DrainNow(m.node, refused)
	room := m.atOnce - m.underWay(w)
	var list []*departure
	moving := map[types.UID]bool{}
	for _, move := range now.Moves {
		moving[move.Pod.UID] = true
		d := m.pods[move.Pod.UID]
		if d == nil || !d.due(w.Now) {
			continue
		}
		d.stays = ""
		if len(now.Down) > 0 {
			d.stays = now.Down[0].Message
		} else if room > 0 {
			room--
			list = append(list, d)
		}
	}
	for _, s := range now.Stay {
		if p := w.Pod(s.Namespace, s.Name); p != nil && m.pods[p.UID] != nil {
			moving[p.UID] = true
			m.pods[p.UID].stays = "no other node can take its volumes: " + whyNot(s.Nodes)
		}
	}
	for _, d := range m.pods { // no volume of theirs is tied to a node
		if !moving[d.pod.UID] && d.due(w.Now) {
			list = append(list, d)
		}
	}
	m.tellWhoStays()
	slices.SortFunc(list, func(a, b *departure) int { return strings.Compare(a.name(), b.name()) })
	return list
}

// due says whether the pod's eviction may be asked for.
func (d *departure) due(now time.Time) bool {
	return d.gone.IsZero() && d.evicted.IsZero() && !d.asking && d.pod.DeletionTimestamp == nil && !now.Before(d.notBefore)
}

func (d *departure) name() string { return d.pod.Namespace + "/" + d.pod.Name }

// look takes in which pods are gone from the node, and which run elsewhere.
func (m *moves) look(w *facts.World) {
	for _, d := range m.sorted() {
		if d.back {
			continue
		}
		if p := w.Pod(d.pod.Namespace, d.pod.Name); p != nil && p.UID == d.pod.UID {
			d.pod = p
			continue
		}
		if d.gone.IsZero() {
			d.gone = w.Now
			d.evicted = cmp.Or(d.evicted, w.Now)
		}
		next := w.NextOf(d.pod, d.evicted)
		switch {
		case next != nil && next.Status.Phase == corev1.PodRunning:
			d.back, d.runs, d.away = true, true, w.Now.Sub(d.evicted)
			m.say("%s %s runs at %s, %s after it was evicted", m.count(), nameOf(next), next.Spec.NodeName, seconds(d.away))
		case next == nil && (!d.hasClaims() || w.Now.Sub(d.gone) > nobodyAfter):
			d.back = true
			m.say("%s %s is gone", m.count(), d.name())
		}
	}
}

func (d *departure) hasClaims() bool {
	return slices.ContainsFunc(d.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// underWay is how many pods with volumes are between two nodes. One that is away for long is
// not counted: what keeps it is not the others.
func (m *moves) underWay(w *facts.World) int {
	n := 0
	for _, d := range m.pods {
		moving := d.asking || !d.evicted.IsZero() || d.pod.DeletionTimestamp != nil
		late := !d.evicted.IsZero() && w.Now.Sub(d.evicted) > awayAtMost
		if moving && !d.back && !late && d.hasClaims() {
			n++
		}
	}
	return n
}

// answered takes in what the API server said to an eviction. An empty refusal is consent.
func (m *moves) answered(d *departure, refusal string, now time.Time) {
	d.asking = false
	if refusal == "" {
		d.evicted, d.refusal, d.told = now, "", ""
		m.say("%s %s is evicted", m.count(), d.name())
		return
	}
	d.refusal, d.notBefore = refusal, now.Add(retryAfter)
}

// tellWhoStays says why pods stay for now, each reason once.
func (m *moves) tellWhoStays() {
	for _, d := range m.sorted() {
		why := cmp.Or(d.stays, d.refusal)
		if d.gone.IsZero() && d.evicted.IsZero() && why != d.told {
			d.told = why
			if why != "" {
				m.say("%s %s stays for now: %s", m.count(), d.name(), why)
			}
		}
	}
}

// left says whether every pod has left the node, and its volumes are unmounted there.
func (m *moves) left(w *facts.World) bool {
	var pods []*corev1.Pod
	for _, d := range m.pods {
		if d.gone.IsZero() {
			return false
		}
		pods = append(pods, d.pod)
	}
	return len(w.InUseBy(m.node, pods)) == 0
}

// summary is what the drain has done, in a sentence.
func (m *moves) summary() string {
	var away []time.Duration
	open := 0
	for _, d := range m.pods {
		switch {
		case d.runs:
			away = append(away, d.away)
		case !d.back:
			open++
		}
	}
	text := fmt.Sprintf("node %s is drained: %s left it", m.node, facts.Count(len(m.pods), "pod"))
	if len(away) > 0 {
		text += fmt.Sprintf("; %d run elsewhere, each away for at most %s", len(away), seconds(slices.Max(away)))
	}
	if open > 0 {
		text += fmt.Sprintf("; %s not running yet: kubectl moorage top", facts.CountVerb(open, "pod"))
	}
	return text
}

// remaining are the pods that have not left, with why, or that only volumes have not.
func (m *moves) remaining() string {
	var list []string
	for _, d := range m.sorted() {
		if d.gone.IsZero() {
			list = append(list, strings.TrimSuffix(d.name()+": "+cmp.Or(d.stays, d.refusal, "it is being evicted"), "."))
		}
	}
	if len(list) == 0 {
		return "volumes that its kubelet has not reported unmounted: kubectl moorage explain node " + m.node
	}
	return strings.Join(list, "; ")
}

func (m *moves) sorted() []*departure {
	return slices.SortedFunc(maps.Values(m.pods), func(a, b *departure) int { return strings.Compare(a.name(), b.name()) })
}

// count is how many of the pods have left and, as far as they are made again, run elsewhere.
func (m *moves) count() string {
	done := 0
	for _, d := range m.pods {
		if d.back {
			done++
		}
	}
	return fmt.Sprintf("[%d/%d]", done, len(m.pods))
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// seconds rounds a time for people.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// whyNot is why no node has room, shortly: each reason once.
func whyNot(verdicts []facts.NodesVerdict) string {
	var list []string
	for _, v := range verdicts {
		why := v.Barred
		for _, r := range v.Reasons {
			why = strings.TrimPrefix(why+", "+r.Code, ", ")
		}
		list = append(list, fmt.Sprintf("%s (%s)", strings.Join(v.Nodes, ", "), why))
	}
	return strings.Join(list, "; ")
}
