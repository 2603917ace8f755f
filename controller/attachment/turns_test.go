// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A free worker costs a look at only the volumes that can have it: the total cost is in proportion.
func TestTurnsOfManyThatWait(t *testing.T) {
	const many = 100
	now := time.Unix(1000, 0)
	var handles []string
	for i := range many {
		handles = append(handles, fmt.Sprintf("v%03d", i))
	}
	l := facts(now, handles...)
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: workers})
	var underWay, order []string
	most := 0
	d := &doer{do: func(s rules.Step) error {
		if s.Kind == rules.CreateAttachment {
			l.Apply(now, attachmentOf(s.Volume.Handle, "2", false))
			underWay, order = append(underWay, s.Volume.Handle), append(order, s.Volume.Handle)
			most = max(most, len(underWay))
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var c *Controller
	looks := 0
	clock := func() time.Time {
		if looks++; c.Depth() == 0 {
			if len(underWay) == 0 {
				cancel()
				return now
			}
			l.Apply(now, attachmentOf(underWay[0], "3", true))
			c.Add(volume(underWay[0]))
			underWay = underWay[1:]
		}
		return now
	}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range handles {
		c.Add(volume(handle))
	}
	c.queue.Run(ctx, 1) // without room for flights: one step after another
	if !slices.Equal(order, handles) || most != workers {
		t.Errorf("%d of %d were attached, %d at a time, in the order %q", len(order), many, most, order)
	}
	if looks > 10*many { // the clock is read a few times for each look, and for each step
		t.Errorf("for %d volumes the clock was read %d times", many, looks)
	}
}

// A due volume of another namespace has every other turn.
func TestNamespacesTakeTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, workers := range map[string]int{"for a worker of the driver": 1, "for a worker of the controller": 0} {
		t.Run(name, func(t *testing.T) {
			handles := []string{"storm0", "storm1", "storm2", "storm3", "storm4", "bystander0", "bystander1"}
			l := facts(now, handles...)
			for _, h := range handles[5:] {
				claim := ledger.ClaimKey{Namespace: "other", Name: h}
				l.Apply(now, ledger.PersistentVolume{Name: h, Version: "2", Volume: volume(h), Access: ledger.AccessMany, Claim: claim})
				l.Apply(now, ledger.Claim{Key: claim, Version: "1", PersistentVolume: h, Bound: true})
				l.Apply(now, ledger.Pod{UID: h, Version: "2", Namespace: "other", Name: h, Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: h}}})
			}
			l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: workers})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var order []string
			var c *Controller
			d := &doer{do: func(s rules.Step) error {
				if s.Kind == rules.CreateAttachment {
					order = append(order, s.Volume.Handle)
					l.Apply(now, attachmentOf(s.Volume.Handle, "2", true))
					c.Add(s.Volume)
				}
				if len(order) == len(handles) {
					cancel()
				}
				return nil
			}}
			c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			for _, handle := range handles {
				c.Add(volume(handle))
			}
			c.queue.Run(ctx, 1)
			place := func(handle string) int { return slices.Index(order, handle) }
			if len(order) != len(handles) || place("bystander0") > 1 || place("bystander1") > 3 || place("storm4") != len(order)-1 {
				t.Errorf("attached in the order %q", order)
			}
		})
	}
}

type office struct {
	t *testing.T
	l *limits
	s ledger.Snapshot
}

func newOffice(t *testing.T) *office {
	return &office{t, newLimits(), limited(time.Unix(1000, 0)).Snapshot()}
}

func (o *office) asks(handle string, workers, want int, nodes ...ledger.NodeName) {
	o.t.Helper()
	var steps []rules.Step
	for _, n := range nodes {
		steps = append(steps, rules.Step{Kind: rules.CreateAttachment, Volume: volume(handle), Node: n})
	}
	if got, _ := o.l.admit(o.s, volume(handle), workers, len(steps), steps); len(got) != want {
		o.t.Errorf("%s may begin %d, want %d", handle, len(got), want)
	}
}

func (o *office) ends(handle string, n ledger.NodeName) {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	o.l.end(volume(handle), n)
}

