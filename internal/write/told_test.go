// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

// Successful writes of holds and tickets are reported on them and on the volume's claim, once.
func TestWritesAreTold(t *testing.T) {
	recorder := record.NewFakeRecorder(20)
	recorder.IncludeObject = true
	manual := ticketObject()
	manual.Spec.Type, manual.OwnerReferences = v1alpha1.TicketManual, nil
	w := start(t, func(s *apitest.Server) {
		s.Put("volumetickets", manual)
		s.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "c"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-data"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
	}, func(c *write.Config) { c.Events = report.NewEventsWith(recorder) })
	told := func(what string, want ...string) {
		t.Helper()
		if len(recorder.Events) != len(want) {
			t.Fatalf("%s: %d events, want %d", what, len(recorder.Events), len(want))
		}
		for _, text := range want {
			if got := <-recorder.Events; !strings.Contains(got, text) {
				t.Errorf("%s: event %q does not say %q", what, got, text)
			}
		}
	}
	hold := func(state ledger.HoldState, reason ledger.Code) error {
		expect := ""
		if h := w.observer.Snapshot().Volume(data).Hold; h != nil {
			expect = h.Version
		}
		return w.Do(t.Context(), rules.Step{Kind: rules.WriteHold, Volume: data, Expect: expect, Hold: ledger.Hold{
			Node: "n1", Transitions: 1, State: state, Reason: reason, Message: "words", PVs: []string{"pv-data"},
		}})
	}
	must(t, hold(ledger.HoldHeld, ""))
	told("the usual course")
	must(t, hold(ledger.HoldDetachPending, rules.DetachFailed))
	told("the detach fails", "Warning DetachFailed words involvedObject{kind=VolumeHold", "Warning DetachFailed words involvedObject{kind=PersistentVolumeClaim")
	must(t, hold(ledger.HoldDetachPending, rules.DetachFailed))
	told("it is written again")
	isStale(t, w.Do(t.Context(), rules.Step{Kind: rules.WriteHold, Volume: data, Expect: "1", Hold: ledger.Hold{State: ledger.HoldUnknown, Reason: rules.NodeUnreachable}}))
	told("a write that is refused")
	isStale(t, w.Do(t.Context(), rules.Step{Kind: rules.DeleteHold, Volume: data, Expect: "1"}))
	told("a deletion that is refused")
	must(t, w.Do(t.Context(), rules.Step{Kind: rules.DeleteHold, Volume: data, Expect: w.observer.Snapshot().Volume(data).Hold.Version}))
	told("the hold ends", "Normal Resolved DetachFailed is over: volume d^data is at no node involvedObject{kind=VolumeHold", "Normal Resolved DetachFailed is over: volume d^data is at no node involvedObject{kind=PersistentVolumeClaim")

	object, _ := w.observer.Ticket(ledger.TicketID{Namespace: "shop", Name: "p1"})
	granted := object.DeepCopy()
	granted.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGranted}}
	must(t, w.WriteTicketStatus(t.Context(), granted))
	told("a ticket is granted", "Normal Granted its volumes are reserved for it at node n1 involvedObject{kind=VolumeTicket")
	isStale(t, w.WriteTicketStatus(t.Context(), granted))
	told("a ticket's write that is refused")
}
