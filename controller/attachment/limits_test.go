// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

const workers = 3

// limited has three volumes to detach, some to attach, and three workers. Node n2 is not Ready.
func limited(now time.Time) *ledger.Ledger {
	l := facts(now, "new", "newer")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: workers})
	for version, ready := range []ledger.Readiness{ledger.ReadyTrue, ledger.ReadyFalse} { // a process that saw it Ready knows that no ticket had anything there
		l.Apply(now, ledger.NodeState{Name: "n2", UID: "m", Version: fmt.Sprint(version + 1), Ready: ready, Managed: true, Reporting: true})
	}
	l.Apply(now, ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-2", Limit: ledger.NoLimit}}})
	return l
}

func leaving(l *ledger.Ledger, now time.Time, handle, version string, n ledger.NodeName, failed ledger.CallError) {
	l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany})
	l.Apply(now, ledger.Attachment{
		Name: ledger.AttachmentName(volume(handle), n), UID: handle, Version: version, Driver: driver, Node: n,
		PersistentVolume: handle, Attached: true, Deleting: true, DetachError: failed, Ours: true,
	})
}

func process(t *testing.T, c *Controller, handle string) time.Duration {
	t.Helper()
	again, err := c.process(t.Context(), volume(handle))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestFailedDetachKeepsNoWorker(t *testing.T) {
	begin := time.Unix(1000, 0)
	refused := ledger.CallError{Message: "the cloud says no"}
	for name, test := range map[string]struct {
		failed ledger.CallError
		after  time.Duration
	}{"refused": {failed: refused}, "unanswered": {after: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			now := begin
			l := limited(now)
			d := &doer{}
			c := controller(t, l, d, &now)
			for i := range workers {
				leaving(l, now, fmt.Sprint("old", i), "1", "n1", ledger.CallError{})
				process(t, c, fmt.Sprint("old", i))
			}
			process(t, c, "new")
			if d.count(rules.CreateAttachment) != 0 || !c.Waits(volume("new")) {
				t.Fatalf("all workers are at a detach, and done was %+v", d.steps)
			}
			for i := range workers {
				if !test.failed.IsZero() {
					leaving(l, now, fmt.Sprint("old", i), "2", "n1", test.failed)
				} else if again := process(t, c, fmt.Sprint("old", i)); again <= 0 || again > test.after {
					t.Fatalf("its worker is looked at again after %s", again)
				}
			}
			now = now.Add(test.after)
			process(t, c, "old0")
			if c.Depth() != 1 {
				t.Error("who waits is not looked at when a worker comes free")
			}
			for i := range workers - 1 {
				process(t, c, fmt.Sprint("old", i+1))
			}
			process(t, c, "new")
			if d.count(rules.CreateAttachment) != 1 || c.Waits(volume("new")) {
				t.Errorf("the attach waits for detaches that fail: %+v", d.steps)
			}
		})
	}
}

// Operations at nodes that are not Ready begin only with a free worker in all.
func TestReadyNodesDoNotWaitForOthers(t *testing.T) {
	now := time.Unix(1000, 0)
	l := limited(now)
	d := &doer{}
	c := controller(t, l, d, &now)
	for i := range workers {
		leaving(l, now, fmt.Sprint("old", i), "1", "n2", ledger.CallError{})
		process(t, c, fmt.Sprint("old", i))
	}
	process(t, c, "new")
	if d.count(rules.CreateAttachment) != 1 {
		t.Errorf("an attach at a Ready node waits for detaches from another: %+v", d.steps)
	}
	l.Apply(now, ledger.PersistentVolume{Name: "next", Version: "1", Volume: volume("next"), Access: ledger.AccessMany})
	l.Apply(now, ledger.Attachment{
		Name: ledger.AttachmentName(volume("next"), "n2"), UID: "next", Version: "1", Driver: driver, Node: "n2",
		PersistentVolume: "next", Attached: true, Ours: true,
	})
	l.Apply(now, ledger.Unreported{Volume: volume("next"), Node: "n2", UID: "next", Version: "1"})
	l.Apply(now, ledger.Unwanted{Volume: volume("next"), Node: "n2", UID: "next", Version: "1"})
	process(t, c, "next")
	if d.count(rules.DeleteAttachment) != 0 || !c.Waits(volume("next")) {
		t.Errorf("it begins without a worker: %+v", d.steps)
	}
	l.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(volume("old0"), "n2")})
	process(t, c, "old0")
	l.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(volume("old1"), "n2")})
	process(t, c, "old1")
	process(t, c, "next")
	if d.count(rules.DeleteAttachment) != 1 {
		t.Errorf("it waits, and there is a worker: %+v", d.steps)
	}
}

