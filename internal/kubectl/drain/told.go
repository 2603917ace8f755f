// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// tellAgain is how often it is told at most that a pod stays, whose reason changes.
const tellAgain = 10 * time.Second

// tellWhoStays says why pods stay for now: the pods of each reason together.
func (m *moves) tellWhoStays(now time.Time) {
	var stay byReason
	for _, d := range m.sorted() {
		why := cmp.Or(d.stays, d.refusal.why)
		if !d.leaving.IsZero() || why == d.told || !d.toldAt.IsZero() && now.Sub(d.toldAt) < tellAgain {
			continue
		}
		if d.told = why; why == "" {
			continue
		}
		d.toldAt = now
		stay.add(why, d.name())
	}
	for _, why := range stay.reasons {
		verb := "stays"
		if len(stay.names[why]) > 1 {
			verb = "stay"
		}
		m.say("%s %s %s for now: %s", m.count(), namedPods(stay.names[why], m.wide), verb, why)
	}
}

// tellWhatIsOpen says what the end waits for, once all pods have left.
func (m *moves) tellWhatIsOpen() {
	if text := m.openText(); m.empty() && text != "" && text != m.said {
		m.said = text
		m.say("%s all pods have left. %s", m.count(), text)
	}
}

// empty says whether no pod is at the node any more that is to leave.
func (m *moves) empty() bool {
	for _, d := range m.pods {
		if d.gone.IsZero() {
			return false
		}
	}
	return true
}

func (m *moves) openText() string {
	var volumes byReason
	for _, v := range m.open() {
		why := v.Why
		if v.Ticket != "" {
			why += "; --ignore-tickets does not wait for it"
		}
		volumes.add(why, v.Volume)
	}
	if len(volumes.reasons) == 0 {
		return ""
	}
	return "Still mounted, as far as is known: " + strings.Join(volumes.texts(m.wide), ", ")
}

// summary is what the drain has done, in a sentence.
func (m *moves) summary() string {
	var away []time.Duration
	var open byReason
	waiting := 0
	for _, d := range m.sorted() {
		switch {
		case d.runs:
			away = append(away, d.away)
		case !d.back:
			waiting++
			open.add(d.waits, d.name())
		}
	}
	text := fmt.Sprintf("node %s is drained: %s left it", m.node, facts.Count(len(m.pods), "pod"))
	if len(away) > 0 {
		text += fmt.Sprintf("; %d run elsewhere, each away for at most %s", len(away), seconds(slices.Max(away)))
	}
	if waiting > 0 {
		text += fmt.Sprintf("; %s not running yet: %s", facts.CountVerb(waiting, "pod"), strings.Join(open.texts(m.wide), ", "))
	}
	if stay := m.choice.stay(); stay != "" {
		text += "; left where they are: " + stay
	}
	var used, kept []string
	for _, v := range m.there {
		switch {
		case m.usedByKept(v):
			used = append(used, v.Volume)
		case m.leftToTicket(v):
			kept = append(kept, v.Ticket)
		}
	}
	if len(used) > 0 {
		text += ". Don't switch it off: pods that stay there use " + namedPods(used, m.wide)
	}
	if len(kept) > 0 {
		text += ". Don't switch it off before who made these VolumeTickets is done with their volumes: " + namedPods(slices.Compact(kept), m.wide)
	}
	return text
}

// byReason are names of pods or volumes by what is said of them, in the order in which that came.
type byReason struct {
	reasons []string
	names   map[string][]string
}

func (b *byReason) add(reason, name string) {
	if b.names == nil {
		b.names = map[string][]string{}
	}
	if b.names[reason] == nil {
		b.reasons = append(b.reasons, reason)
	}
	b.names[reason] = append(b.names[reason], name)
}

// texts are the names of each reason, with it in brackets.
func (b *byReason) texts(wide bool) []string {
	var list []string
	for _, reason := range b.reasons {
		list = append(list, fmt.Sprintf("%s (%s)", namedPods(b.names[reason], wide), reason))
	}
	return list
}

// still are the pods that have not left, those of each reason together.
func (m *moves) still() []string {
	var list []string
	var pods byReason
	for _, d := range m.sorted() {
		if !d.gone.IsZero() {
			continue
		}
		why := cmp.Or(d.stays, d.refusal.why, "its turn has not come (--at-once)")
		switch {
		case !d.leaving.IsZero():
			why = "it has not ended yet"
		case d.asking && d.refusal.why == "", !d.agreed.IsZero():
			why = "it is being evicted"
		}
		pods.add(strings.TrimSuffix(why, "."), d.name())
	}
	for _, why := range pods.reasons {
		list = append(list, namedPods(pods.names[why], m.wide)+": "+why)
	}
	return list
}

// remaining are the pods that have not left, with why, or the volumes that have not.
func (m *moves) remaining() string {
	if !m.looked {
		return "Nothing was evicted: there was no time to look at the cluster."
	}
	if still := m.still(); len(still) > 0 {
		return "Still at the node: " + strings.Join(still, "; ")
	}
	return cmp.Or(m.openText(), "All pods have left") + ". See: kubectl moorage explain node " + m.node
}

// brokenOff is the error for a drain that was ended by Ctrl-C, or by the signal of a system
// that ends.
func (m *moves) brokenOff() error {
	return &command.ExitError{Code: interrupted, Message: fmt.Sprintf("broken off. Node %s stays cordoned, and pods that are being evicted go on. To go on, run the same command again; to leave it, kubectl uncordon %s. %s", m.node, m.node, m.remaining())}
}

// interrupted is the exit code of a process that SIGINT ended, as shells have it.
const interrupted = 130

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

// nameAt is the name of a pod that stays.
func (m *moves) nameAt(uid types.UID) string { return m.names[uid] }

// seconds rounds a time for people.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// mostNamed is how many pods are named of those that room is kept for.
const mostNamed = 3

// whyNot is why no other node has room, shortly: each reason once.
func whyNot(drained string, verdicts []facts.NodesVerdict, keptFor []string) string {
	var list []string
	for _, v := range verdicts {
		nodes := slices.DeleteFunc(slices.Clone(v.Nodes), func(n string) bool { return n == drained })
		if len(nodes) == 0 {
			continue
		}
		why := v.Barred
		for _, r := range v.Reasons {
			why = strings.TrimPrefix(why+", "+r.Code, ", ")
		}
		list = append(list, fmt.Sprintf("%s (%s)", strings.Join(nodes, ", "), why))
	}
	text := cmp.Or(strings.Join(list, "; "), "there is none")
	if len(keptFor) > mostNamed {
		keptFor = append(slices.Clone(keptFor[:mostNamed]), fmt.Sprintf("%d more", len(keptFor)-mostNamed))
	}
	if len(keptFor) > 0 {
		text += ". Room is kept first for pods that are about to be placed: " + strings.Join(keptFor, ", ")
	}
	return text
}
