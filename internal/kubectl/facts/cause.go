// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cause is why something does not run: one sentence, and what to do. It may be a
// volume, or something that Moorage has nothing to do with.
type Cause struct {
	// Of says what the cause is about: Volume, Claim, Node, Scheduling, Component,
	// Container or Mount.
	Of string `json:"of"`
	// Code is one of docs/reasons.md for a volume, and Kubernetes' own reason or a
	// name of this program's otherwise.
	Code    string `json:"code"`
	Message string `json:"message"`
	Changes string `json:"changes,omitempty"`
	Do      string `json:"do,omitempty"`
	// Also is what to do about the other things that are in the way, each once, in the order in
	// which Message names them.
	Also  []string  `json:"also,omitempty"`
	More  string    `json:"more,omitempty"`  // as of a Reason
	Steps []ByHand  `json:"steps,omitempty"` // as of a Reason
	Since time.Time `json:"since,omitzero"`
}

// asReason is a cause as a reason of a wait.
func (c *Cause) asReason() Reason {
	return Reason{Code: c.Code, Message: c.Message, Since: c.Since, Changes: c.Changes, Do: c.Do, More: c.More, Steps: c.Steps}
}

// What causes are about.
const (
	OfVolume     = "Volume"
	OfClaim      = "Claim"
	OfNode       = "Node"
	OfScheduling = "Scheduling"
	OfComponent  = "Component"
	OfContainer  = "Container"
	OfMount      = "Mount"
	OfWorkload   = "Workload"
)

// Evidence is what is read beside the objects of the ledger, to name causes that
// are not a volume's. What could not be read is missing.
type Evidence struct {
	// Events are those of the objects that are explained.
	Events []corev1.Event
	// Asked are the objects of which events were asked for.
	Asked map[types.UID]bool
	// Unseen is why events could not be read; nil: they were.
	Unseen *Unseen
	// Named says which of the objects exist that pods name which are explained.
	Named map[NamedObject]Presence
}

// eventsOf lists the events of an object, the newest last.
func (e Evidence) eventsOf(uid types.UID) []corev1.Event {
	var list []corev1.Event
	for _, event := range e.Events {
		if event.InvolvedObject.UID == uid {
			list = append(list, event)
		}
	}
	slices.SortStableFunc(list, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	return list
}

// lastEvent is the newest event of an object with one of these reasons, or nil.
func (e Evidence) lastEvent(uid types.UID, reasons ...string) *corev1.Event {
	list := e.eventsOf(uid)
	for i := len(list) - 1; i >= 0; i-- {
		if slices.Contains(reasons, list[i].Reason) {
			return &list[i]
		}
	}
	return nil
}

// eventTime is when an event was seen last.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// firstTime is when an event was seen first.
func firstTime(e *corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return eventTime(e)
}

// leadership is what a component's Lease says.
type leadership uint8

const (
	leadUnknown leadership = iota // Leases could not be read, or what the component does contradicts its own
	leads
	lapsed // its Lease ran out
	never  // there is no Lease of that name
)

// leads says whether anybody leads a component, and since when nobody does.
func (w *World) leads(name string) (leadership, time.Time) {
	if !w.Leases.Seen {
		return leadUnknown, time.Time{}
	}
	l := Lease(w.Leases.Components, name, w.home())
	switch {
	case l == nil:
		return never, time.Time{}
	case Lapsed(l, w.Leases.asRead(w.Now)) == 0:
		return leads, time.Time{}
	case w.worksWithout(l):
		return leadUnknown, time.Time{}
	}
	return lapsed, renewedAt(l)
}

// sentence ends a text with exactly one full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}
