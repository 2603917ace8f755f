// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func refusedAt(n ledger.NodeName, words string) ledger.Attachment {
	return ledger.Attachment{
		Name: ledger.AttachmentName(promised, n), UID: "a-" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true,
		AttachError: ledger.CallError{Code: 9, Message: words},
	}
}

func holdWritten(t *testing.T, l *ledger.Ledger, now time.Time) rules.Step {
	t.Helper()
	steps := slices.DeleteFunc(rules.Arbiter{}.Plan(l.Snapshot(), promised, now).Steps, func(s rules.Step) bool {
		return s.Kind != rules.WriteHold && s.Kind != rules.DeleteHold
	})
	switch len(steps) {
	case 0:
		return rules.Step{}
	case 1:
		return steps[0]
	}
	t.Fatalf("steps %+v", steps)
	return rules.Step{}
}

// The hold ends with the error, unless it has transitions to keep.
func TestRefusedAttachOfASharedVolume(t *testing.T) {
	now := time.Unix(1000, 0)
	shared := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: promised, Access: ledger.AccessMany}
	first, second := refusedAt("n1", "first"), refusedAt("n2", "second")
	attached := first
	attached.Attached, attached.AttachError = true, ledger.CallError{}
	said := func(words string, transitions int64) ledger.HoldSeen {
		return ledger.HoldSeen{Volume: promised, Hold: ledger.Hold{
			Version: "7", Transitions: transitions, PVs: []string{"pv"}, State: ledger.HoldAttachFailed, Reason: rules.AttachFailed, Message: words,
		}}
	}
	second7 := "attaching volume pv to n2 failed and will be tried again: second (FailedPrecondition)"
	for name, test := range map[string]struct {
		events []ledger.Event
		do     rules.Kind
		state  ledger.HoldState
		words  string
	}{
		"an attach fails":                 {[]ledger.Event{first}, rules.WriteHold, ledger.HoldAttachFailed, "first (FailedPrecondition)"},
		"two do":                          {[]ledger.Event{second, first}, rules.WriteHold, ledger.HoldAttachFailed, "first (FailedPrecondition)"},
		"the hold quotes one of them":     {[]ledger.Event{second, first, said(second7, 0)}, 0, "", ""},
		"that one goes":                   {[]ledger.Event{first, said(second7, 0)}, rules.WriteHold, ledger.HoldAttachFailed, "first (FailedPrecondition)"},
		"none fails any more":             {[]ledger.Event{attached, said(second7, 0)}, rules.DeleteHold, "", ""},
		"none, and it once was exclusive": {[]ledger.Event{attached, said(second7, 3)}, rules.WriteHold, ledger.HoldFree, ""},
		"an attach that goes well":        {[]ledger.Event{attached}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := promising(now, append([]ledger.Event{shared, ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "s", Name: "data"}}}, test.events...)...)
			got := holdWritten(t, l, now)
			if got.Kind != test.do || got.Hold.State != test.state || !strings.HasSuffix(got.Hold.Message, test.words) || test.words == "" && got.Hold.Message != "" {
				t.Errorf("step %s %+v, want %s %s %q", got.Kind, got.Hold, test.do, test.state, test.words)
			}
			if got.Kind == rules.WriteHold && test.state == ledger.HoldFree && got.Hold.Transitions != 3 {
				t.Errorf("it is left with %d transitions", got.Hold.Transitions)
			}
		})
	}
}

func TestRefusedAttachOfAMigration(t *testing.T) {
	now := time.Unix(1000, 0)
	move := asksFor("move", ledger.TypeLiveMigration, "n2")
	move.Phase = ledger.TicketGranted
	there := refusedAt("n1", "")
	there.Attached, there.AttachError = true, ledger.CallError{}
	hold := ledger.Hold{Version: "1", Node: "n1", NodeUID: "n1", Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv"},
		Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: "move", UID: move.UID}, podNamed("vm")}}
	l := promising(now, ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}, usesData("vm", "n1", ledger.PodLive), move, there,
		refusedAt("n2", "no such machine"), ledger.HoldSeen{Volume: promised, Hold: hold})
	got := holdWritten(t, l, now)
	if got.Kind != rules.WriteHold || got.Hold.State != ledger.HoldAttachFailed || got.Hold.Node != "n1" || !strings.Contains(got.Hold.Message, "to n2 failed") {
		t.Errorf("step %s %+v", got.Kind, got.Hold)
	}
}

// A text that names the code stays unchanged.
func TestTheCodeIsNamed(t *testing.T) {
	for words, want := range map[string]string{
		"rpc error: code = FailedPrecondition desc = busy": "rpc error: code = FailedPrecondition desc = busy",
		"busy": "busy (FailedPrecondition)",
	} {
		if got := (rules.Reason{Code: rules.DetachFailed, Claim: "data", Node: "n1", Detail: words, GRPC: 9}).Message(); !strings.HasSuffix(got, ": "+want) {
			t.Errorf("%q becomes %q", words, got)
		}
	}
	for _, code := range []int32{-1, 0, 17, 1 << 30} {
		if got := (rules.Reason{Code: rules.AttachFailed, Detail: "busy", GRPC: code}).Message(); !strings.HasSuffix(got, ": busy") {
			t.Errorf("code %d: %q", code, got)
		}
	}
}

func TestCodeNamed(t *testing.T) {
	for name, want := range map[string]int32{"OK": 0, "Canceled": 1, "ResourceExhausted": ledger.ResourceExhausted, "Unauthenticated": 16, "Code(17)": 0, "": 0} {
		if got := rules.CodeNamed(name); got != want {
			t.Errorf("%q is code %d, want %d", name, got, want)
		}
	}
}
