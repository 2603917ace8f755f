// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

var data = ledger.VolumeID{Driver: "csi.example.com", Handle: "data"}

func whole(pause time.Duration) time.Duration { return pause }

// A stale attempt does not count.
func TestBackoff(t *testing.T) {
	for end, bounds := range map[protocol.End][2]time.Duration{
		protocol.Failed: {200 * time.Millisecond, time.Minute},
		protocol.Stale:  {2 * time.Millisecond, 5 * time.Second},
	} {
		var a protocol.Attempts
		want := bounds[0]
		for attempt := range 100 {
			if got := a.Fail(end, whole); got != want {
				t.Errorf("attempt %d that is %s pauses %s, want %s", attempt, end, got, want)
			}
			want = min(2*want, bounds[1])
		}
		other := protocol.Stale + protocol.Failed - end
		if got, want := a.Fail(other, whole), new(protocol.Attempts).Fail(other, whole); got != want {
			t.Errorf("the first that is %s pauses %s, want %s", other, got, want)
		}
		half := func(pause time.Duration) time.Duration { return pause / 2 }
		if got := a.Fail(end, half); got != bounds[1]/2 {
			t.Errorf("spread it pauses %s", got)
		}
	}
}

// The next attempt follows at once.
func TestNewsDuringAnAttempt(t *testing.T) {
	now := time.Unix(1000, 0)
	p, step := protocol.NewPauses(whole), rules.Step{Kind: rules.CreateAttachment, Volume: data, Node: "n1"}
	p.Begin(step)
	p.News(step.Volume)
	if pause := p.End(step, protocol.Failed, now); pause <= 0 || pause > time.Millisecond {
		t.Errorf("it pauses for %s, and there is news", pause)
	}
	p.Decide(step.Volume)
	p.Begin(step)
	if pause := p.End(step, protocol.Failed, now); pause <= 0 {
		t.Error("what was known when it was decided on is no news")
	}
	if due, again := p.Due(step.Volume, []rules.Step{step}, now); len(due) > 0 || again <= 0 {
		t.Errorf("due are %v, and the rest after %s", due, again)
	}
}

// An unplanned step without a recent failure is forgotten.
func TestStepsPauseApart(t *testing.T) {
	now := time.Unix(1000, 0)
	p := protocol.NewPauses(whole)
	step := func(n ledger.NodeName) rules.Step {
		return rules.Step{Kind: rules.CreateAttachment, Volume: data, Node: n}
	}
	p.Begin(step("n1"))
	pause := p.End(step("n1"), protocol.Failed, now)
	p.Begin(step("n3"))
	p.End(step("n3"), protocol.Finished, now)
	due, again := p.Due(data, []rules.Step{step("n1"), step("n2")}, now)
	if len(due) != 1 || due[0].Node != "n2" || again != pause {
		t.Errorf("due are %v, and the rest after %s; want that of n2, and %s", due, again, pause)
	}
	p.Due(data, nil, now)
	if p.Len() != 1 {
		t.Error("a step that pauses was forgotten: it would be tried at once")
	}
	if p.Due(data, nil, now.Add(pause)); p.Len() != 0 {
		t.Errorf("of %d volumes steps are kept", p.Len())
	}
}