func (o *office) calls(workers int, want ...string) {
	o.t.Helper()
	var got []string
	for _, id := range o.l.next(driver, workers) {
		got = append(got, id.Handle)
	}
	if !slices.Equal(got, want) {
		o.t.Errorf("it is the turn of %q, want %q", got, want)
	}
}

// If the volume no longer needs the worker, the next volume has it.
func TestFreeWorkerIsKept(t *testing.T) {
	o := newOffice(t)
	o.asks("a", 1, 1, "n1")
	for _, handle := range []string{"b", "c", "d", "b"} { // b is looked at again, and keeps its place
		o.asks(handle, 1, 0, "n1")
	}
	o.calls(1)
	o.ends("a", "n1")
	o.calls(1, "b")
	o.calls(1)
	o.asks("c", 1, 0, "n1")
	o.asks("new", 1, 0, "n1")
	o.asks("b", 1, 0) // nothing any more
	o.calls(1, "c")
	o.asks("c", 1, 1, "n1")
	o.calls(1)
	o.asks("d", 1, 0) // while it waits
	o.ends("c", "n1")
	o.calls(1, "new")
	o.asks("new", 1, 1, "n1")
	o.ends("new", "n1")
	o.calls(1)
	if w := o.l.of(driver); w.rows[true].Len()+w.rows[false].Len()+len(w.now)+w.kept.all+w.kept.live > 0 {
		t.Errorf("nobody waits, and kept is %+v", w)
	}
}

func TestAsManyTurnsAsWorkers(t *testing.T) {
	o := newOffice(t)
	o.asks("a", 1, 1, "n1")
	for _, handle := range []string{"b", "c", "d", "e", "f"} {
		o.asks(handle, 1, 0, "n1")
	}
	o.calls(3, "b", "c")
	o.calls(2)
	o.ends("a", "n1")
	o.calls(3, "d")
	o.calls(0, "e", "f")
	for _, handle := range []string{"b", "c", "d", "e", "f"} {
		o.asks(handle, 0, 1, "n1")
	}
}

// A volume for a Ready node goes first up to three times.
func TestTurnsAtReadyNodes(t *testing.T) {
	o := newOffice(t)
	o.asks("a", 2, 1, "n1")
	o.asks("away", 2, 1, "n2")
	o.asks("gone", 2, 0, "n2")
	o.asks("b", 2, 1, "n1") // that at n2 is not in its way
	o.asks("c", 2, 0, "n1")
	o.asks("both", 2, 0, "n2", "n1")
	o.calls(2)
	o.ends("b", "n1")
	o.calls(2, "c") // two are under way in all
	o.asks("d", 2, 0, "n1")
	o.asks("c", 2, 1, "n1")
	o.ends("a", "n1")
	o.calls(2, "both", "gone")       // three others passed gone or have their turn
	o.asks("both", 2, 1, "n2", "n1") // and waits on, for n2
	o.ends("both", "n1")
	o.ends("c", "n1")
	o.calls(2, "d")
	o.asks("d", 2, 1, "n1")
	o.asks("gone", 2, 1, "n2")
	o.ends("away", "n2")
	o.calls(2)
	o.ends("gone", "n2")
	o.calls(2, "both")
	o.asks("late", 2, 1, "n1") // a worker that is kept for another node is not kept from this one
	o.asks("both", 2, 1, "n2") // nor from who has its turn
}

// The volume moves only to the volumes that also wait for a Ready node.
func TestTurnsWhenItsNodeIsReady(t *testing.T) {
	o := newOffice(t)
	o.asks("a", 1, 1, "n1")
	o.asks("b", 1, 0, "n2")
	o.asks("c", 1, 0, "n1")
	o.asks("b", 1, 0, "n1")
	o.ends("a", "n1")
	o.calls(1, "c")
	o.asks("c", 1, 1, "n1")
	o.ends("c", "n1")
	o.calls(1, "b")
	o.asks("b", 1, 1, "n1")
}

