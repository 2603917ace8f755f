// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/translate"
)

// timeLeft is how much of a ticket's time is left, in seconds: at least, and at most.
type timeLeft struct {
	least, most int64
	// stopped: moorage-controller is down, so that nobody counts.
	stopped bool
}

// timeLeft is how much of a ticket's time is left, as its controller counts it.
func (w *World) timeLeft(t *v1alpha1.VolumeTicket) timeLeft {
	if is, _ := w.leads(v1alpha1.ControllerName); is == lapsed {
		left := timeLeftOf(t, w.Now, time.Time{})
		return timeLeft{least: left.most, most: left.most, stopped: true} // the next one goes on from what is written
	}
	return timeLeftOf(t, w.Now, w.controllerLeadsSince())
}

// controllerLeadsSince is since when this moorage-controller leads; zero where that is not known.
func (w *World) controllerLeadsSince() time.Time {
	if l := Lease(w.Leases.Components, v1alpha1.ControllerName, w.home()); l != nil && l.Spec.AcquireTime != nil {
		return l.Spec.AcquireTime.Time
	}
	return time.Time{}
}

// timeLeftOf is how much of a ticket's time is left. A controller counts by its own clock what it
// has seen, and writes that down in steps, from which the next one goes on: what is counted is
// as much as is written and as this controller, which leads since some time, has seen itself at
// least; and it is a step more than is written at most, and never more than the time since the
// ticket was made or renewed.
func timeLeftOf(t *v1alpha1.VolumeTicket, now, leads time.Time) timeLeft {
	ttl := translate.TTLSeconds(t)
	if ttl == 0 {
		return timeLeft{}
	}
	begun, written := t.CreationTimestamp.Time, time.Duration(t.Status.TTLElapsedSeconds)*time.Second
	if renewed := t.Annotations[v1alpha1.AnnotationRenewed]; renewed != "" {
		if at, err := time.Parse(time.RFC3339Nano, renewed); err == nil && at.After(begun) {
			begun = at
		}
		if renewed != t.Status.Renewed {
			written = 0 // counted before it was renewed
		}
	}
	age, least := now.Sub(begun), written
	if !leads.IsZero() {
		least = max(written, min(age, now.Sub(leads)))
	}
	most := max(least, min(age, written+arbiter.TTLStep(ttl)))
	left := func(counted time.Duration) int64 { return max(0, ttl-int64(counted/time.Second)) }
	return timeLeft{least: left(most), most: left(least)}
}

// TimeLeft says in words when a ticket's time is over, unless it is renewed, by what it says itself;
// empty: it has no time of its own.
func TimeLeft(t *v1alpha1.VolumeTicket, now time.Time) string {
	if translate.TTLSeconds(t) == 0 {
		return ""
	}
	return timeLeftOf(t, now, time.Time{}).words()
}

// aboutSeconds is a difference that "about" covers.
const aboutSeconds = 30

// words are when the time is over.
func (l timeLeft) words() string {
	text := "any moment"
	if l.least > 0 {
		text = "in about " + lastingSeconds(l.least)
	}
	switch {
	case l.stopped && l.most == 0:
		return "as soon as moorage-controller is back"
	case l.stopped:
		return "about " + lastingSeconds(l.most) + " after moorage-controller is back"
	case l.most-l.least >= aboutSeconds:
		text += " (within " + lastingSeconds(l.most) + " if moorage-controller was restarted)"
	}
	return text
}

func lastingSeconds(n int64) string { return lasting(time.Duration(n) * time.Second) }

// lasting is a duration without units of which there are none, such as 1h for 1h0m0s.
func lasting(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
