// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// A detach that was seen, and is over, is told with its end: no later than the volume was
// attached here. One that is not over, or of another volume, is not.
func TestADetachThatIsOverHasAnEnd(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC) }
	attaching := Step{Stage: StageAttaching, Volume: "a", At: at(9)}
	leaving := Step{Stage: StageDetaching, Volume: "a", At: at(5)}
	for what, c := range map[string]struct {
		steps, seen []Step
		want        string
	}{
		"over":                       {[]Step{attaching}, []Step{leaving}, "Detaching a 5, Detached a ≤9, Attaching a 9"},
		"seen twice":                 {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "a", At: at(7), NotAfter: true}, leaving}, "Detaching a 5, Detached a ≤9, Attaching a 9"},
		"not seen":                   {[]Step{attaching}, nil, "Attaching a 9"},
		"another volume":             {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "b", At: at(5)}}, "Attaching a 9"},
		"another step":               {[]Step{attaching}, []Step{{Stage: StageBound, At: at(1)}}, "Attaching a 9"},
		"under way":                  {[]Step{leaving}, []Step{leaving}, "Detaching a 5"},
		"attached before":            {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "a", At: at(11)}}, "Attaching a 9"},
		"only that it was elsewhere": {[]Step{attaching}, []Step{{Volume: "a", At: at(2)}}, "Detached a ≤9, Attaching a 9"},
	} {
		line := Timeline{Steps: c.steps}
		line.leave("a", c.seen)
		line.finish(true, true, true)
		var got []string
		for _, s := range line.Steps {
			before := ""
			if s.NotAfter {
				before = "≤"
			}
			got = append(got, fmt.Sprintf("%s %s %s%d", s.Stage, s.Volume, before, s.At.Second()))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", what, text, c.want)
		}
	}
}

// A wait for a turn at the driver is known from the pod's own events, of that volume, and in the
// words that moorage-controller has for it; of one that is over, too.
func TestAWaitForATurnIsToldByEvents(t *testing.T) {
	told := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}}
	event := func(code, words string) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: "p"}, Reason: volumeWait, Message: code + ": " + words, FirstTimestamp: metav1.NewTime(told)}
	}
	words := arbiter.Reason{Code: arbiter.NoFreeWorker, Claim: "data", Node: "n1", Driver: "d", Policy: "p", Limit: 1}.Message()
	queue := string(arbiter.NoFreeWorker)
	other, late := event(queue, words), event(queue, words)
	other.InvolvedObject.UID = "q"
	late.FirstTimestamp, late.EventTime = metav1.Time{}, metav1.NewMicroTime(told)
	for what, c := range map[string]struct {
		event corev1.Event
		want  bool
	}{
		"its own":                  {event(queue, words), true},
		"with the newer time":      {late, true},
		"of another pod":           {other, false},
		"of another volume":        {event(queue, strings.Replace(words, "data", "data-2", 1)), false},
		"of another wait":          {event(string(arbiter.Attaching), words), false},
		"of another kind of event": {corev1.Event{InvolvedObject: corev1.ObjectReference{UID: "p"}, Reason: "Scheduled", Message: queue + ": " + words, FirstTimestamp: metav1.NewTime(told)}, false},
	} {
		got := queued(pod, "data", []corev1.Event{c.event})
		if len(got) != map[bool]int{true: 1}[c.want] {
			t.Errorf("an event %s: steps %+v", what, got)
		} else if c.want && (got[0].Stage != StageQueued || got[0].Volume != "data" || !got[0].At.Equal(told) || !got[0].NotAfter) {
			t.Errorf("an event %s: step %+v", what, got[0])
		}
	}
}
