// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A node's volumes share its next patch; a waiting volume has no other step.
func TestPatchesKeepNoWorker(t *testing.T) {
	names := []string{"a", "b", "c"}
	synctest.Test(t, func(t *testing.T) {
		l := facts(time.Now(), names...)
		for _, name := range names {
			l.Apply(time.Now(), ledger.PersistentVolume{Name: name, Version: "2", Volume: volume(name), Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: name}})
			l.Apply(time.Now(), attachmentOf(name, "1", true))
			held(l, name)
		}
		d, patch := &doer{}, make(chan struct{})
		var mu sync.Mutex
		var reported []ledger.VolumeID
		d.do = func(s rules.Step) error {
			if s.Kind != rules.Report {
				t.Errorf("%s of %s", s.Kind, s.Volume)
				return nil
			}
			<-patch
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, s.Volume)
			l.Apply(time.Now(), ledger.NodeState{Name: "n1", UID: "n", Version: string(rune('1' + len(reported))), Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: slices.Clone(reported)})
			return nil
		}
		c, stop := running(t, l, d)
		defer stop()
		for range 3 {
			for _, name := range names {
				c.Add(volume(name))
			}
			synctest.Wait()
		}
		if n := d.count(rules.Report); n != len(names) {
			t.Errorf("%d volumes wait for the patch, want %d", n, len(names))
		}
		close(patch)
		synctest.Wait()
		if n := d.count(rules.Report); n != len(names) || len(c.patches) != 0 || c.Depth() != 0 {
			t.Errorf("%d reports, %d still wait, %d are due", n, len(c.patches), c.Depth())
		}
	})
}

func TestListsOfPodsKeepNoWorker(t *testing.T) {
	names := []string{"a", "b", "c"}
	synctest.Test(t, func(t *testing.T) {
		l := facts(time.Now())
		for _, name := range names {
			l.Apply(time.Now(), ledger.PersistentVolume{Name: name, Version: "1", Volume: volume(name), Access: ledger.AccessNode})
			l.Apply(time.Now(), attachmentOf(name, "1", true))
			a := l.Snapshot().Volume(volume(name)).OnNodes[0].Canonical()
			l.Apply(time.Now(), ledger.Unreported{Volume: volume(name), Node: "n1", UID: a.UID, Version: a.Version})
			held(l, name)
		}
		d, list := &doer{}, make(chan struct{})
		d.do = func(rules.Step) error {
			<-list
			return nil
		}
		c, stop := running(t, l, d)
		for _, name := range names {
			c.Add(volume(name))
		}
		synctest.Wait()
		if n := d.count(rules.ConfirmUnwanted); n != len(names) {
			t.Errorf("%d volumes wait for the list, want %d: %+v", n, len(names), d.steps)
		}
		go stop()
		close(list)
		synctest.Wait()
	})
}

func held(l *ledger.Ledger, name string) {
	for _, s := range (rules.Arbiter{}).Plan(l.Snapshot(), volume(name), time.Now()).Steps {
		if s.Kind == rules.WriteHold {
			s.Hold.Version = "1"
			l.Apply(time.Now(), ledger.HoldSeen{Volume: s.Volume, Hold: s.Hold})
		}
	}
}

func running(t *testing.T, l *ledger.Ledger, d *doer) (c *Controller, stop func()) {
	t.Helper()
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, 1)
	}()
	return c, func() { cancel(); <-ended }
}
