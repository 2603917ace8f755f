// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

const (
	// retryAfter is when an eviction that was refused is asked for again: as kubectl drain. It
	// is also for how long one that is not answered keeps its place among those at once.
	retryAfter = 5 * time.Second
	// seenAfter is after what time a pod whose eviction was agreed to should be seen to end.
	seenAfter = 15 * time.Second
	// nobodyAfter is for how long a claim waits for its next pod, before it counts as one
	// that nobody makes a pod for.
	nobodyAfter = 30 * time.Second
	// awayAtMost is after what time a pod that does not end, or is not back, no longer delays
	// others.
	awayAtMost = 2 * time.Minute
)

// departure is a pod that is to leave the node, and what this run has asked for and seen of
// it, from before its eviction until a pod with its volumes runs elsewhere.
type departure struct {
	pod *corev1.Pod
	// asking: an eviction is under way, since asked.
	asking bool
	asked  time.Time
	// notBefore is when an eviction that was refused may be asked for again; refusal is why
	// it was.
	notBefore time.Time
	refusal   refusal
	// agreed is when the API server agreed; ifNot is what is wrong if the pod does not end.
	agreed time.Time
	ifNot  string
	// stays is why it has no room elsewhere; told is what was said last of why it stays, at
	// toldAt.
	stays, told string
	toldAt      time.Time
	// notice says which tickets get time to let go of its volumes before its next pod has them.
	notice  string
	leaving time.Time // when it was seen to end; zero before
	gone    time.Time // when its object was seen gone; zero before
	back    bool      // its next pod runs, or nobody makes one
	runs    bool
	away    time.Duration // from its eviction until its next pod was seen to run
	waits   string        // what its next pod waits for
}

// refusal is why an eviction was refused; for good where asking again is of no use.
type refusal struct {
	why  string
	good bool
}

// moves is all that a drain knows between two looks at the cluster: what is to become of the
// pods follows from the cluster and from what it has asked for.
type moves struct {
	task
	pods map[types.UID]*departure
	// choice is the last one; there are the volumes that may be mounted at the node.
	choice choice
	there  []facts.VolumeThere
	// names are those of the pods that stay on purpose.
	names map[types.UID]string
	// looked says that the cluster was looked at.
	looked bool
	// stopped is why nothing more may be evicted; nil: it may.
	stopped error
	say     func(format string, args ...any)
	// said is what was said last of what the end waits for.
	said string
}

func newMoves(t task, say func(string, ...any)) *moves {
	return &moves{task: t, pods: map[types.UID]*departure{}, say: say}
}

// next are the pods to evict, as the cluster is.
func (m *moves) next(w *facts.World, now time.Time) []*departure {
	if m.look(w, now); m.stopped != nil {
		return nil
	}
	var due []*departure
	for _, d := range m.sorted() {
		d.stays = ""
		if d.due(now) {
			due = append(due, d)
		}
	}
	if len(due) == 0 {
		m.tellWhoStays(now)
		return nil
	}
	placed, list := w.DrainNow(m.ask(w)), []*departure(nil)
	waits := map[types.UID]bool{}
	room := m.atOnce - m.underWay(now)
	for _, move := range placed.Moves {
		waits[move.Pod.UID] = true
		d := m.pods[move.Pod.UID]
		switch {
		case !d.due(now):
		case len(placed.Down) > 0:
			d.stays = placed.Down[0].Message
		case room > 0:
			room--
			d.notice = move.Notice
			list = append(list, d)
		}
	}
	for _, s := range placed.Stay {
		waits[s.Pod.UID] = true
		m.pods[s.Pod.UID].stays = cmp.Or(s.Why, "no other node can take its volumes: "+whyNot(m.node, s.Nodes, placed.KeptFor))
	}
	for _, d := range due { // nobody looks for room for them
		if !waits[d.pod.UID] {
			list = append(list, d)
		}
	}
	m.tellWhoStays(now)
	slices.SortFunc(list, func(a, b *departure) int { return strings.Compare(a.name(), b.name()) })
	return list
}

