// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func heard() (*report.Events, func() []string) {
	recorder := record.NewFakeRecorder(20)
	recorder.IncludeObject = true
	return report.NewEventsIn(context.Background(), recorder), func() []string {
		var list []string
		for len(recorder.Events) > 0 {
			list = append(list, <-recorder.Events)
		}
		return list
	}
}

func expect(t *testing.T, what string, got []string, want ...[]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d events, want %d: %q", what, len(got), len(want), got)
		return
	}
	for _, parts := range want {
		if !slices.ContainsFunc(got, func(event string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(event, part) })
		}) {
			t.Errorf("%s: no event says %q: %q", what, parts, got)
		}
	}
}

func holdWith(kind string, status metav1.ConditionStatus, reason ledger.Code, message string) *v1alpha1.VolumeHold {
	h := &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: "h", UID: types.UID("u")},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: "d", Handle: "x"},
		Status:     v1alpha1.VolumeHoldStatus{Holder: &v1alpha1.Holder{Node: "n1"}},
	}
	if kind != "" {
		h.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: string(reason), Message: message}}
	}
	return h
}

// The usual course is not told.
func TestHoldChanged(t *testing.T) {
	e, events := heard()
	claim := &ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "c"}
	held := holdWith("", "", "", "")
	inUse := holdWith(v1alpha1.HoldDetachPending, metav1.ConditionTrue, rules.InUse, "in use")
	failed := holdWith(v1alpha1.HoldDetachPending, metav1.ConditionTrue, rules.DetachFailed, "no such machine")
	again := holdWith(v1alpha1.HoldDetachPending, metav1.ConditionTrue, rules.DetachFailed, "no such machine, request 2")
	lost := holdWith(v1alpha1.HoldAttached, metav1.ConditionUnknown, rules.NodeUnreachable, "not ready")
	refused := holdWith(v1alpha1.HoldAttached, metav1.ConditionFalse, rules.AttachFailed, "no such disk") // waiting pods are told
	free := holdWith(v1alpha1.HoldAttached, metav1.ConditionFalse, "Detached", "")
	free.Status.Holder = nil

	for _, usual := range [][2]*v1alpha1.VolumeHold{{nil, held}, {held, inUse}, {inUse, free}, {failed, again}, {held, refused}, {refused, held}} {
		e.HoldChanged(usual[0], usual[1], claim)
		expect(t, "the usual course", events())
	}
	e.HoldChanged(inUse, failed, claim)
	expect(t, "the detach fails", events(),
		[]string{"Warning DetachFailed no such machine", "VolumeHold"}, []string{"Warning DetachFailed no such machine", "PersistentVolumeClaim"})
	e.HoldChanged(failed, lost, nil)
	expect(t, "the node is lost, and there is no claim", events(), []string{"Warning NodeUnreachable not ready", "VolumeHold"})
	e.HoldChanged(nil, lost, nil)
	expect(t, "a hold that is new", events(), []string{"NodeUnreachable"})
	e.HoldChanged(lost, free, claim)
	expect(t, "it is over", events(), []string{"Normal Resolved NodeUnreachable is over: volume d^x is at no node", "VolumeHold"},
		[]string{"Normal Resolved", "PersistentVolumeClaim"})
	e.HoldChanged(failed, held, nil)
	expect(t, "the volume is wanted again", events(), []string{"Normal Resolved DetachFailed is over: volume d^x is held by n1"})
}

