// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
)

func owned(namespace string, owner metav1.OwnerReference) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "t", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1"},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionUnknown, Reason: string(rules.ClaimMissing)}}},
	}
}

func counted() (e *Events, clock *time.Time, told func() (tickets, owners int)) {
	recorder := record.NewFakeRecorder(1000)
	e, clock = NewEventsWith(recorder), new(time.Unix(1000, 0))
	e.now = func() time.Time { return *clock }
	return e, clock, func() (tickets, owners int) {
		for len(recorder.Events) > 0 {
			if strings.Contains(<-recorder.Events, " ticket t: ") {
				owners++
			} else {
				tickets++
			}
		}
		return tickets, owners
	}
}

// The recorder would keep all of an impossible reference.
func TestOwnersTooLongToBeRealAreNotTold(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	longest := metav1.OwnerReference{APIVersion: long(317), Kind: long(63), Name: long(253), UID: types.UID(long(128))}
	for name, test := range map[string]struct {
		change func(*metav1.OwnerReference)
		want   int
	}{
		"as long as can be":   {func(*metav1.OwnerReference) {}, 2},
		"too long name":       {func(o *metav1.OwnerReference) { o.Name += "x" }, 0},
		"too long kind":       {func(o *metav1.OwnerReference) { o.Kind += "x" }, 0},
		"too long apiVersion": {func(o *metav1.OwnerReference) { o.APIVersion += "x" }, 0},
		"too long UID":        {func(o *metav1.OwnerReference) { o.UID += "x" }, 0},
		"a megabyte":          {func(o *metav1.OwnerReference) { o.Name = long(1 << 20) }, 0},
	} {
		e, _, told := counted()
		owner := longest
		test.change(&owner)
		e.TicketChanged(nil, owned("shop", owner))
		e.TicketEnded(owned("shop", owner), rules.EndTimeOver)
		if tickets, owners := told(); tickets != 2 || owners != test.want {
			t.Errorf("%s: the ticket has %d events, want 2, and its owner %d, want %d", name, tickets, owners, test.want)
		}
	}
}

func TestTicketsEventsHaveAQuota(t *testing.T) {
	e, clock, told := counted()
	expect := func(what string, tickets, owners int) {
		t.Helper()
		if gotTickets, gotOwners := told(); gotTickets != tickets || gotOwners != owners {
			t.Errorf("%s: tickets have %d events, want %d, their owners %d, want %d", what, gotTickets, tickets, gotOwners, owners)
		}
	}
	many := func(namespace string, n int) {
		for i := range n {
			e.TicketChanged(nil, owned(namespace, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("o", i), UID: "o"}))
		}
	}
	many("many", 300)
	expect("300 tickets", 10, 10)
	many("other", 1)
	expect("another namespace's ticket", 1, 1)
	for range 300 {
		e.TicketEnded(owned("many", metav1.OwnerReference{}), rules.EndTimeOver)
	}
	expect("their ends", 10, 10)
	*clock = clock.Add(4 * time.Second)
	many("many", 5)
	expect("4 s later", 0, 0)
	*clock = clock.Add(time.Second)
	many("many", 5)
	expect("5 s later", 1, 1)
	*clock = clock.Add(time.Hour)
	many("many", 20)
	expect("an hour later", 10, 10)
}

func TestOperationsEventsHaveAQuota(t *testing.T) {
	e, clock, told := counted()
	held := func(namespace string) bool {
		return e.OperationHeld(Object{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "data"}, "OperationPaused", "it waits")
	}
	for range 300 {
		e.OperationTicket(Object{Kind: "PersistentVolumeClaim", Namespace: "many", Name: "data"}, "ticket is made")
	}
	if n, _ := told(); n != 10 || held("many") || !held("other") {
		t.Errorf("%d events", n)
	}
	*clock = clock.Add(5 * time.Second)
	if !held("many") || held("many") {
		t.Error("5 s later there is not one")
	}
	if n, _ := told(); n != 2 {
		t.Errorf("%d events are written, want one of each namespace", n)
	}
}

func TestQuotasAreForgotten(t *testing.T) {
	q, now := newQuota(), time.Unix(1000, 0)
	spend := func(namespace string) (n int) {
		for q.take(namespace, now) {
			n++
		}
		return n
	}
	spend("first")
	for i := range quotaNamespaces - 1 {
		spend(fmt.Sprint(i))
	}
	if n := spend("0"); n != 0 {
		t.Errorf("a namespace has %d events more, before there are too many namespaces", n)
	}
	spend("one more")
	if n := q.full.Len(); n != quotaNamespaces {
		t.Errorf("%d namespaces are kept, want %d", n, quotaNamespaces)
	}
	if n := spend("first"); n != eventsAtOnce {
		t.Errorf("the one that was longest without has %d events, want %d", n, eventsAtOnce)
	}
}
