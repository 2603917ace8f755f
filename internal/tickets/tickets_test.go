// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/sample"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

const driver = sample.Driver

var (
	now    = sample.Now
	facts  = sample.Ledger
	pod    = sample.Pod
	ticket = sample.Ticket
)

func TestMessagesAreBounded(t *testing.T) {
	v := rules.Verdict{}
	for range 100 {
		v.Reasons = append(v.Reasons, rules.Reason{Code: rules.ClaimMissing, Claim: strings.Repeat("ä", 20)})
	}
	c := Condition(v1alpha1.TicketGranted, metav1.ConditionFalse, v, "", &v1alpha1.VolumeTicket{}, now)
	if len(c.Message) > maxMessage || strings.ToValidUTF8(c.Message, "?") != c.Message || c.Reason != string(rules.ClaimMissing) {
		t.Errorf("condition %+v", c)
	}
}

func TestConditionsHaveTheirGeneration(t *testing.T) {
	object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		if c := Condition(v1alpha1.TicketGranted, status, rules.Verdict{}, "", object, now); c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(now) {
			t.Errorf("condition %+v", c)
		}
	}
}

func TestTicketsOfANodeShareItsSlots(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := &ticketwriter.Writer{Ledger: facts(), Unseen: map[string]bool{}}
		there := map[string]bool{"a": true}
		room := 2
		for i := range rapid.IntRange(1, 8).Draw(t, "tickets") {
			claim := fmt.Sprintf("c%d", i)
			switch rapid.IntRange(0, 3).Draw(t, "its claim is missing, not seen yet, seen, in use") {
			case 1:
				there[claim], w.Unseen[claim] = true, true
			case 2:
				there[claim] = true
				w.Put(claim)
			case 3:
				if room > 0 {
					room--
					w.Put(claim)
					w.Ledger.Apply(now, pod(fmt.Sprint("bound", i), "n1", claim))
					continue
				}
			}
			w.Ledger.Apply(now, pod(fmt.Sprint("p", i), "", claim))
			k := ticket(fmt.Sprint("p", i), "n1", ledger.TypeManual, claim)
			k.Created = rapid.Int64Range(1, 3).Draw(t, "created")
			if rapid.Bool().Draw(t, "its writer names the claim's UID") {
				k.Volumes[0].ClaimUID = claim
			}
			if rapid.Bool().Draw(t, "it asks for two") {
				k.Volumes = append(k.Volumes, ledger.TicketVolume{Claim: "a"})
			}
			w.Ledger.Apply(now, k)
		}
		decideAll(t, w)
		judge(t, w)
	})
}

func decideAll(t *rapid.T, w *ticketwriter.Writer) {
	k := keeper(t, w)
	for range 2 + len(w.Unseen) {
		if _, err := k.grantAt(context.Background(), "n1"); err != nil {
			t.Fatal(err)
		}
		k.writing.Wait()
	}
}

func keeper(t interface{ Fatal(...any) }, w *ticketwriter.Writer) *Keeper {
	k, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }, Order: &sync.Mutex{}, Waits: &Waits{}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func judge(t *rapid.T, w *ticketwriter.Writer) {
	s := w.Ledger.Snapshot()
	used := 0
	for v := range s.Volumes() {
		if place := v.OnNode("n1"); place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
			return u.Pod != "" || s.Ticket(u.Ticket).Phase == ledger.TicketGranted
		}) {
			used++
		}
	}
	if used > 2 {
		t.Fatalf("%d slots are used of 2", used)
	}
	for k := range s.Tickets() {
		if k.Phase != ledger.TicketPending {
			continue
		}
		if k.Reason == "" {
			t.Fatalf("ticket %s is not decided on", k.ID)
		}
		if d := protocol.Rule(rules.Arbiter{}, s, k, now); d.Ruling == protocol.Grant {
			t.Fatalf("ticket %s waits (%s), and there is room", k.ID, k.Reason)
		}
	}
}
