// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

type leftover struct {
	*writer
	object *v1alpha1.VolumeTicket
	asked  []protocol.Request
}

func (l *leftover) Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool) {
	return l.object, l.object != nil
}

func (l *leftover) Carry(_ context.Context, task protocol.Task, _ write.Status) error {
	l.asked = append(l.asked, task.Commit)
	return nil
}

// An earlier release's ticket for a pod is deleted once, exactly as seen.
func TestTicketsOfPodsAreDeleted(t *testing.T) {
	deleted := metav1.NewTime(now)
	for name, test := range map[string]struct {
		object *v1alpha1.VolumeTicket
		drops  bool
	}{
		"a pod's":           {&v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}, Spec: v1alpha1.VolumeTicketSpec{Type: "Pod"}}, true},
		"a pod's, deleting": {&v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7", DeletionTimestamp: &deleted}, Spec: v1alpha1.VolumeTicketSpec{Type: "Pod"}}, false},
		"not seen yet":      {&v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}, Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual}}, false},
		"gone":              {nil, false},
	} {
		w := &leftover{writer: &writer{Ledger: facts()}, object: test.object}
		c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.reconcile(t.Context(), ledger.TicketID{Namespace: "s", Name: "uid"}); err != nil {
			t.Fatal(err)
		}
		if len(w.asked) > 0 != test.drops {
			t.Errorf("%s: %+v", name, w.asked)
		}
		for _, r := range w.asked {
			if r.Kind != rules.DeleteTicket || r.Key != "s/uid" || r.UID != "u" || r.Version != "7" {
				t.Errorf("%s: it sends %+v", name, r)
			}
		}
	}
}
