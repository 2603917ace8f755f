// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

// Holds change by compare-and-swap; the loser knows the other's write.
func TestWriteHold(t *testing.T) {
	w := start(t, nil, nil)
	write := func(expect string, node ledger.NodeName, transitions int64) error {
		return w.Do(t.Context(), rules.Step{Kind: rules.WriteHold, Volume: data, Expect: expect, Hold: ledger.Hold{
			Node: node, Transitions: transitions, State: ledger.HoldHeld, PVs: []string{"pv-data"},
		}})
	}
	hold := func() *ledger.Hold { return w.observer.Snapshot().Volume(data).Hold }
	must(t, write("", "n1", 1))
	if hold().Node != "n1" {
		t.Fatalf("the ledger says %+v", hold())
	}
	first := hold().Version
	isStale(t, write("", "n2", 1)) // it exists already

	must(t, write(first, "n2", 2))
	isStale(t, write(first, "n3", 2)) // it has changed since
	if h := hold(); h.Node != "n2" || h.Transitions != 2 {
		t.Errorf("the ledger says %+v", h)
	}
	var object v1alpha1.VolumeHold
	if !w.server.Get("volumeholds", "", v1alpha1.VolumeHoldName("d", "data"), &object) || object.Status.Holder.Node != "n2" || object.Status.Summary.Claim != "shop/data" {
		t.Errorf("the hold is %+v", object.Status)
	}

	isStale(t, w.Do(t.Context(), rules.Step{Kind: rules.DeleteHold, Volume: data, Expect: first}))
	must(t, w.Do(t.Context(), rules.Step{Kind: rules.DeleteHold, Volume: data, Expect: hold().Version, Hold: ledger.Hold{Transitions: 2, PVs: []string{"pv-data"}}}))
	w.until("the hold is gone", func(s ledger.Snapshot) bool { v := s.Volume(data); return v == nil || v.Hold == nil })
}

// A write that the API server would refuse is not sent.
func TestHoldIsNotWrittenOnOldFacts(t *testing.T) {
	w := start(t, nil, nil)
	write := func(node ledger.NodeName) error {
		return w.Do(t.Context(), rules.Step{Kind: rules.WriteHold, Volume: data, Hold: ledger.Hold{
			Node: node, Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv-data"},
		}})
	}
	arrived, goOn := make(chan struct{}, 2), make(chan struct{})
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Writes() {
			arrived <- struct{}{}
			<-goOn
		}
		serve()
		return nil
	})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- write("n1") }()
	<-arrived
	go func() { second <- write("n2") }()
	w.HoldWriters(t, data, 2)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.Do(ended, rules.Step{Kind: rules.WriteHold, Volume: data}); err == nil || errors.Is(err, protocol.ErrStale) {
		t.Errorf("whoever is told to stop while others write: %v", err)
	}
	close(goOn)
	must(t, <-first)
	isStale(t, <-second)
	if writes := w.server.Writes(); len(writes) != 1 {
		t.Errorf("writes %q, want one", writes)
	}
	if h := w.observer.Snapshot().Volume(data).Hold; h.Node != "n1" {
		t.Errorf("the ledger says %+v", h)
	}
	w.HoldWriters(t, data, 0)
}

// An older definition drops the fence: the write fails with a remedy, and the detach must not follow.
func TestWriteHoldWithAnOlderDefinition(t *testing.T) {
	w := start(t, nil, nil)
	w.server.Unknown("volumeholds", "fenced")
	step := rules.Step{Kind: rules.WriteHold, Volume: data, Hold: ledger.Hold{
		Node: "n1", Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv-data"}, Fences: []ledger.Fence{{Node: "n1", Rule: "OutOfService"}},
	}}
	err := w.Do(t.Context(), step)
	if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition is older") {
		t.Errorf("the write of a record that was dropped ends with %v", err)
	}
	if hold := w.observer.Snapshot().Volume(data).Hold; hold == nil || hold.Node != "n1" {
		t.Errorf("the ledger does not know what was written: %+v", hold)
	}
}

