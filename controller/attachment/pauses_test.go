// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"errors"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

var errRefused = errors.New("refused by a policy of somebody else")

// As in the executor, the ledger hears before the send and after the failure. Both touch the volume.
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
	d := &doer{do: func(s rules.Step) error {
		if s.Kind != rules.CreateAttachment {
			return nil
		}
		apply(ledger.AttachSent{Volume: s.Volume, Node: s.Node})
		apply(ledger.AttachResolved{Volume: s.Volume, Node: s.Node})
		return errRefused
	}}
	c = controller(t, l, d, now)
	return c, d, apply
}

// The step's own touches do not end the pause; news from outside does.
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
		if got := d.count(rules.CreateAttachment); got != attempt {
			t.Fatalf("%d attempts, want %d", got, attempt)
		}
		if again <= last {
			t.Errorf("pause %s after one of %s", again, last)
		}
		last, now = again, now.Add(again)
	}
	process()
	before := d.count(rules.CreateAttachment)
	apply(ledger.Pod{UID: "second", Version: "1", Namespace: "s", Name: "second", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	if again := process(); d.count(rules.CreateAttachment) != before+1 || again <= last {
		t.Errorf("%d attempts after news, want %d; the next one after %s", d.count(rules.CreateAttachment), before+1, again)
	}
}