// ask is what decides about room beside the cluster.
func (m *moves) ask(w *facts.World) facts.DrainAsk {
	ask := facts.DrainAsk{Node: m.node, Leave: map[types.UID]bool{}, Last: map[types.UID]bool{}}
	for uid, d := range m.pods {
		switch {
		case d.gone.IsZero() && m.needsNoRoom(w, d.pod): // it is not looked at
		case d.gone.IsZero():
			ask.Leave[uid], ask.Last[uid] = true, d.refusal.why != ""
		case !d.back && d.waits == notMade && facts.MadeAgain(d.pod):
			ask.Gone = append(ask.Gone, d.pod)
		}
	}
	return ask
}

// notMade is what is said of a pod whose next one is not there yet.
const notMade = "not made again yet"

// due says whether the pod's eviction may be asked for.
func (d *departure) due(now time.Time) bool {
	return d.leaving.IsZero() && d.agreed.IsZero() && !d.asking && !now.Before(d.notBefore)
}

func (d *departure) name() string { return nameOf(d.pod) }

// look takes in the cluster as it is.
func (m *moves) look(w *facts.World, now time.Time) {
	if m.stopped = m.mayGoOn(w); m.stopped != nil {
		return
	}
	m.choice, m.there, m.looked = m.choose(w), w.VolumesThere(m.node), true
	m.names = map[types.UID]string{}
	for uid := range m.choice.keep {
		m.names[uid] = nameOf(w.ByUID(uid))
	}
	chosen := map[types.UID]bool{}
	for _, p := range m.choice.leave {
		if chosen[p.UID] = true; m.pods[p.UID] == nil {
			m.pods[p.UID] = &departure{}
		}
		m.pods[p.UID].pod = p
	}
	for _, d := range m.sorted() {
		switch {
		case chosen[d.pod.UID]:
			m.seeThere(d, now)
		case w.ByUID(d.pod.UID) != nil:
			delete(m.pods, d.pod.UID) // it is not to leave any more
		case !d.back:
			m.seeGone(d, w, now)
		}
	}
}

// mayGoOn is nil while the node is the one that was asked for, ready and cordoned.
func (m *moves) mayGoOn(w *facts.World) error {
	n := w.Node(m.node)
	switch {
	case n == nil || n.UID != m.uid:
		return fmt.Errorf("the Node %s was deleted in the middle of the drain: nothing says whether the volumes of its pods are unmounted at the machine. Make sure that it is off before they are used elsewhere", m.node)
	case !facts.Ready(n):
		return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf("node %s is not ready any more, and is not drained: nothing more is evicted. What to do: kubectl moorage explain node %s", m.node, m.node)}
	case !n.Spec.Unschedulable:
		return fmt.Errorf("somebody has uncordoned node %s in the middle of the drain: nothing more is evicted, and it is not drained", m.node)
	}
	return nil
}

// seeThere takes in a pod that is still at the node.
func (m *moves) seeThere(d *departure, now time.Time) {
	d.gone = time.Time{}
	switch {
	case d.pod.DeletionTimestamp != nil && d.leaving.IsZero():
		d.leaving, d.refusal = now, refusal{}
		m.sayEvicted(d)
	case d.pod.DeletionTimestamp == nil && !d.agreed.IsZero() && now.Sub(d.agreed) > seenAfter:
		d.agreed, d.notBefore, d.refusal = time.Time{}, now, refusal{why: d.ifNot}
	}
}

// sayEvicted says that a pod leaves, and which tickets its next one waits for.
func (m *moves) sayEvicted(d *departure) {
	text := "is evicted"
	if d.notice != "" {
		text += "; " + d.notice
	}
	m.say("%s %s %s", m.count(), d.name(), text)
}