// An older definition drops the boot: the write stands, and one error is logged.
func TestDroppedBootIsSaidOnce(t *testing.T) {
	w := start(t, nil, nil)
	w.server.Unknown("volumeholds", "holder.bootID")
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	for transitions := range int64(3) {
		expect := ""
		if v := w.observer.Snapshot().Volume(data); v.Hold != nil {
			expect = v.Hold.Version
		}
		must(t, w.Do(ctx, rules.Step{Kind: rules.WriteHold, Volume: data, Expect: expect, Hold: ledger.Hold{
			Node: "n1", BootID: "b1", Transitions: transitions + 1, State: ledger.HoldHeld, PVs: []string{"pv-data"},
		}}))
		if !w.observer.Snapshot().DropsHoldBoots() {
			t.Error("it is not known")
		}
	}
	buffered, _ := logger.GetSink().(ktesting.Underlier)
	said := 0
	for _, entry := range buffered.GetBuffer().Data() {
		if entry.Type == ktesting.LogError && strings.Contains(entry.Message, "bootID") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it was said %d times", said)
	}
}

func ticketObject() *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p1", OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "db", UID: "p1"}}},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
	}
}

func TestWritePolicyStatus(t *testing.T) {
	w := start(t, func(s *apitest.Server) {
		s.Put("attachpolicies", &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: v1alpha1.AttachPolicySpec{Driver: "d"}})
	}, nil)
	object, _ := w.observer.Policy("p")
	next := object.DeepCopy()
	next.Status.Conditions = []metav1.Condition{{Type: v1alpha1.PolicyInEffect, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDriverUnknown}}
	must(t, w.WritePolicyStatus(t.Context(), next))
	if seen, _ := w.observer.Policy("p"); len(seen.Status.Conditions) != 1 {
		t.Errorf("the observer has %+v", seen.Status)
	}
	next.Status.Conditions = nil
	isStale(t, w.WritePolicyStatus(t.Context(), next))
	w.server.Remove("attachpolicies", "", "p")
	if err := w.WritePolicyStatus(t.Context(), next); err == nil || errors.Is(err, protocol.ErrStale) {
		t.Errorf("of a policy that is gone: %v", err)
	}
}

// A claim read before a ticket loses its grant counts at once; without an answer none is lost.
func TestRefusalReadsTheClaim(t *testing.T) {
	w := start(t, func(s *apitest.Server) { s.Put("volumetickets", ticketObject()) }, nil)
	w.server.Lag(true)
	id := ledger.TicketID{Namespace: "shop", Name: "p1"}
	refuse := func() (written bool, err error) {
		k := w.observer.Snapshot().Ticket(id)
		verdict := rules.Verdict{Outcome: rules.Deny, Reasons: []rules.Reason{{Code: rules.ClaimMissing}}}
		err = w.Carry(t.Context(), protocol.Interruption(k, verdict, k.Volumes, time.Now()), func(protocol.Request) (*v1alpha1.VolumeTicket, error) {
			written = true
			object, _ := w.observer.Ticket(id)
			return object.DeepCopy(), nil
		})
		return written, err
	}
	if written, err := refuse(); err != nil || !written {
		t.Errorf("without the claim: written %t, error %v", written, err)
	}
	w.server.Put("persistentvolumeclaims", boundClaim("data", "pv-data"))
	written, err := refuse()
	isStale(t, err)
	if written || w.observer.Snapshot().Claim(ledger.ClaimKey{Namespace: "shop", Name: "data"}) == nil {
		t.Errorf("with the claim: written %t, and the ledger knows %v", written, w.observer.Snapshot().Claim(ledger.ClaimKey{Namespace: "shop", Name: "data"}))
	}
	w.server.Intercept(func(apitest.Request, func()) error { return apierrors.NewInternalError(errors.New("no")) })
	if written, err := refuse(); err == nil || errors.Is(err, protocol.ErrStale) || written {
		t.Errorf("without an answer: written %t, error %v", written, err)
	}
}

