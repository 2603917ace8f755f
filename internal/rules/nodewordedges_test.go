// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func machineSpeaks(changes ...func(*ledger.NodeWord)) []ledger.Event {
	return []ledger.Event{again(), madeAt("well"), says(changes...)}
}

func asked(w *ledger.NodeWord)     { w.Look = 1 }
func hasLooked(w *ledger.NodeWord) { w.Look, w.Looked = 1, 1 }
func partly(w *ledger.NodeWord)    { w.Whole = false }
func forgot(w *ledger.NodeWord)    { finds(w); w.Forgotten = w.Has }
func ofBoot(boot string) func(*ledger.NodeWord) {
	return func(w *ledger.NodeWord) { w.BootID = boot }
}

// A volume is gone only if the node looked after the question, read everything, and does not name it.
func TestWhatAWordSays(t *testing.T) {
	for name, test := range map[string]struct {
		word          []func(*ledger.NodeWord)
		look          int32
		gone, nothing bool
	}{
		"it has looked, and finds nothing":      {[]func(*ledger.NodeWord){hasLooked}, 1, true, false},
		"it has not looked":                     {[]func(*ledger.NodeWord){asked}, 1, false, false},
		"nobody has asked":                      {[]func(*ledger.NodeWord){hasLooked}, 0, false, false},
		"it finds the volume":                   {[]func(*ledger.NodeWord){hasLooked, finds}, 1, false, false},
		"it can't read everything":              {[]func(*ledger.NodeWord){hasLooked, partly}, 1, false, true},
		"it can't, and finds the volume":        {[]func(*ledger.NodeWord){hasLooked, partly, finds}, 1, false, false},
		"it can't, and has not looked":          {[]func(*ledger.NodeWord){asked, partly}, 1, false, false},
		"its word is of another boot":           {[]func(*ledger.NodeWord){hasLooked, ofBoot("a")}, 1, false, true},
		"it can't read what may be of a volume": {[]func(*ledger.NodeWord){hasLooked, func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }}, 1, false, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, machineSpeaks(test.word...)...)
		place := *p.at("well")
		place.Proof.Look = test.look
		if got := saidGone(p.snapshot, p.volume, &place); got != test.gone {
			t.Errorf("%s: gone: %t", name, got)
		}
		if got := sawNothing(p.snapshot.Node("well"), disk, &place); got != test.nothing {
			t.Errorf("%s: nothing seen: %t", name, got)
		}
	}
}