// Fifty volumes of one namespace have a report each to make; the one worker has to attach the volume
// bystander of another namespace.
func stormBesideBystander(now time.Time, others ...string) (l *ledger.Ledger, storm []string) {
	for i := range 50 {
		storm = append(storm, fmt.Sprintf("storm%02d", i))
	}
	l = facts(now, slices.Concat(others, []string{"bystander"}, storm)...)
	claim := ledger.ClaimKey{Namespace: "other", Name: "bystander"}
	l.Apply(now, ledger.PersistentVolume{Name: "bystander", Version: "2", Volume: volume("bystander"), Access: ledger.AccessMany, Claim: claim})
	l.Apply(now, ledger.Claim{Key: claim, Version: "1", PersistentVolume: "bystander", Bound: true})
	l.Apply(now, ledger.Pod{UID: "bystander", Version: "2", Namespace: "other", Name: "bystander", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "bystander"}}})
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: 1})
	for _, handle := range storm {
		l.Apply(now, attachmentOf(handle, "2", true))
	}
	return l, storm
}

// The volume with the turn is looked at first: otherwise its worker would be idle.
func TestKeptWorkerIsNotIdle(t *testing.T) {
	now := time.Unix(1000, 0)
	l, storm := stormBesideBystander(now, "first", "second")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	looks, begun := 0, false
	var c *Controller
	d := &doer{}
	d.do = func(s rules.Step) error {
		switch {
		case s.Kind == rules.Report && strings.HasPrefix(s.Volume.Handle, "storm"):
			looks++
		case s.Kind == rules.CreateAttachment && s.Volume == volume("first"):
			l.Apply(now, attachmentOf("first", "2", false))
		case s.Kind == rules.CreateAttachment && s.Volume == volume("second"):
			l.Apply(now, attachmentOf("second", "2", true)) // the driver is through with it at once
			c.Add(s.Volume)
		case s.Kind == rules.CreateAttachment && s.Volume == volume("bystander"):
			begun = true
			cancel()
		}
		return nil
	}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	process(t, c, "first")     // has the one worker
	process(t, c, "second")    // waits, of the storm's namespace
	process(t, c, "bystander") // waits, of another
	for _, handle := range storm {
		c.Add(volume(handle))
	}
	l.Apply(now, attachmentOf("first", "3", true))
	process(t, c, "first") // its worker is free, and kept for second, which is due behind the storm
	process(t, c, "bystander")
	if !c.Waits(volume("bystander")) {
		t.Fatalf("it does not wait: %+v", d.steps)
	}
	c.queue.Run(ctx, 1)
	if !begun || looks > 4 {
		t.Errorf("the driver's one worker is idle, and the bystander (begun: %t) waits for %d looks at another namespace's volumes", begun, looks)
	}
}

// A volume for a node that is not Ready has a turn after a few others.
func TestReadyNodesKeepNobodyWaitingForEver(t *testing.T) {
	o := newOffice(t)
	o.asks("live0", 1, 1, "n1")
	o.asks("failover", 1, 0, "n2") // n2 is not Ready
	for i := range 1000 {
		next := fmt.Sprint("live", i+1)
		o.asks(next, 1, 0, "n1") // comes after it
		o.ends(fmt.Sprint("live", i), "n1")
		for _, id := range o.l.next(driver, 1) {
			if id == volume("failover") {
				return
			}
		}
		o.asks(next, 1, 1, "n1")
	}
	t.Error("1000 who came later have had their turn, and the one who waits for another node has had none")
}

// An operation at a silent node hangs. Operations at Ready nodes always take the free worker.
func TestOneThatHangsKeepsNobodyWaitingForEver(t *testing.T) {
	for _, workers := range []int{2, 10} {
		o := newOffice(t)
		o.asks("hangs", workers, 1, "n2") // n2 is not Ready
		for i := range workers {
			o.asks(fmt.Sprint("live", i), workers, 1, "n1")
		}
		o.asks("failover", workers, 0, "n2")
		had := false
		for i := range 1000 {
			next := fmt.Sprint("live", i+workers)
			o.asks(next, workers, 0, "n1") // comes after it
			o.ends(fmt.Sprint("live", i), "n1")
			for _, id := range o.l.next(driver, workers) {
				had = had || id == volume("failover")
			}
			if had {
				break
			}
			o.asks(next, workers, 1, "n1")
		}
		if !had {
			t.Errorf("with %d workers 1000 who came later have had their turn, and the one who waits for another node has had none", workers)
		}
	}
}