// A pod's ticket is not told.
func TestTicketChanged(t *testing.T) {
	e, events := heard()
	ticket := func(kind v1alpha1.TicketType, conditions ...metav1.Condition) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", UID: types.UID("u")},
			Spec:       v1alpha1.VolumeTicketSpec{Type: kind, NodeName: "n1"},
			Status:     v1alpha1.VolumeTicketStatus{Conditions: conditions},
		}
	}
	granted := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.TicketGranted, Status: status, Reason: reason, Message: "words"}
	}
	satisfied := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.TicketSatisfied, Status: status, Reason: reason, Message: "words"}
	}
	manual := func(conditions ...metav1.Condition) *v1alpha1.VolumeTicket {
		return ticket(v1alpha1.TicketManual, conditions...)
	}
	yes, done := granted(metav1.ConditionTrue, "Granted"), satisfied(metav1.ConditionTrue, "Satisfied")
	waits := granted(metav1.ConditionUnknown, "HeldElsewhere")
	for _, test := range []struct {
		what     string
		old, now *v1alpha1.VolumeTicket
		want     []string
	}{
		{"nobody has looked", nil, manual(granted(metav1.ConditionUnknown, v1alpha1.ReasonPending)), nil},
		{"it waits for what passes", nil, manual(granted(metav1.ConditionUnknown, "Detaching")), nil},
		{"it waits", manual(), manual(waits), []string{"Warning HeldElsewhere node n1: words", "VolumeTicket"}},
		{"it still waits", manual(waits), manual(waits), nil},
		{"it is granted", manual(waits), manual(yes), []string{"Normal Granted its volumes are reserved for it at node n1"}},
		{"it is attaching", manual(yes), manual(yes, satisfied(metav1.ConditionFalse, "Attaching")), nil},
		{"the attach fails", manual(yes), manual(yes, satisfied(metav1.ConditionFalse, "AttachFailed")), []string{"Warning AttachFailed node n1: words"}},
		{"it is satisfied", manual(yes), manual(yes, done), []string{"Normal Satisfied its volumes are attached to node n1"}},
		{"it is refused", nil, manual(granted(metav1.ConditionFalse, "NoFreeSlot")), []string{"Warning NoFreeSlot node n1: words"}},
	} {
		e.TicketChanged(test.old, test.now)
		if test.want == nil {
			expect(t, test.what, events())
		} else {
			expect(t, test.what, events(), test.want)
		}
	}
}

func TestClaimsAreTold(t *testing.T) {
	e, events := heard()
	pod := &ledger.Pod{Namespace: "shop", Name: "db", UID: "p"}
	claim := &ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "c"}
	e.Waits(pod, claim, rules.Reason{Code: rules.AttachFailed, Claim: "data", Node: "n1", Detail: "no such disk"})
	expect(t, "it waits", events(), []string{"Warning FailedAttachVolume AttachFailed: ", "Pod"},
		[]string{"Warning FailedAttachVolume pod db waits: AttachFailed: ", "no such disk", "PersistentVolumeClaim"})
	e.Ready(pod, "n1", []*ledger.Claim{claim})
	expect(t, "it is over", events(), []string{"Normal VolumesReady every volume is attached to n1", "Pod"},
		[]string{"Normal VolumesReady pod db has it at n1", "PersistentVolumeClaim"})
	var none *report.Events
	none.HoldChanged(nil, holdWith("", "", "", ""), claim) // no recorder is no reason to fail
	none.TicketChanged(nil, &v1alpha1.VolumeTicket{})
	none.Waits(pod, claim, rules.Reason{})
	none.Ready(pod, "n1", nil)
}

func TestTransientCodesAreDocumented(t *testing.T) {
	_, list, ok := strings.Cut(docs.Reasons, "What usually passes by itself (")
	list, _, ended := strings.Cut(list, ")")
	if !ok || !ended {
		t.Fatal("docs/reasons.md does not say what usually passes by itself")
	}
	var documented, passing []string
	for code := range strings.SplitSeq(list, ", ") {
		documented = append(documented, strings.Trim(code, "`"))
	}
	for _, code := range rules.Codes() {
		if rules.Transient(code) {
			passing = append(passing, string(code))
		}
	}
	slices.Sort(documented)
	slices.Sort(passing)
	if !slices.Equal(documented, passing) {
		t.Errorf("docs/reasons.md says that %q pass, the code says %q", documented, passing)
	}
}