func TestStagedByOldWord(t *testing.T) {
	late := auditTime.Add(LookPatience)
	for name, test := range map[string]struct {
		word  []func(*ledger.NodeWord)
		stage ledger.ProofStage
		look  int32
		now   time.Time
		want  bool
	}{
		"it has forgotten it, and is silent": {[]func(*ledger.NodeWord){forgot, asked}, ledger.ProofUnreported, 0, late, true},
		"it answers":                         {[]func(*ledger.NodeWord){forgot, asked}, ledger.ProofUnreported, 0, late.Add(-1), false},
		"nothing is proved":                  {[]func(*ledger.NodeWord){forgot, asked}, ledger.ProofNone, 0, late, false},
		"no pod wants it, either":            {[]func(*ledger.NodeWord){forgot, asked}, ledger.ProofUnwanted, 0, late, true},
		"a pod's folder names it":            {[]func(*ledger.NodeWord){finds, asked}, ledger.ProofUnreported, 0, late, false},
		"it does not find it":                {[]func(*ledger.NodeWord){asked}, ledger.ProofUnreported, 0, late, false},
		"of another boot":                    {[]func(*ledger.NodeWord){forgot, asked, ofBoot("a")}, ledger.ProofUnreported, 0, late, false},
		"of another Node":                    {[]func(*ledger.NodeWord){forgot, asked, func(w *ledger.NodeWord) { w.NodeUID = "w" }}, ledger.ProofUnreported, 0, late, false},
		"it has looked since it was asked":   {[]func(*ledger.NodeWord){forgot, func(w *ledger.NodeWord) { w.Look, w.Looked = 2, 1 }}, ledger.ProofUnreported, 1, late, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, machineSpeaks(test.word...)...)
		place := *p.at("well")
		place.Proof.Stage, place.Proof.Look = test.stage, test.look
		if got := stagedByOldWord(p.snapshot.Node("well"), disk, &place, test.now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// If the report is required, silence counts as use, except for volumes without a VolumeAttachment.
func TestRequiredWord(t *testing.T) {
	for name, test := range map[string]struct {
		required bool
		facts    []ledger.Event
		look     int32
		want     bool
	}{
		"nobody speaks":            {true, []ledger.Event{madeAt("well")}, 0, true},
		"it is not required":       {false, []ledger.Event{madeAt("well")}, 0, false},
		"it speaks":                {true, machineSpeaks(), 0, false},
		"it owes an answer":        {true, machineSpeaks(asked), 0, true},
		"it has said that it left": {true, machineSpeaks(func(w *ledger.NodeWord) { w.Look, w.Looked = 2, 1 }), 1, false},
	} {
		a := Arbiter{RequireNodeReport: test.required}
		p := plannerOf(t, a, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		place.Proof.Look = test.look
		if got := a.unsaid(p.snapshot, p.volume, &place, auditTime.Add(LookPatience)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		none := *p.volume
		none.ID = ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
		if a.requiresWord(&none) {
			t.Errorf("%s: it is required of a volume without attachments", name)
		}
	}
}

func TestWhatIsToldOfAStagedVolume(t *testing.T) {
	late := auditTime.Add(LookPatience)
	older := func(w *ledger.NodeWord) { asked(w); forgot(w) }
	doubts := func(changes ...func(*ledger.NodeWord)) []ledger.Event { return inDoubt(says(changes...)) }
	for name, test := range map[string]struct {
		facts  []ledger.Event
		proof  ledger.Proof
		now    time.Time
		detail string
	}{
		"the word is new":                    {machineSpeaks(finds), ledger.Proof{}, auditTime, ""},
		"it is silent, and had forgotten it": {machineSpeaks(older), ledger.Proof{Stage: ledger.ProofUnreported}, late, oldWord},
		"in doubt, and not asked":            {doubts(finds), ledger.Proof{}, auditTime, lastWord},
		"in doubt, and has looked":           {doubts(finds, hasLooked), ledger.Proof{Look: 1}, auditTime, ""},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		place.Proof = test.proof
		if got := stayingAt(p.snapshot, p.volume, &place, Reason{}, test.now); got.Code != StagedAtNode || got.Detail != test.detail {
			t.Errorf("%s: %s %q", name, got.Code, got.Detail)
		}
	}
}

// A found pod record may be of this volume: it is not gone, other volumes are.
func TestUnreadIsNotGone(t *testing.T) {
	v, other := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "d", Handle: "o"}
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "n", UID: "u", Version: "1", BootID: "b"},
		ledger.PersistentVolume{Name: "pv", UID: "p", Version: "1", Volume: v},
		ledger.NodeWord{Node: "n", UID: "w", Version: "1", NodeUID: "u", BootID: "b", Look: 1, Looked: 1, Whole: true, Unread: []ledger.Unread{{PersistentVolume: "pv"}}},
	} {
		l.Apply(time.Unix(1, 0), e)
	}
	place := &ledger.VolumeOnNode{Node: "n"}
	place.Proof.Look = 1
	if s := l.Snapshot(); saidGone(s, &ledger.Volume{ID: v}, place) || !saidGone(s, &ledger.Volume{ID: other}, place) {
		t.Error("a record that can't be read counts as gone, or is taken for another volume's")
	}
}

func TestAsksNode(t *testing.T) {
	doubts := func(changes ...func(*ledger.NodeWord)) []ledger.Event { return inDoubt(says(changes...)) }
	for name, test := range map[string]struct {
		facts   []ledger.Event
		proof   ledger.Proof
		after   time.Duration
		waits   bool
		want    Kind
		recheck time.Duration
		needed  bool // the report is required
	}{
		"it was not asked":                    {machineSpeaks(), ledger.Proof{}, 0, true, AskNode, 0, false},
		"it was":                              {machineSpeaks(asked), ledger.Proof{Look: 1}, 10 * time.Second, true, 0, 20 * time.Second, false},
		"it was, and is silent":               {machineSpeaks(asked), ledger.Proof{Look: 1}, LookPatience, false, 0, 0, false},
		"silent, and its word is required":    {machineSpeaks(asked), ledger.Proof{Look: 1}, LookPatience, true, 0, 0, true},
		"who was asked is gone":               {machineSpeaks(), ledger.Proof{Look: 1}, 0, true, AskNode, 0, false},
		"it has looked":                       {machineSpeaks(hasLooked), ledger.Proof{Look: 1}, 0, false, 0, 0, false},
		"it has looked, and finds it":         {machineSpeaks(hasLooked, finds), ledger.Proof{Look: 1}, 0, true, 0, 0, false},
		"it has said that it came and went":   {machineSpeaks(), ledger.Proof{Unstaged: true}, 0, false, 0, 0, false},
		"came and went, its word is required": {machineSpeaks(), ledger.Proof{Unstaged: true}, 0, true, AskNode, 0, true},
		"it can't read everything, and looks": {machineSpeaks(partly, hasLooked), ledger.Proof{Look: 1}, 0, false, 0, 0, false},
		"there is no moorage-node":            {[]ledger.Event{again(), madeAt("well")}, ledger.Proof{}, 0, false, 0, 0, true},
		"there is none, nor is it required":   {[]ledger.Event{again(), madeAt("well")}, ledger.Proof{}, 0, false, 0, 0, false},
		"in doubt, and it was not asked":      {doubts(), ledger.Proof{}, 0, true, AskNode, 0, false},
		"in doubt, and it came and went":      {doubts(), ledger.Proof{Unstaged: true}, 0, true, AskNode, 0, false},
		"in doubt, and it has looked":         {doubts(hasLooked), ledger.Proof{Look: 1}, 0, true, 0, 0, false},
		"in doubt, and it has looked twice":   {doubts(hasLooked), ledger.Proof{Look: 1, Again: true}, 0, false, 0, 0, false},
	} {
		p := plannerOf(t, Arbiter{RequireNodeReport: test.needed}, "", ledger.Hold{}, test.facts...)
		p.now = auditTime.Add(test.after)
		place := *p.at("well")
		place.Proof = test.proof
		if got := p.asksNode(p.snapshot.Node("well"), &place, place.Own()); got != test.waits || only(p) != test.want {
			t.Errorf("%s: it waits: %t, %+v", name, got, p.plan.Steps)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again in %s", name, got.Sub(p.now))
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, machineSpeaks()...)
	place := p.at("well")
	p.volume = &ledger.Volume{ID: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}}
	if p.asksNode(p.snapshot.Node("well"), place, nil) || len(p.plan.Steps) > 0 {
		t.Errorf("a node is asked about a volume without attachments: %+v", p.plan.Steps)
	}
}

func TestAsksAgain(t *testing.T) {
	looked := func(at time.Duration) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.Unreported{Volume: disk, Node: "well", UID: "awell", Version: "1", Unknown: true})
			l.Apply(auditTime, ledger.LookAsked{Volume: disk, Node: "well", UID: "awell", Version: "1", Look: 1})
			l.Apply(auditTime.Add(at), says(hasLooked, func(w *ledger.NodeWord) { w.Version = "2" }))
		}
	}
	for name, test := range map[string]struct {
		hurried bool
		look    func(*ledger.Ledger)
		again   bool
		after   time.Duration
		waits   bool
		want    Kind
		recheck time.Duration
	}{
		"nothing for a while":         {false, looked(time.Second), false, 16 * time.Second, true, AskNode, 0},
		"not so long":                 {false, looked(time.Second), false, 6 * time.Second, true, 0, 10 * time.Second},
		"not so long, and hurried":    {true, looked(time.Second), false, 6 * time.Second, true, AskNode, 0},
		"not taken in yet":            {false, func(*ledger.Ledger) {}, false, 20 * time.Second, true, 0, 0},
		"not taken in yet, hurried":   {true, func(*ledger.Ledger) {}, false, 20 * time.Second, true, 0, 0},
		"it has looked a second time": {false, looked(time.Second), true, 16 * time.Second, false, 0, 0},
	} {
		s, v, _ := concerned(t, "", "", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			for _, e := range inDoubt(says()) {
				l.Apply(auditTime, e)
			}
			test.look(l)
		})
		p := Arbiter{Hurried: test.hurried}.planner(s, v, auditTime.Add(test.after))
		place := *p.at("well")
		place.Proof.Again = test.again
		got := p.asksAgain(s.Node("well"), &place, place.Own())
		if got != test.waits || only(p) != test.want {
			t.Errorf("%s: it waits: %t, %+v", name, got, p.plan.Steps)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again in %s", name, got.Sub(p.now))
		}
	}
}