// No volume waits for a shared volume's own worker: it does not go first.
func TestWhoWaitsForItselfIsInNobodysWay(t *testing.T) {
	o := newOffice(t)
	o.asks("wide", 1, 1, "n1", "n2")
	if o.l.keepsWaiting(volume("wide"), 1) {
		t.Error("it waits for its own worker only, and comes before all others")
	}
}

// A worker at Ready nodes is free, so the end of the other helps no volume.
func TestWhoseEndHelpsNobodyDoesNotComeFirst(t *testing.T) {
	o := newOffice(t)
	o.asks("hangs", 2, 1, "n2")
	o.asks("hangs too", 2, 1, "n2")
	o.asks("failover", 2, 0, "n2")
	o.asks("live", 2, 1, "n1")
	if o.l.keepsWaiting(volume("live"), 2) {
		t.Error("that at n1 ends, and the waiter still has no worker (two hang at n2): it comes before all others in vain")
	}
}

// Otherwise a shared volume would keep all others waiting.
func TestWhoseAttachEndsWaitsForItsTurnAgain(t *testing.T) {
	const nodes = 8
	now := time.Unix(1000, 0)
	l := fleet(now, nodes, ledger.AccessMany)
	claim := ledger.ClaimKey{Namespace: "other", Name: "lone"}
	l.Apply(now, ledger.PersistentVolume{Name: "lone", Version: "1", Volume: volume("lone"), Access: ledger.AccessMany, Claim: claim})
	l.Apply(now, ledger.Claim{Key: claim, Version: "1", PersistentVolume: "lone", Bound: true})
	l.Apply(now, ledger.Pod{UID: "lone", Version: "1", Namespace: "other", Name: "lone", Node: "n0", Volumes: []ledger.PodVolume{{Name: "v", Claim: "lone"}}})
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: 1})
	attachment := func(s rules.Step, version string, attached bool) ledger.Attachment {
		return ledger.Attachment{
			Name: s.Attachment, UID: fmt.Sprint(s.Volume.Handle, s.Node), Version: version, Driver: driver, Node: s.Node,
			PersistentVolume: s.Volume.Handle, Attached: attached, Ours: true,
		}
	}
	var mu sync.Mutex
	var begun []rules.Step
	d := &doer{do: func(s rules.Step) error {
		if s.Kind == rules.CreateAttachment {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, s)
			l.Apply(now, attachment(s, "2", false))
		}
		return nil
	}}
	c := controller(t, l, d, &now)
	c.flights.add(64)
	look := func(handle string) {
		process(t, c, handle)
		c.flying.Wait()
	}
	lone := func() int {
		return slices.IndexFunc(begun, func(s rules.Step) bool { return s.Volume == volume("lone") })
	}
	look("data") // has the one worker, at n0
	look("data") // waits for the others
	look("lone")
	if len(begun) != 1 || !c.Waits(volume("lone")) {
		t.Fatalf("begun: %+v", begun)
	}
	for range nodes {
		l.Apply(now, attachment(begun[len(begun)-1], "3", true)) // the driver is through with it, which touches the volume
		for _, handle := range []string{"data", "data", "lone"} {
			look(handle)
		}
		if lone() >= 0 {
			break
		}
	}
	if at := lone(); at < 0 || at > 2 {
		t.Errorf("the volume of another namespace waits for the driver's worker, and %d attaches of the shared volume began before its one", max(at, len(begun)-1))
	}
}

// Volumes at Ready nodes find a worker at once and have no turn. passed counts turns only.
func TestWhoFindsAWorkerAtOncePassesOthersToo(t *testing.T) {
	for _, workers := range []int{2, 10} {
		o := newOffice(t)
		o.asks("hangs", workers, 1, "n2") // n2 is not Ready
		for i := range workers - 1 {      // one worker at Ready nodes is always free
			o.asks(fmt.Sprint("live", i), workers, 1, "n1")
		}
		o.asks("failover", workers, 0, "n2")
		had := false
		for i := 0; i < 1000 && !had; i++ {
			o.asks(fmt.Sprint("live", i+workers-1), workers, 1, "n1") // begins at once
			for range 2 {
				for _, id := range o.l.next(driver, workers) {
					had = had || id == volume("failover")
				}
				o.ends(fmt.Sprint("live", i), "n1")
			}
		}
		if !had {
			t.Errorf("with %d workers 1000 who came later have had a worker, and the one who waits for another node has had none, though one such is under way", workers)
		}
	}
}

