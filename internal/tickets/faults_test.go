// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

// A backup at the node does not get the volume back while its detach for a pod fails.
func TestStuckDetachKeepsTheVolumeForThePod(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		waits := pod("waits", "", "a")
		s := newScene(t, waits, aged(ticket("backup", "n1", ledger.TypeBackup, "a"), 5))
		s.w.Apply(ledger.Attachment{
			Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "a"}, "n1"), UID: "va", Version: "1", Driver: driver, Node: "n1",
			PersistentVolume: "a", Attached: true, Deleting: true, Stamped: true, Ours: true, Cooperative: true, DetachError: ledger.CallError{Code: 13, Message: "busy"},
		})
		if waiting {
			s.refused(t, waits, "n2")
		}
		if s.decideAt(t, "n1"); s.granted("backup") == waiting {
			t.Errorf("a pod waits: %t; the backup has the volume: %t", waiting, s.granted("backup"))
		}
	}
}

type late struct {
	*writer
	id      ledger.TicketID
	changed bool
}

func (l *late) Apply(e ledger.Event) {
	if sent, is := e.(ledger.GrantSent); is && sent.ID == l.id && !l.changed {
		l.changed = true
		next := *l.Snapshot().Ticket(l.id)
		next.Version = "again"
		l.writer.Apply(next)
	}
	l.writer.Apply(e)
}

// A ticket that changes during its decision is decided on anew, before a later ticket.
func TestStaleGrantLosesNoSlot(t *testing.T) {
	first, after := ticket("first", "n2", ledger.TypeRestore, "a"), aged(ticket("after", "n2", ledger.TypeBackup, "b"), 5)
	w := &late{writer: &writer{Ledger: facts(first, after,
		ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 1}}})}, id: first.ID}
	k, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }, Order: &sync.Mutex{}, Waits: &Waits{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.grantAt(t.Context(), "n2"); err != nil {
		t.Fatal(err)
	}
	k.writing.Wait()
	if s := w.Snapshot(); !w.changed || s.Ticket(first.ID).Phase != ledger.TicketGranted || s.Ticket(after.ID).Phase == ledger.TicketGranted {
		t.Errorf("changed: %t; the first is %s, the one after it %s", w.changed, s.Ticket(first.ID).Phase, s.Ticket(after.ID).Phase)
	}
}

type hanging struct {
	*writer
	end chan struct{}
}

func (h *hanging) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	if task.Commit.Phase != ledger.TicketGranted {
		<-h.end
	}
	return h.writer.Carry(ctx, task, status)
}

func TestGrantWaitsForNoOtherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hanging{&writer{Ledger: facts(pod("holds", "n2", "a"))}, make(chan struct{})}
		for i := range 3 * maxTold {
			w.Apply(ticket(fmt.Sprint("waits", i), "n1", ledger.TypeManual, "a"))
		}
		k, err := New(Config{Cache: w, Write: w, Now: time.Now, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx, 1, 1)
		k.nodes.Add("n1")
		synctest.Wait()
		free := ticket("free", "n1", ledger.TypeManual, "b")
		w.Apply(free)
		k.nodes.Add("n1")
		synctest.Wait()
		if is := w.Snapshot().Ticket(free.ID); is.Phase != ledger.TicketGranted {
			t.Errorf("it is %s: %s", is.Phase, is.Reason)
		}
		close(w.end)
		stop()
		synctest.Wait()
	})
}

// The ticket alone keeps the pod from a node: a new node would not help.
func TestPodThatATicketKeepsIsTried(t *testing.T) {
	p := pod("p", "", "a", "b")
	s := newScene(t, p, pod("x", "n1", "b"), granted(ticket("backup", "n2", ledger.TypeBackup, "a")))
	facts := s.w.Snapshot()
	if v, nowhere := s.config.Arbiter.Nowhere(facts, rules.PodRequest(facts, &p), s.at); nowhere {
		t.Errorf("it is not tried: %+v", v.Reasons)
	}
}

// The other ticket may lose its chance without an event at this node.
func TestTicketBehindATicketElsewhereIsDecidedAgain(t *testing.T) {
	s := newScene(t, aged(ticket("first", "n2", ledger.TypeManual, "a"), 1), aged(ticket("second", "n1", ledger.TypeManual, "a"), 2))
	if again := s.decideAt(t, "n1"); again <= 0 || again > elsewhereAgain || s.granted("second") {
		t.Errorf("it is decided on again in %s; granted: %t", again, s.granted("second"))
	}
}

func TestMinutesOfPodsDoNotAddUp(t *testing.T) {
	one, two := pod("one", "", "a"), pod("two", "", "a")
	s := newScene(t, one, two, aged(ticket("backup", "n1", ledger.TypeBackup, "a"), 9))
	for _, p := range []ledger.Pod{one, two} {
		s.config.Waits.Note(s.at, p, nil, nil)
	}
	if s.decideAt(t, "n1"); s.granted("backup") {
		t.Fatal("nothing is kept for the pods")
	}
	s.at = s.at.Add(keepFor)
	if s.decideAt(t, "n1"); !s.granted("backup") {
		t.Error("the second pod's minute begins only after the first pod's")
	}
}