func TestTickets(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "p1"}
	w := start(t, func(s *apitest.Server) { s.Put("volumetickets", ticketObject()) }, nil)
	fact := func() *ledger.Ticket { return w.observer.Snapshot().Ticket(id) }
	object, _ := w.observer.Ticket(id)
	old := object.DeepCopy()
	granted := object.DeepCopy()
	granted.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted"}}
	must(t, w.WriteTicketStatus(t.Context(), granted))
	if fact().Phase != ledger.TicketGranted {
		t.Errorf("the ledger says %s", fact().Phase)
	}
	old.Status.Epoch = 9
	isStale(t, w.WriteTicketStatus(t.Context(), old))

	stale := *fact()
	stale.Version = "1"
	isStale(t, w.DeleteTicket(t.Context(), &stale))
	if fact() == nil {
		t.Fatal("the reservation ended, and the ticket is there")
	}
	must(t, w.DeleteTicket(t.Context(), fact()))
	if fact() != nil {
		t.Error("the ticket is deleted, and its reservation goes on")
	}
	isStale(t, w.WriteTicketStatus(t.Context(), granted))
}

// A grant without an answer is settled before the next decision.
func TestTicketStatusWithoutAnswer(t *testing.T) {
	w := start(t, func(s *apitest.Server) { s.Put("volumetickets", ticketObject()) }, func(c *write.Config) { c.Timeout = time.Second })
	id := ledger.TicketID{Namespace: "shop", Name: "p1"}
	object, _ := w.observer.Ticket(id)
	granted := object.DeepCopy()
	granted.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted"}}
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb == "update" {
			return errors.New("the connection breaks")
		}
		return nil
	})
	isStale(t, w.WriteTicketStatus(t.Context(), granted))
	if phase := w.observer.Snapshot().Ticket(id).Phase; phase != ledger.TicketGranted {
		t.Errorf("the ledger says %s", phase)
	}
}

// A single patch carries annotation and condition, to that pod only.
func TestPublishPod(t *testing.T) {
	pod := usingPod("db", "p1", "data")
	pod.Annotations = map[string]string{"theirs": "stays"}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w := start(t, func(s *apitest.Server) { s.Put("pods", pod) }, nil)
	status := write.PodStatus{Annotation: "{}", Condition: corev1.PodCondition{Type: v1alpha1.PodSafeToMount, Status: corev1.ConditionTrue, Reason: "Safe"}}
	must(t, w.PublishPod(t.Context(), w.observer.Snapshot().Pod("p1"), status))
	w.writes("patch pods/status shop/db")
	var got corev1.Pod
	w.server.Get("pods", "shop", "db", &got)
	if got.Annotations["theirs"] != "stays" || got.Annotations[v1alpha1.AnnotationVolumeStatus] != "{}" || len(got.Status.Conditions) != 2 {
		t.Errorf("annotations %v, conditions %v", got.Annotations, got.Status.Conditions)
	}
	waits := status
	waits.Condition.Status, waits.Condition.Message = corev1.ConditionFalse, "volume data is being detached from worker-1"
	must(t, w.PublishPod(t.Context(), w.observer.Snapshot().Pod("p1"), waits))
	must(t, w.PublishPod(t.Context(), w.observer.Snapshot().Pod("p1"), status))
	got = corev1.Pod{}
	w.server.Get("pods", "shop", "db", &got)
	if c := got.Status.Conditions[slices.IndexFunc(got.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.PodSafeToMount })]; c.Status != corev1.ConditionTrue || c.Message != "" {
		t.Errorf("condition %+v", c)
	}
	must(t, w.PublishPod(t.Context(), &ledger.Pod{Namespace: "shop", Name: "db", UID: "p0"}, write.PodStatus{Annotation: "wrong"}))
	w.server.Get("pods", "shop", "db", &got)
	if got.Annotations[v1alpha1.AnnotationVolumeStatus] != "{}" {
		t.Error("another pod's status was written")
	}
	must(t, w.PublishPod(t.Context(), &ledger.Pod{Namespace: "shop", Name: "nobody", UID: "p0"}, status))
}
