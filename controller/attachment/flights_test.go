// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func fleet(now time.Time, nodes int, access ledger.Access) *ledger.Ledger {
	l := facts(now)
	l.Apply(now, ledger.PersistentVolume{Name: "data", Version: "1", Volume: volume("data"), Access: access, Claim: ledger.ClaimKey{Namespace: "s", Name: "data"}})
	l.Apply(now, ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "data"}, Version: "1", PersistentVolume: "data", Bound: true})
	for i := range nodes {
		n := fmt.Sprint("n", i)
		l.Apply(now, ledger.NodeState{Name: ledger.NodeName(n), UID: n, Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(now, ledger.NodeDrivers{Node: ledger.NodeName(n), Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-" + n, Limit: ledger.NoLimit}}})
		l.Apply(now, ledger.Pod{UID: n, Version: "1", Namespace: "s", Name: n, Node: ledger.NodeName(n), Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	}
	return l
}

type slow struct {
	mu    sync.Mutex
	at    map[ledger.NodeName]int
	most  int // at once
	twice bool
	began chan ledger.NodeName
	goOn  chan struct{}
	holds func(rules.Step) bool
	then  func(rules.Step)
	add   func(ledger.VolumeID)
}

func (d *slow) Do(_ context.Context, s rules.Step) error {
	d.mu.Lock()
	d.at[s.Node]++
	d.twice = d.twice || d.at[s.Node] > 1
	d.most = max(d.most, len(d.at))
	d.mu.Unlock()
	d.began <- s.Node
	if d.holds(s) {
		<-d.goOn
	}
	d.then(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at[s.Node]--; d.at[s.Node] == 0 {
		delete(d.at, s.Node)
	}
	return nil
}

func attaches(t *testing.T, l *ledger.Ledger, workers int, holds func(rules.Step) bool) *slow {
	t.Helper()
	d := &slow{at: map[ledger.NodeName]int{}, began: make(chan ledger.NodeName, 1000), goOn: make(chan struct{}), holds: holds}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(e ledger.Event) {
		for _, v := range l.Apply(time.Now(), e).Volumes {
			c.Add(v)
		}
	}
	d.then = func(s rules.Step) {
		n := string(s.Node)
		switch s.Kind {
		case rules.CreateAttachment:
			apply(ledger.Attachment{
				Name: s.Attachment, UID: n, Version: "2", Driver: driver, Node: s.Node, PersistentVolume: "data", Attached: true, Ours: true,
			})
		case rules.Report:
			apply(ledger.NodeState{
				Name: s.Node, UID: n, Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{volume("data")},
			})
		default: // changes nothing
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, workers)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if len(d.at) > 0 {
			t.Errorf("Run has returned, and steps are under way at %v", d.at)
		}
	})
	t.Cleanup(func() { close(d.goOn) }) // before that
	c.Add(volume("data"))
	d.add = c.Add
	return d
}

// Each hold is deleted by one step at a time.
func TestDeletionsOfHoldsKeepNoWorker(t *testing.T) {
	const holds = 20
	l := fleet(time.Now(), 1, ledger.AccessMany)
	for i := range holds {
		l.Apply(time.Now(), ledger.HoldSeen{Volume: volume(fmt.Sprint("gone-", i)), Hold: ledger.Hold{Version: "1", Transitions: 1, State: ledger.HoldFree}})
	}
	d := attaches(t, l, 1, func(s rules.Step) bool { return s.Kind == rules.DeleteHold })
	for range 2 { // looked at again, the deletion is not begun again
		for i := range holds {
			d.add(volume(fmt.Sprint("gone-", i)))
		}
	}
	d.steps(t, holds+2) // the attachment of data is created, and reported
	d.add(volume("gone-0"))
	d.goOn <- struct{}{}
	d.steps(t, 1) // it is there still: the ledger was not told
}

func (d *slow) steps(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-d.began:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d steps have begun, and no other of %d does", i, n)
		}
	}
}

func TestSlowStepOfASharedVolume(t *testing.T) {
	const nodes = 40
	l := fleet(time.Now(), nodes, ledger.AccessMany)
	d := attaches(t, l, 4, func(s rules.Step) bool { return s.Node == "n7" && s.Kind == rules.CreateAttachment })
	d.steps(t, 2*(nodes-1)+1) // created and reported at all, and at n7 not yet
	d.goOn <- struct{}{}
	d.steps(t, 1)
	if d.mu.Lock(); d.twice {
		t.Error("two steps were under way at one node")
	}
	d.mu.Unlock()
}

func TestStepsOfASharedVolumeAreBounded(t *testing.T) {
	const nodes = 3 * maxAbreast
	l := fleet(time.Now(), nodes, ledger.AccessMany)
	d := attaches(t, l, 2*maxAbreast, func(rules.Step) bool { return true })
	d.steps(t, maxAbreast)
	for i := range 2 * nodes {
		select {
		case d.goOn <- struct{}{}:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d steps have ended, and no other of %d is under way", i, 2*nodes)
		}
	}
	if d.mu.Lock(); d.most != maxAbreast {
		t.Errorf("steps at %d nodes were under way at once, want %d", d.most, maxAbreast)
	}
	d.mu.Unlock()
}

// Without free steps, the volume's worker does the steps at one node itself.
func TestNoStepIsLeftToNobody(t *testing.T) {
	now := time.Unix(1000, 0)
	l := fleet(now, 3, ledger.AccessMany)
	d := &doer{}
	c := controller(t, l, d, &now)
	process(t, c, "data")
	if got := d.count(rules.CreateAttachment); got != 1 {
		t.Errorf("%d steps were done, want 1", got)
	}
	c.flights.begin(volume("data"), "n0")
	process(t, c, "data")
	if got := d.count(rules.CreateAttachment); got != 1 {
		t.Errorf("%d steps were done, and one of the volume is under way elsewhere", got)
	}
}

// A volume that is exclusive by now waits for all steps under way.
func TestExclusiveVolumeWaitsForItsSteps(t *testing.T) {
	now := time.Unix(1000, 0)
	l := fleet(now, 1, ledger.AccessNode)
	d := &doer{}
	c := controller(t, l, d, &now)
	c.flights.begin(volume("data"), "n5")
	process(t, c, "data")
	if len(d.steps) > 0 {
		t.Errorf("it was decided on while a step is under way at another node: %+v", d.steps)
	}
	c.flights.end(volume("data"), "n5")
	process(t, c, "data")
	if d.count(rules.CreateAttachment) != 1 {
		t.Errorf("nothing is under way, and done was %+v", d.steps)
	}
}

// With room for 0 nodes, spread's call of admit skips all steps and must not take the volume out of the
// row.
func TestNoRoomForFlightsTakesNoPlace(t *testing.T) {
	now := time.Unix(1000, 0)
	l := fleet(now, 3, ledger.AccessMany)
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: 1})
	d := &doer{do: func(s rules.Step) error {
		if s.Kind == rules.CreateAttachment {
			l.Apply(now, ledger.Attachment{Name: s.Attachment, UID: string(s.Node), Version: "2", Driver: driver, Node: s.Node, PersistentVolume: "data", Ours: true})
		}
		return nil
	}}
	c := controller(t, l, d, &now)
	c.flights.add(1)
	process(t, c, "data") // n0 has the one worker
	c.flying.Wait()
	process(t, c, "data")
	if !c.driver.waits(volume("data")) {
		t.Fatalf("it does not wait: %+v", d.steps)
	}
	c.flights.add(-1)                     // others' steps have all there is
	c.flights.begin(volume("data"), "n0") // and something of its own is under way, as a report
	process(t, c, "data")
	if !c.driver.waits(volume("data")) {
		t.Error("it wants to be attached at n1 and n2 as before, and waits no more: it has lost its place, or its turn")
	}
}

// A forced step waits for the volume's hold and its node; other steps for their node only.
func TestForceWaitsForTheHold(t *testing.T) {
	steps := []rules.Step{
		{Kind: rules.Unreport, Node: "n1", Rule: rules.OutOfService},
		{Kind: rules.Unreport, Node: "n2"},
	}
	for name, test := range map[string]struct {
		busy map[ledger.NodeName]bool
		want int
	}{
		"nothing is under way":  {nil, 2},
		"the hold is written":   {map[ledger.NodeName]bool{"": true}, 1},
		"a step is at n1":       {map[ledger.NodeName]bool{"n1": true}, 1},
		"a step is at n3":       {map[ledger.NodeName]bool{"n3": true}, 2},
		"the hold, and n2":      {map[ledger.NodeName]bool{"": true, "n2": true}, 0},
		"the hold, and another": {map[ledger.NodeName]bool{"": true, "n3": true}, 1},
	} {
		if got := except(steps, test.busy); len(got) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