// The doubt ends after two looks in the right boot that report nothing.
func TestEmptied(t *testing.T) {
	twice := ledger.Proof{Look: 1, Again: true}
	for name, test := range map[string]struct {
		facts []ledger.Event
		proof ledger.Proof
		want  bool
	}{
		"it has looked twice":  {inDoubt(says(hasLooked)), twice, true},
		"it has looked once":   {inDoubt(says(hasLooked)), ledger.Proof{Look: 1}, false},
		"it finds it by now":   {inDoubt(says(hasLooked, finds)), twice, false},
		"it has not looked":    {inDoubt(says(asked)), twice, false},
		"nothing is in doubt":  {machineSpeaks(hasLooked), twice, false},
		"another boot is here": {inDoubt(again(ofMachine("z", "b"), func(n *ledger.NodeState) { n.Version = "8" }), says(hasLooked)), twice, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		place.Proof = test.proof
		if got := p.emptied(&place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// After a refused question the next waits for the pause or the patience, whichever ends first.
func TestAskAfterARefusal(t *testing.T) {
	refused := func(since, last time.Duration) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.Apply(auditTime.Add(since), ledger.LookRefused{Node: "well"})
			l.Apply(auditTime.Add(last), ledger.LookRefused{Node: "well"})
		}
	}
	for name, test := range map[string]struct {
		refused func(*ledger.Ledger)
		after   time.Duration
		want    Kind
		recheck time.Duration
	}{
		"it was not refused":             {func(*ledger.Ledger) {}, time.Minute, AskNode, 0},
		"just refused":                   {refused(0, 0), 0, 0, 5 * time.Second},
		"the pause is over":              {refused(0, 0), 5 * time.Second, AskNode, 0},
		"the patience is over first":     {refused(0, 20*time.Second), 25 * time.Second, 0, 5 * time.Second},
		"the patience is over by now":    {refused(0, 20*time.Second), 30 * time.Second, 0, 10 * time.Second},
		"the pause is over before":       {refused(0, 6*time.Second), 7 * time.Second, 0, 5 * time.Second},
		"the patience has been over":     {refused(0, time.Minute), 70 * time.Second, 0, 50 * time.Second},
		"refused for hours, the longest": {refused(0, 2*time.Hour), 2*time.Hour + time.Minute, 0, 4 * time.Minute},
	} {
		s, v, _ := concerned(t, "", "", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			for _, e := range machineSpeaks() {
				l.Apply(auditTime, e)
			}
			test.refused(l)
		})
		p := Arbiter{}.planner(s, v, auditTime.Add(test.after))
		p.ask(s.Node("well"), p.at("well"), p.at("well").Own(), time.Time{})
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v", name, p.plan.Steps)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again in %s", name, got.Sub(p.now))
		}
	}
}

