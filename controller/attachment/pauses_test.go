// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"errors"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

var errRefused = errors.New("refused by a policy of somebody else")

// refusing is a controller whose creations of VolumeAttachments are refused as the
// executor has it: the ledger hears before that one is sent, and after that it had no
// effect; both touch the volume. What touches it goes where controller/wake sends it.
func refusing(t *testing.T, now *time.Time, handles ...string) (*Controller, *doer, func(ledger.Event)) {
	t.Helper()
	l := facts(*now, handles...)
	var c *Controller
	apply := func(e ledger.Event) {
		touched := l.Apply(*now, e)
		for _, v := range touched.Volumes {
			if touched.Own {
				c.GoOn(v)
			} else {
				c.Add(v)
			}
		}
	}
	d := &doer{do: func(s arbiter.Step) error {
		if s.Do != arbiter.CreateAttachment {
			return nil
		}
		apply(ledger.AttachSent{Volume: s.Volume, Node: s.Node})
		apply(ledger.AttachResolved{Volume: s.Volume, Node: s.Node})
		return errRefused
	}}
	c = controller(t, l, d, now)
	return c, d, apply
}

// A creation that is refused pauses, longer from time to time, whatever its own
// attempts have touched; news from outside ends the pause.
func TestRefusedStepPauses(t *testing.T) {
	now := time.Unix(1000, 0)
	c, d, apply := refusing(t, &now, "data")
	process := func() time.Duration {
		t.Helper()
		again, err := c.process(t.Context(), volume("data"))
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	var last time.Duration
	for attempt := 1; attempt <= 6; attempt++ {
		again := process()
		for range 10 { // its own notes have touched the volume
			if left := process(); left <= 0 || left > again {
				t.Fatalf("looked at again after %s, and the pause is %s", left, again)
			}
		}
		if got := d.count(arbiter.CreateAttachment); got != attempt {
			t.Fatalf("%d attempts, want %d", got, attempt)
		}
		if again <= last {
			t.Errorf("pause %s after one of %s", again, last)
		}
		last, now = again, now.Add(again)
	}
	process()
	before := d.count(arbiter.CreateAttachment)
	apply(ledger.Pod{UID: "second", Version: "1", Namespace: "s", Name: "second", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	if again := process(); d.count(arbiter.CreateAttachment) != before+1 || again <= last {
		t.Errorf("%d attempts after news, want %d; the next one after %s", d.count(arbiter.CreateAttachment), before+1, again)
	}
}

// News that comes while an attempt is under way was not known to it: the next attempt
// follows at once.
func TestNewsDuringAnAttempt(t *testing.T) {
	now := time.Unix(1000, 0)
	p, step := newPauses(), arbiter.Step{Do: arbiter.CreateAttachment, Volume: volume("data"), Node: "n1"}
	p.begin(step)
	p.news(step.Volume)
	if pause := p.end(step, errRefused, now); pause != 0 {
		t.Errorf("it pauses for %s, and there is news", pause)
	}
	p.decide(step.Volume)
	p.begin(step)
	if pause := p.end(step, errRefused, now); pause <= 0 {
		t.Error("what was known when it was decided on is no news")
	}
	if due, again := p.due(step.Volume, []arbiter.Step{step}, now); len(due) > 0 || again <= 0 {
		t.Errorf("due are %v, and the rest after %s", due, again)
	}
}

// Each step pauses by itself, and what has neither failed lately nor is planned any more
// is forgotten.
func TestStepsPauseApart(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPauses()
	step := func(n ledger.NodeName) arbiter.Step {
		return arbiter.Step{Do: arbiter.CreateAttachment, Volume: volume("data"), Node: n}
	}
	p.begin(step("n1"))
	pause := p.end(step("n1"), errRefused, now)
	p.begin(step("n3"))
	p.end(step("n3"), nil, now)
	due, again := p.due(volume("data"), []arbiter.Step{step("n1"), step("n2")}, now)
	if len(due) != 1 || due[0].Node != "n2" || again != pause {
		t.Errorf("due are %v, and the rest after %s; want that of n2, and %s", due, again, pause)
	}
	p.due(volume("data"), nil, now)
	if len(p.steps) != 1 {
		t.Error("a step that pauses was forgotten: it would be tried at once")
	}
	if p.due(volume("data"), nil, now.Add(pause)); len(p.steps) != 0 {
		t.Errorf("kept: %v", p.steps)
	}
}
