// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
)

func gone(t *testing.T, change func(*ledger.Ticket)) (*mortal, *Controller, *time.Time, *record.FakeRecorder) {
	t.Helper()
	k := ticket("p", "n1", ledger.TypeManual, "a")
	k.Phase = ledger.TicketGranted
	change(&k)
	m := newMortal(k)
	m.object.Spec.TTLSeconds, m.object.Spec.NodeName = nil, "n1"
	m.object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "backup.example.com/v1", Kind: "Backup", Name: "nightly", UID: "o"}}
	m.Ledger.Apply(now, ledger.Complete{})
	clock, recorder := now, record.NewFakeRecorder(10)
	c, err := New(Config{Cache: m, Write: m, Now: func() time.Time { return clock }, Events: report.NewEventsWith(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	return m, c, &clock, recorder
}

// The end comes six minutes later. The next leader continues from the written progress.
func TestTicketEndsWithItsNode(t *testing.T) {
	m, first, clock, recorder := gone(t, func(*ledger.Ticket) {})
	id := ledger.TicketID{Namespace: m.object.Namespace, Name: m.object.Name}
	m.Ledger.Apply(*clock, ledger.NodeGone{Name: "n1"})
	looks := func(c *Controller, in time.Duration, deleted bool, elapsed int64) {
		t.Helper()
		*clock = clock.Add(in)
		again, err := c.reconcile(t.Context(), id)
		if !m.deleted && (again <= 0 || again > 30*time.Second) {
			t.Errorf("%s later: it is looked at again after %s, which is not in time for the next step", in, again)
		}
		written := int64(0)
		if m.object.Status.NodeGone != nil {
			written = m.object.Status.NodeGone.ElapsedSeconds
		}
		if err != nil || m.deleted != deleted || written != elapsed {
			t.Errorf("%s later: deleted %t, %d s are written (%v), want %t and %d", in, m.deleted, written, err, deleted, elapsed)
		}
	}
	looks(first, 0, false, 0)
	looks(first, 29*time.Second, false, 0)
	looks(first, time.Second, false, 30)
	looks(first, 5*time.Minute, false, 330)
	looks(first, 30*time.Second, true, 330)
	for _, want := range []string{"Warning TicketEnded NodeDeleted: node n1 does not exist any more", "Warning TicketEnded ticket uid-p: NodeDeleted: "} {
		select {
		case got := <-recorder.Events:
			if !strings.HasPrefix(got, want) {
				t.Errorf("event %q, want %q", got, want)
			}
		default:
			t.Errorf("there is no event %q", want)
		}
	}
}

// The informer may have missed the node's return.
func TestTicketKeepsANodeThatIsThere(t *testing.T) {
	for name, seen := range map[string]func(*ledger.NodeState) ledger.Event{
		"it was gone":     func(n *ledger.NodeState) ledger.Event { return ledger.NodeGone{Name: n.Name} },
		"it was cordoned": func(n *ledger.NodeState) ledger.Event { n.Draining = true; return *n },
	} {
		for _, finalizers := range []bool{false, true} {
			m, c, clock, recorder := gone(t, func(k *ledger.Ticket) {
				k.Finalizers = finalizers
				if name == "it was cordoned" {
					k.OnDrain = ledger.EndOnDrain
				}
			})
			is := m.Ledger.Snapshot().Node("n1").NodeState
			was := is
			was.Version, is.Version = "8", "9"
			m.Ledger.Apply(*clock, seen(&was))
			m.Node = &is
			*clock = clock.Add(time.Hour)
			id := ledger.TicketID{Namespace: m.object.Namespace, Name: m.object.Name}
			if _, err := c.reconcile(t.Context(), id); !m.deleted || err != nil && !errors.Is(err, protocol.ErrStale) {
				t.Errorf("%s: it is not tried (%t), error %v", name, !m.deleted, err)
			}
			if m.Ledger.Snapshot().Ticket(id) == nil || len(recorder.Events) > 0 {
				t.Errorf("%s, finalizers %t: it is deleted (%t), with %d events, though its node is there", name, finalizers, m.Ledger.Snapshot().Ticket(id) == nil, len(recorder.Events))
			}
			m.deleted = false
			if _, err := c.reconcile(t.Context(), id); m.deleted || err != nil {
				t.Errorf("%s: with what was read it ends (%t), error %v", name, m.deleted, err)
			}
		}
	}
}

func TestTicketWithAFinalizerEnds(t *testing.T) {
	for _, finalizers := range []bool{false, true} {
		m, c, clock, recorder := gone(t, func(k *ledger.Ticket) { k.Finalizers = finalizers })
		m.Ledger.Apply(*clock, ledger.NodeGone{Name: "n1"})
		*clock = clock.Add(time.Hour)
		id := ledger.TicketID{Namespace: m.object.Namespace, Name: m.object.Name}
		if _, err := c.reconcile(t.Context(), id); err != nil || len(recorder.Events) != 2 || (m.Ledger.Snapshot().Ticket(id) != nil) != finalizers {
			t.Errorf("finalizers %t: %d events, error %v", finalizers, len(recorder.Events), err)
		}
	}
}

func TestTicketEndsOnDrain(t *testing.T) {
	for name, deleting := range map[string]bool{"it exists": false, "it is being deleted": true} {
		m, c, clock, recorder := gone(t, func(k *ledger.Ticket) { k.OnDrain = ledger.EndOnDrain })
		node := m.Ledger.Snapshot().Node("n1").NodeState
		node.Draining, node.Version = true, "9"
		m.Node = &node
		m.Ledger.Apply(*clock, node)
		if deleting {
			m.object.DeletionTimestamp = &metav1.Time{Time: *clock}
		}
		if _, err := c.reconcile(t.Context(), ledger.TicketID{Namespace: m.object.Namespace, Name: m.object.Name}); err != nil || m.deleted == deleting {
			t.Errorf("%s: deleted %t, error %v", name, m.deleted, err)
		}
		if want := 2; !deleting && len(recorder.Events) != want || deleting && len(recorder.Events) > 0 {
			t.Errorf("%s: %d events", name, len(recorder.Events))
		}
	}
}

// Its status can't be written: the seconds to write are those of its own time.
func TestTicketWithTimeLeftEndsWithItsNode(t *testing.T) {
	m, c, clock, _ := gone(t, func(k *ledger.Ticket) { k.TTLSeconds = 7200 })
	id := ledger.TicketID{Namespace: m.object.Namespace, Name: m.object.Name}
	m.Ledger.Apply(*clock, ledger.NodeGone{Name: "n1"})
	if _, err := c.reconcile(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	m.refused = true
	*clock = clock.Add(time.Hour)
	if _, err := c.reconcile(t.Context(), id); !m.deleted || err != nil {
		t.Errorf("its node has been gone for an hour: deleted %t, error %v", m.deleted, err)
	}
}