// The counterpart of TestWhoseEndHelpsNobodyDoesNotComeFirst: the freed worker would be idle.
func TestWhoseEndHelpsOneAtAnotherNodeComesFirst(t *testing.T) {
	o := newOffice(t)
	o.asks("live", 1, 1, "n1")
	o.asks("failover", 1, 0, "n2") // n2 is not Ready
	if !o.l.keepsWaiting(volume("live"), 1) {
		t.Error("when it ends, the other has its worker, and it is looked at behind all that is due")
	}
	o.ends("live", "n1")
	o.calls(1, "failover") // it is so
}

// The volume with the worker was due behind the storm before another volume waited for it.
func TestWorkerIsNotIdleForWhoWaitsLater(t *testing.T) {
	now := time.Unix(1000, 0)
	l, storm := stormBesideBystander(now, "first")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	looks, begun := 0, false
	d := &doer{}
	d.do = func(s rules.Step) error {
		switch {
		case s.Kind == rules.Report && strings.HasPrefix(s.Volume.Handle, "storm"):
			looks++
		case s.Kind == rules.CreateAttachment && s.Volume == volume("first"):
			l.Apply(now, attachmentOf("first", "2", false))
		case s.Kind == rules.CreateAttachment && s.Volume == volume("bystander"):
			begun = true
			cancel()
		}
		return nil
	}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	process(t, c, "first") // has the one worker
	for _, handle := range storm {
		c.Add(volume(handle))
	}
	l.Apply(now, attachmentOf("first", "3", true))
	c.Add(volume("first"))     // its worker is free, and no volume waits for it yet
	process(t, c, "bystander") // looked at before first, and waits
	if !c.Waits(volume("bystander")) {
		t.Fatalf("it does not wait: %+v", d.steps)
	}
	c.queue.Run(ctx, 1)
	if !begun || looks > 4 {
		t.Errorf("the driver's one worker is idle, and the bystander (begun: %t) waits for %d looks at another namespace's volumes", begun, looks)
	}
}

// Volumes with waiters and leaving volumes of a namespace take turns.
func TestArrivalsDoNotWaitForAllThatLeaves(t *testing.T) {
	now := time.Unix(1000, 0)
	l, is := limited(now), newLimits()
	add := func(handle string) {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: handle}})
	}
	for _, handle := range []string{"a", "b", "c"} {
		add(handle)
		l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: "1", Driver: driver, Node: "n1", PersistentVolume: handle, Ours: true})
		is.look(l.Snapshot(), volume(handle), nil, now)
	}
	waits := func(handle string, do rules.Kind) {
		add(handle)
		is.admit(l.Snapshot(), volume(handle), workers, 1, []rules.Step{{Kind: do, Volume: volume(handle), Node: "n1"}})
	}
	for _, handle := range []string{"idle1", "idle2", "idle3", "idle4"} {
		waits(handle, rules.DeleteAttachment)
	}
	waits("young", rules.CreateAttachment)
	soon := rules.Step{Kind: rules.DeleteAttachment, Volume: volume("idle4"), Node: "n1", Urgent: true} // it has a waiter by now
	is.admit(l.Snapshot(), volume("idle4"), workers, 1, []rules.Step{soon})
	for range 2 {
		for _, handle := range []string{"a", "b", "c"} { // they end, and their workers are free
			l.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(volume(handle), "n1")})
			is.look(l.Snapshot(), volume(handle), nil, now)
		}
	}
	if next := is.next(driver, 4); !slices.Equal(next, []ledger.VolumeID{volume("idle1"), volume("young"), volume("idle2"), volume("idle4")}) {
		t.Errorf("next are %v: what somebody waits for and what only leaves do not take turns", next)
	}
}