// The former leader's operations count before the first look: controller/wake.all adds everything with
// Later.
func TestWorkersOfTheTermBefore(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "new")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: workers})
	var old []string
	for i := range workers {
		handle := fmt.Sprint("old", i)
		old = append(old, handle)
		claim := ledger.ClaimKey{Namespace: "s", Name: handle}
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany, Claim: claim})
		l.Apply(now, ledger.Claim{Key: claim, Version: "1", PersistentVolume: handle, Bound: true})
		l.Apply(now, ledger.Pod{UID: handle, Version: "1", Namespace: "s", Name: handle, Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: handle}}})
		l.Apply(now, attachmentOf(handle, "2", false)) // under way
	}
	d := &doer{do: func(s rules.Step) error {
		if s.Kind == rules.CreateAttachment {
			l.Apply(now, attachmentOf(s.Volume.Handle, "2", false))
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var c *Controller
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time {
		if c.Depth() == 0 {
			cancel() // the last one is looked at
		}
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range old {
		c.Later(volume(handle))
	}
	c.Add(volume("new")) // a pod has come
	c.Run(ctx, 1)
	if n := d.count(rules.CreateAttachment); n != 0 {
		t.Errorf("%d attaches are under way already, which is all that the policy allows, and %d more were begun", workers, n)
	}
}

// If the policy's number of attaches never ends, an unwanted attach can still be taken back.
func TestOwnWorkerIsNotInTheWay(t *testing.T) {
	now := time.Unix(1000, 0)
	l, is := limited(now), newLimits()
	for _, handle := range []string{"a", "b", "c"} {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany})
		l.Apply(now, ledger.Attachment{
			Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: "1", Driver: driver, Node: "n1",
			PersistentVolume: handle, Ours: true,
		})
		is.look(l.Snapshot(), volume(handle), nil, now)
	}
	admits := func(do rules.Kind, handle string) bool {
		step := rules.Step{Kind: do, Volume: volume(handle), Node: "n1", UID: handle, Version: "1"}
		admitted, _ := is.admit(l.Snapshot(), volume(handle), workers, 1, []rules.Step{step})
		return len(admitted) == 1
	}
	if admits(rules.CreateAttachment, "d") {
		t.Fatal("a worker is free: this test is about nothing")
	}
	if !admits(rules.DeleteAttachment, "a") {
		t.Error("it waits for a worker, and it has one itself")
	}
}

// A volume whose slot is sought only at times (planning.urgent, noSpareSlot) does not go to the end of a
// row each time.
func TestWhatIsSoughtNowAndThenHasATurn(t *testing.T) {
	now := time.Unix(1000, 0)
	l, is := limited(now), newLimits()
	add := func(handle string, va bool) {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: handle}})
		if va {
			l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: "1", Driver: driver, Node: "n1", PersistentVolume: handle, Ours: true})
			is.look(l.Snapshot(), volume(handle), nil, now)
		}
	}
	for i := range workers {
		add(fmt.Sprintf("busy%d", i), true)
	}
	add("victim", false)
	waits := func(handle string, urgent bool) bool {
		step := rules.Step{Kind: rules.DeleteAttachment, Volume: volume(handle), Node: "n1", Urgent: urgent}
		admitted, _ := is.admit(l.Snapshot(), volume(handle), workers, 1, []rules.Step{step})
		return len(admitted) == 0
	}
	add("s0", false)
	add("u0", false)
	waits("s0", true)
	waits("u0", false)
	waits("victim", true)
	served := 0
	for i := 1; i <= 1000; i++ {
		s, u := fmt.Sprintf("s%d", i), fmt.Sprintf("u%d", i)
		add(s, false)
		add(u, false)
		waits(s, true)
		waits(u, false)
		waits("victim", i%2 == 0)                         // something has touched it; its node is full, or is not
		for _, next := range is.next(driver, workers+2) { // two are free
			if next == volume("victim") {
				t.Logf("served after %d others", served)
				return
			}
			served++
			waits2 := rules.Step{Kind: rules.DeleteAttachment, Volume: next, Node: "n1", Urgent: next.Handle[0] == 's'}
			is.admit(l.Snapshot(), next, workers+2, 1, []rules.Step{waits2})
			is.look(l.Snapshot(), next, nil, now) // it has ended
		}
	}
	t.Errorf("%d others that came later were served, and the victim never", served)
}
