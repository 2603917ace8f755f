// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/ticketwriter"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/write"
)

func TestAges(t *testing.T) {
	a := newAges()
	k := ticket("p", "n1", ledger.TypeManual, "a")
	if got, _ := a.of(&k, "", 10*time.Second, now); got != 10*time.Second {
		t.Errorf("at first %s", got)
	}
	if got, _ := a.of(&k, "", 25*time.Second, now.Add(20*time.Second)); got != 30*time.Second {
		t.Errorf("later %s", got)
	}
	k.UID = "another"
	if got, _ := a.of(&k, "", 0, now.Add(time.Hour)); got != 0 {
		t.Errorf("another one of the name: %s", got)
	}
}

type mortal struct {
	*writer
	object  *v1alpha1.VolumeTicket
	deleted bool
	refused bool // to write its status
}

func newMortal(k ledger.Ticket) *mortal {
	return &mortal{writer: &writer{Ledger: facts(k)}, object: &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.ID.Namespace, Name: k.ID.Name, ResourceVersion: k.Version, Annotations: map[string]string{}},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, TTLSeconds: ptr.To(k.TTLSeconds)},
	}}
}

func (m *mortal) leader(t *testing.T, clock *time.Time) *Controller {
	t.Helper()
	c, err := New(Config{Cache: m, Write: m, Now: func() time.Time { return *clock }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *mortal) Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool) { return m.object, true }

func (m *mortal) WriteTicketStatus(_ context.Context, t *v1alpha1.VolumeTicket) error {
	m.object = t
	return nil
}

func (m *mortal) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	if m.refused && task.Commit.Kind == rules.DecideTicket {
		return errors.New("the storage takes no more writes")
	}
	m.deleted = m.deleted || task.Commit.Kind == rules.DeleteTicket
	return ticketwriter.Carry(ctx, m, task, status)
}

func TestTimeToLiveSurvivesTheLeader(t *testing.T) {
	k := ticket("p", "n1", ledger.TypeManual, "a")
	k.TTLSeconds = 600
	m := newMortal(k)
	clock := now
	leader := func() *Controller { return m.leader(t, &clock) }
	looks := func(c *Controller, in, again time.Duration, elapsed int64) {
		t.Helper()
		clock = clock.Add(in)
		left, err := c.reconcile(t.Context(), k.ID)
		if err != nil || left != again || m.object.Status.TTLElapsedSeconds != elapsed {
			t.Errorf("%s later: again in %s, %d s are written (%v), want %s and %d", in, left, m.object.Status.TTLElapsedSeconds, err, again, elapsed)
		}
	}
	first := leader()
	looks(first, 0, time.Minute, 0)
	looks(first, 59*time.Second, time.Minute, 0)
	looks(first, time.Second, time.Minute, 60)
	looks(first, 59*time.Second, time.Minute, 60)

	second := leader() // 59 seconds are counted again
	looks(second, time.Hour, time.Minute, 60)
	looks(second, 535*time.Second, 5*time.Second, 595)
	if m.deleted {
		t.Error("it was deleted before its time was over")
	}
	looks(second, 5*time.Second, 0, 595)
	if !m.deleted {
		t.Error("its time is over, and it is still there")
	}

	looks(first, 0, 0, 595) // sees that it is gone
	if len(first.ttl.seen) > 0 {
		t.Errorf("of a ticket that is gone it keeps %v", first.ttl.seen)
	}
}

// A full etcd may accept only deletions: the ticket is checked when its time is over.
func TestTimeToLiveEndsThoughWritesFail(t *testing.T) {
	for name, after := range map[string]time.Duration{"its own time": 600 * time.Second, "that of its node": 6 * time.Minute} {
		k := ticket("p", "n1", ledger.TypeManual, "a")
		k.Phase = ledger.TicketGranted
		if name == "its own time" {
			k.TTLSeconds = int64(after / time.Second)
		}
		m := newMortal(k)
		m.Ledger.Apply(now, ledger.Complete{})
		if name == "that of its node" {
			m.Ledger.Apply(now, ledger.NodeGone{Name: "n1"})
		}
		clock := now
		c := m.leader(t, &clock)
		if _, err := c.reconcile(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
		const left = 5 * time.Second
		clock, m.refused = clock.Add(after-left), true
		if again, err := c.reconcile(t.Context(), k.ID); err == nil || again != left {
			t.Errorf("%s: it is looked at again after %s (%v), want %s", name, again, err, left)
		}
	}
}

func TestTimeToLiveIsRenewed(t *testing.T) {
	k := ticket("p", "n1", ledger.TypeManual, "a")
	k.TTLSeconds = 100
	m := newMortal(k)
	clock := now
	leader := func() *Controller { return m.leader(t, &clock) }
	c := leader()
	looks := func(in time.Duration, renewed string, deleted bool, elapsed int64) {
		t.Helper()
		clock = clock.Add(in)
		m.object = m.object.DeepCopy()
		m.object.Annotations[v1alpha1.AnnotationRenewed] = renewed
		if _, err := c.reconcile(t.Context(), k.ID); err != nil || m.deleted != deleted || m.object.Status.TTLElapsedSeconds != elapsed {
			t.Errorf("deleted %t, %d s are written (%v), want %t and %d", m.deleted, m.object.Status.TTLElapsedSeconds, err, deleted, elapsed)
		}
	}
	looks(0, "", false, 0)
	looks(90*time.Second, "", false, 90)
	looks(5*time.Second, "once", false, 0)
	looks(90*time.Second, "once", false, 90)
	c = leader()
	looks(time.Hour, "once", false, 90) // counts only its own observation
	looks(5*time.Second, strings.Repeat("ü", 65), false, 0)
	if got := m.object.Status.Renewed; got != strings.Repeat("ü", 64) {
		t.Errorf("the status says that it was renewed by %q", got)
	}
	looks(99*time.Second, strings.Repeat("ü", 64), false, 99)
	looks(time.Second, strings.Repeat("ü", 64), true, 99)
}

type once struct {
	*mortal
	fails bool
}

func (o *once) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	if o.fails && task.Commit.Kind == rules.DecideTicket {
		o.fails = false
		return errors.New("a conflict")
	}
	return o.mortal.Carry(ctx, task, status)
}

// Otherwise the next leader would begin the whole time anew.
func TestRenewalIsWrittenAgain(t *testing.T) {
	k := ticket("p", "n1", ledger.TypeManual, "a")
	k.TTLSeconds = 3600
	m := &once{mortal: newMortal(k)}
	clock := now
	lead := func() func(time.Duration) {
		c, err := New(Config{Cache: m, Write: m, Now: func() time.Time { return clock }})
		if err != nil {
			t.Fatal(err)
		}
		return func(in time.Duration) {
			clock = clock.Add(in)
			if _, err := c.reconcile(t.Context(), k.ID); err != nil {
				t.Log(err)
			}
		}
	}
	look := lead()
	look(0)
	look(3500 * time.Second)
	m.object = m.object.DeepCopy()
	m.object.Annotations[v1alpha1.AnnotationRenewed] = "once"
	m.fails = true
	look(0)
	look(time.Second)
	if m.object.Status.Renewed != "once" {
		t.Error("its status does not say that it was renewed")
	}
	for range 9 {
		look(6 * time.Minute)
	}
	look = lead() // 54 minutes later
	look(0)
	look(11 * time.Minute)
	if !m.deleted {
		t.Error("65 minutes after its last renewal a ticket with a TTL of an hour is there")
	}
}