// seeGone takes in a pod whose object is gone, and whether another one took its place.
func (m *moves) seeGone(d *departure, w *facts.World, now time.Time) {
	if d.leaving.IsZero() {
		d.leaving = now
		m.sayEvicted(d)
	}
	if d.gone.IsZero() {
		d.gone = now
	}
	since := d.leaving
	if !d.agreed.IsZero() && d.agreed.Before(since) {
		since = d.agreed
	}
	next := w.NextOf(d.pod, since)
	switch {
	case next == nil && (!d.hasClaims() || !facts.MadeAgain(d.pod) || now.Sub(d.gone) > nobodyAfter):
		d.back = true
		m.say("%s %s is gone", m.count(), d.name())
	case next == nil:
		d.waits = notMade
	case next.Status.Phase != corev1.PodRunning:
		d.waits = facts.WaitsFor(next)
	case next.Spec.NodeName == m.node:
		d.waits = "back at " + m.node
	default:
		d.back, d.runs, d.away = true, true, now.Sub(since)
		m.say("%s %s runs at %s, %s after it was evicted", m.count(), nameOf(next), next.Spec.NodeName, seconds(d.away))
	}
}

func (d *departure) hasClaims() bool {
	return slices.ContainsFunc(d.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// underWay is how many pods with volumes are between two nodes. One that takes long to end, or
// is away for long, is not counted: what keeps it is not the others.
func (m *moves) underWay(now time.Time) int {
	n := 0
	for _, d := range m.pods {
		var moving bool
		switch {
		case d.back || !d.hasClaims() || !facts.MadeAgain(d.pod):
		case !d.gone.IsZero():
			moving = now.Sub(d.gone) <= awayAtMost
		case !d.leaving.IsZero():
			moving = now.Sub(d.leaving) <= awayAtMost
		case d.asking:
			moving = now.Sub(d.asked) <= retryAfter
		default:
			moving = !d.agreed.IsZero()
		}
		if moving {
			n++
		}
	}
	return n
}

// answer is what the API server said to an eviction.
type answer struct {
	of      *departure
	refusal refusal // empty when it agreed
	ifNot   string  // what is wrong if the pod is not seen to end then
}

// answered takes in an answer.
func (m *moves) answered(a answer, now time.Time) {
	d := a.of
	d.asking = false
	if a.refusal.why == "" {
		d.agreed, d.ifNot = now, a.ifNot
		return
	}
	d.refusal, d.notBefore = a.refusal, now.Add(retryAfter)
}

// end says whether the drain is over, and how it ended.
func (m *moves) end() (over bool, err error) {
	if m.stopped != nil {
		return true, m.stopped
	}
	for _, d := range m.pods {
		if d.gone.IsZero() && (d.asking || !d.refusal.good || !d.leaving.IsZero()) {
			return false, nil
		}
	}
	if still := m.still(); len(still) > 0 {
		return true, errors.New("node " + m.node + " is not drained, and to ask again is of no use: " + strings.Join(still, "; "))
	}
	if err := m.choice.refused(m.node, ": pods came that need a permission"); err != nil {
		return true, err
	}
	if len(m.open()) > 0 {
		return false, nil
	}
	for uid, why := range m.choice.keep {
		if why == keptBack {
			return true, &command.ExitError{Code: command.ExitFindings, Message: m.summary() + ". It is not empty: pods were made there after the cordon, such as " + m.nameAt(uid) +
				", since they tolerate it or name the node"}
		}
	}
	return true, nil
}

// open are the volumes that may be mounted at the node, but for those of pods that stay there
// on purpose, and of tickets that are to be left.
func (m *moves) open() []facts.VolumeThere {
	return slices.DeleteFunc(slices.Clone(m.there), func(v facts.VolumeThere) bool { return m.usedByKept(v) || m.leftToTicket(v) })
}

func (m *moves) leftToTicket(v facts.VolumeThere) bool { return m.may.ignoreTickets && v.Ticket != "" }

func (m *moves) usedByKept(v facts.VolumeThere) bool {
	return slices.ContainsFunc(v.Pods, func(uid types.UID) bool { return m.choice.keep[uid] != "" })
}

func (m *moves) sorted() []*departure {
	return slices.SortedFunc(maps.Values(m.pods), func(a, b *departure) int { return strings.Compare(a.name(), b.name()) })
}
