// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Unresponsive: no moorage-node, a report of another boot, or an answer owed longer than the patience.
func TestUnresponsiveNode(t *testing.T) {
	refused := ledger.LookRefused{Node: "well"}
	for name, test := range map[string]struct {
		facts []ledger.Event
		after time.Duration
		want  bool
	}{
		"it answers":                     {machineSpeaks(), time.Hour, false},
		"it has answered":                {machineSpeaks(hasLooked), time.Hour, false},
		"there is no moorage-node":       {[]ledger.Event{again(), madeAt("well")}, 0, true},
		"its word is of another boot":    {machineSpeaks(ofBoot("a")), 0, true},
		"it was asked lately":            {machineSpeaks(asked), LookPatience - 1, false},
		"it was asked long ago":          {machineSpeaks(asked), LookPatience, true},
		"it could not be asked lately":   {append(machineSpeaks(), refused), LookPatience - 1, false},
		"it can't be asked for long":     {append(machineSpeaks(), refused), LookPatience, true},
		"it can't, and owes nothing yet": {append(machineSpeaks(hasLooked), refused), LookPatience, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := unresponsive(p.snapshot.Node("well"), auditTime.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatCountsAsStaged(t *testing.T) {
	late := auditTime.Add(LookPatience)
	for name, test := range map[string]struct {
		facts []ledger.Event
		proof ledger.Proof
		now   time.Time
		want  bool
	}{
		"nobody has asked":                {machineSpeaks(), ledger.Proof{}, auditTime, false},
		"it has looked, and finds it":     {machineSpeaks(hasLooked, finds), ledger.Proof{Look: 1}, auditTime, true},
		"it has looked, and finds none":   {machineSpeaks(hasLooked), ledger.Proof{Look: 1}, auditTime, false},
		"it has not looked, and finds it": {machineSpeaks(asked, finds), ledger.Proof{Look: 1}, auditTime, false},
		"silent, it had forgotten it":     {machineSpeaks(asked, forgot), ledger.Proof{Stage: ledger.ProofUnreported}, late, true},
		"it had forgotten it, and speaks": {machineSpeaks(asked, forgot), ledger.Proof{Stage: ledger.ProofUnreported}, auditTime, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		place.Proof = test.proof
		if got := staged(p.snapshot, p.volume, &place, test.now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestNobodyWaitsForTheSilent(t *testing.T) {
	for name, test := range map[string]struct {
		facts   []ledger.Event
		recheck bool
	}{
		"it owes the answer":     {machineSpeaks(asked), true},
		"it is of another boot":  {machineSpeaks(asked, ofBoot("a")), false},
		"the answer has come in": {machineSpeaks(hasLooked, finds), false},
	} {
		p := plannerOf(t, Arbiter{RequireNodeReport: true}, "", ledger.Hold{}, test.facts...)
		p.now = auditTime.Add(10 * time.Second)
		place := *p.at("well")
		place.Proof.Look = 1
		if waits := p.asksNode(p.snapshot.Node("well"), &place, place.Own()); !waits || len(p.plan.Steps) > 0 || p.plan.Recheck.IsZero() == test.recheck {
			t.Errorf("%s: it waits: %t, %+v, looked at again at %s", name, waits, p.plan.Steps, p.plan.Recheck)
		}
	}
}

func TestSilenceTellsOfTheLease(t *testing.T) {
	unread := func(n *ledger.Node) { n.Unread, n.ReadAgain = 30*time.Second, time.Unix(170, 0) }
	for name, test := range map[string]struct {
		node        *ledger.Node
		unread      time.Duration
		again, read int64 // 0: no time
		deaf        bool
	}{
		"nobody knows the node": {nil, 0, 0, 0, false},
		"as it was found":       {silentNode(func(*ledger.Node) {}), 0, 0, 90, false},
		"it was seen to fail":   {silentNode(func(n *ledger.Node) { n.SawFail = true }), 0, 0, 0, false},
		"it was heard":          {silentNode(func(n *ledger.Node) { n.Heard = time.Unix(120, 0) }), 0, 0, 0, false},
		"nobody could read it":  {silentNode(unread), 30 * time.Second, 170, 90, false},
		"nobody can read it":    {silentNode(func(n *ledger.Node) { n.UnreadSince = time.Unix(140, 0) }), 0, 0, 90, true},
		"the Node is gone": {silentNode(func(n *ledger.Node) {
			unread(n)
			n.Exists, n.UnreadSince = false, time.Unix(180, 0)
		}), 30 * time.Second, 170, 0, false},
	} {
		got := silenceOf(test.node, time.Unix(200, 0))
		if got.unread != test.unread || unix(got.again) != test.again || unix(got.read) != test.read || got.deaf != test.deaf {
			t.Errorf("%s: unread for %s up to %d, still since %d, nobody can read it: %t", name, got.unread, unix(got.again), unix(got.read), got.deaf)
		}
	}
}

// If this process saw no Node, the hold names the Node of an earlier process.
func TestKeptOutageNamesItsNode(t *testing.T) {
	unseen := silentNode(func(n *ledger.Node) { n.UID, n.Exists = "", false })
	for name, test := range map[string]struct {
		earlier ledger.NodeName
		node    *ledger.Node
		want    string
	}{
		"nobody knows the node":         {"n1", nil, "before"},
		"nobody has seen its Node":      {"n1", unseen, "before"},
		"named of another node":         {"n2", unseen, ""},
		"of another, and nobody knows":  {"n2", nil, ""},
		"its Node is there":             {"n1", silentNode(func(*ledger.Node) {}), "u1"},
		"there, and named of another":   {"n2", silentNode(func(*ledger.Node) {}), "u1"},
		"its Node is gone, and was not": {"n1", silentNode(func(n *ledger.Node) { n.Exists = false }), "u1"},
	} {
		l := ledger.New()
		force := ledger.Force{Rule: AfterPodGone, Node: test.earlier, NodeUID: "before"}
		l.Apply(auditTime, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", Node: "n1", Force: &force}})
		f := forcing{Rule: AfterPodGone, Elapsed: 90 * time.Second, Left: time.Minute, Limit: 6 * time.Minute, Step: 30 * time.Second}
		if got := outage(l.Snapshot().Volume(disk), &ledger.VolumeOnNode{Node: "n1"}, test.node, f); got.NodeUID != test.want || got.Node != "n1" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A time begins anew after its brake; otherwise it continues an earlier process's count.
func TestTimeBeginsAnewAfterABrake(t *testing.T) {
	policy := ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: new(2 * time.Minute)}
	lifted := []ledger.Event{policy, ledger.NodeState{Name: "fourth", UID: "f", Version: "1"}, nodeAs("third", silent), nodeAs("third", func(n *ledger.NodeState) { n.Version = "7" })}
	before, after := auditTime.Add(-time.Minute), auditTime.Add(time.Second)
	for name, test := range map[string]struct {
		facts     []ledger.Event
		since     time.Time
		want      time.Time
		continues bool
	}{
		"it began before":               {lifted, before, auditTime, false},
		"it began just then":            {lifted, auditTime, auditTime, false},
		"it began later":                {lifted, after, after, true},
		"nothing held it":               {[]ledger.Event{policy}, before, before, true},
		"nothing did, nor is it known":  {[]ledger.Event{policy}, time.Time{}, time.Time{}, true},
		"it was held, and is not known": {lifted, time.Time{}, auditTime, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		run := timing{silence: silence{since: test.since}, continues: true}
		if brake := run.braked(p.snapshot, p.snapshot.Node("dead")); brake.On || !run.since.Equal(test.want) || run.continues != test.continues {
			t.Errorf("%s: since %s, an earlier process counts: %t, held by %q", name, run.since, run.continues, brake)
		}
	}
}