func TestAskAgain(t *testing.T) {
	used := func(p *ledger.VolumeOnNode) { p.InUse = true }
	same := func(*ledger.VolumeOnNode) {}
	lists := again(func(n *ledger.NodeState) { n.Version, n.InUse = "8", []ledger.VolumeID{disk} })
	for name, test := range map[string]struct {
		facts   []ledger.Event
		refused bool
		change  func(*ledger.VolumeOnNode)
		want    Kind
	}{
		"it was refused":                   {machineSpeaks(), true, same, AskNode},
		"it was not":                       {machineSpeaks(), false, same, 0},
		"nobody answers":                   {machineSpeaks(ofBoot("a")), true, same, 0},
		"in use":                           {machineSpeaks(), true, used, 0},
		"in doubt":                         {inDoubt(says()), true, same, AskNode},
		"in doubt, and the kubelet has it": {inDoubt(says(), lists), true, same, 0},
	} {
		s, v, _ := concerned(t, "", "", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
			if test.refused {
				l.Apply(auditTime, ledger.LookRefused{Node: "well"})
			}
		})
		p := Arbiter{}.planner(s, v, auditTime.Add(time.Minute))
		place := *p.at("well")
		test.change(&place)
		p.askAgain(s.Node("well"), &place, place.Own())
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v", name, p.plan.Steps)
		}
		p = Arbiter{}.planner(s, &ledger.Volume{ID: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}}, auditTime.Add(time.Minute))
		if p.askAgain(s.Node("well"), &ledger.VolumeOnNode{Node: "well"}, nil); len(p.plan.Steps) > 0 {
			t.Errorf("%s: of a volume without attachments: %+v", name, p.plan.Steps)
		}
	}
}
