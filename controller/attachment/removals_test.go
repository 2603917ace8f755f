// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func outOfService(now time.Time) *ledger.Ledger {
	l := facts(now, "a", "b")
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true},
		attachmentOf("a", "1", true), attachmentOf("b", "1", true), ledger.PodGone{UID: "a"}, ledger.PodGone{UID: "b"},
		ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n1", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "a", Claim: "a"}, {Name: "b", Claim: "b"}}},
	} {
		l.Apply(now, e)
	}
	return l
}

// A pod is removed once for any number of requests; a failed removal pauses.
func TestPodsAreRemovedBesideTheVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := outOfService(time.Now())
		d := &doer{}
		worked := make(chan struct{}, 100)
		removals := 0
		d.do = func(s rules.Step) error {
			switch s.Kind {
			case rules.RemovePod:
			case rules.WriteHold:
				hold := s.Hold
				hold.Version = "1"
				l.Apply(time.Now(), ledger.HoldSeen{Volume: s.Volume, Hold: hold})
				worked <- struct{}{}
				return nil
			default:
				return errors.New("not what this is about")
			}
			if removals++; removals > 1 {
				return nil
			}
			<-worked // the only worker of volumes is free for both meanwhile
			<-worked
			return errors.New("not now")
		}
		c, stop := running(t, l, d)
		defer stop()
		ask := func() {
			c.Add(volume("a"))
			c.Add(volume("b"))
			c.Clear("n1")
			synctest.Wait()
		}
		ask()
		if done := d.count(rules.WriteHold); done < 2 || d.count(rules.RemovePod) != 1 {
			t.Errorf("%d holds are written beside %d removals, want both and 1", done, d.count(rules.RemovePod))
		}
		ask()
		if n := d.count(rules.RemovePod); n != 1 {
			t.Errorf("%d removals without a pause", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := d.count(rules.RemovePod); n != 2 {
			t.Errorf("%d removals after the pause, want 2", n)
		}
		ask()
		if n := d.count(rules.RemovePod); n != 2 {
			t.Errorf("%d removals of a pod that is removed", n)
		}
		l.Apply(time.Now(), ledger.PodGone{UID: "p"})
		ask()
		time.Sleep(removedAgain)
		synctest.Wait()
		if n := d.count(rules.RemovePod); n != 2 || len(c.pods.known) != 0 {
			t.Errorf("%d removals of a pod that is gone, and %d are remembered", n, len(c.pods.known))
		}
	})
}

func TestRemovalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := outOfService(time.Now())
		var order []string
		r := newRemovals(l.Snapshot, func(_ context.Context, s rules.Step) error { order = append(order, s.UID); return nil })
		add := func(namespace, uid string) {
			l.Apply(time.Now(), ledger.Pod{UID: uid, Version: "1", Namespace: namespace, Name: uid, Node: "n1", Phase: ledger.PodTerminating})
			r.add(removal{"n1", uid})
		}
		for i := range 40 {
			add("many", fmt.Sprint("m", i))
		}
		add("few", "f")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.queue.Run(ctx, 1) }()
		synctest.Wait()
		stop()
		<-done
		if at := slices.Index(order, "f"); at < 0 || at > 1 {
			t.Errorf("it comes after %d others, want 1 at most", at)
		}
	})
}

func TestPodsOfNodesInServiceStay(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, e := range map[string]ledger.Event{
		"in service": ledger.NodeState{Name: "n1", UID: "n", Version: "3", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true},
		"Ready":      ledger.NodeState{Name: "n1", UID: "n", Version: "3", Ready: ledger.ReadyTrue, OutOfService: true, Managed: true, Reporting: true},
		"gone":       ledger.NodeGone{Name: "n1"},
		"no pod":     ledger.PodGone{UID: "p"},
		"":           nil,
	} {
		l, d := outOfService(now), &doer{}
		c := controller(t, l, d, &now)
		c.Clear("n1")
		if e != nil {
			l.Apply(now, e)
		}
		if _, err := c.pods.process(t.Context(), removal{"n1", "p"}); err != nil {
			t.Error(err)
		}
		if n := d.count(rules.RemovePod); (e == nil) != (n == 1) || (e == nil) != (len(c.pods.known) == 1) {
			t.Errorf("%q: %d removals, %d remembered", name, n, len(c.pods.known))
		}
	}
}

// The node is out of service again just before the pod would be forgotten; no request is repeated.
func TestPodIsNotForgottenWhenAskedFor(t *testing.T) {
	l := outOfService(time.Now())
	again := l.Snapshot()
	node := again.Node("n1").NodeState
	node.Version, node.OutOfService = "3", false
	l.Apply(time.Now(), node)
	looks, removed := []ledger.Snapshot{l.Snapshot(), again}, 0
	pod := removal{"n1", "p"}
	var r *removals
	r = newRemovals(func() ledger.Snapshot {
		s := looks[0]
		if len(looks) > 1 { // the node is out of service from the first look on, and its volumes ask at once
			looks = looks[1:]
			r.add(pod)
		}
		return s
	}, func(context.Context, rules.Step) error { removed++; return nil })
	r.known[pod] = true
	if _, err := r.process(t.Context(), pod); err != nil || removed != 1 {
		t.Errorf("it was removed %d times, error %v", removed, err)
	}
}
