// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func crowded(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.AllOperations()...)})
	for v := range maxMembers {
		s.volume(fmt.Sprintf("v%03d", v))
	}
	s.groups("shop", 10*MaxPerNamespace)
	return s
}

func TestTooManyVolumes(t *testing.T) {
	s := crowded(t)
	s.also("bank", "a")
	late, other := snapshotOf("late", "b"), snapshotOf("other", "a")
	late.Created, other.Created, other.Told.Namespace = 5000, 5000, "bank"
	s.works = append(s.works, late, other)
	plan := s.decide()
	s.has("bank/snapshot-uid-other")
	if len(plan.Troubles) != MaxPerNamespace || plan.Troubles[0].Code != ReasonTooMany || !strings.Contains(plan.Troubles[0].Message, "more than 4096 volumes") {
		t.Errorf("told %s: %+v", codes(plan), plan.Troubles)
	}
	s.works = slices.DeleteFunc(s.works, func(w Work) bool { return w.Group && w.Created >= 10 })
	s.decide()
	s.has("bank/snapshot-uid-other shop/snapshot-uid-late")
}

func TestTicketsOutlastTooManyVolumes(t *testing.T) {
	s := crowded(t)
	crowd := s.works
	w := expand("a")
	w.Created = 5000
	s.works = []Work{w}
	s.decide()
	s.grant()
	s.works = append(crowd, w)
	s.decide()
	s.decide()
	s.has("shop/expansion-uid-a")
	s.after(time.Minute)
	s.tickets = nil
	if plan := s.decide(); len(plan.Over) != 1 || plan.Over[0].Result != Unfinished {
		t.Errorf("%+v", plan.Over)
	}
}

func TestNobodyAsksForThem(t *testing.T) {
	s := crowded(t)
	for i := range s.works {
		s.works[i].Driver = "other"
	}
	late := snapshotOf("late", "b")
	late.Created = 5000
	s.works = append(s.works, late)
	if plan := s.decide(); codes(plan) != "" {
		t.Errorf("told %s", codes(plan))
	}
	s.has("shop/snapshot-uid-late")
}

// Their tickets share Moorage's own namespace.
func TestVolumesWithoutClaimsAreShared(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	add := func(name, namespace string, created int64) {
		s.apply(ledger.PersistentVolume{Name: "pv-" + name, UID: "pv-" + name, Version: s.next(), Class: "fast", Access: ledger.AccessNode, Volume: ledger.VolumeID{Driver: driver, Handle: name}})
		w := snapshotOf("of-"+name, name)
		w.Told.Namespace, w.Created = namespace, created
		s.works = append(s.works, w)
	}
	for i := range 3 * MaxPerNamespace {
		add(fmt.Sprintf("v%02d", i), "shop", int64(i))
	}
	for range 3 {
		s.decide()
	}
	if len(s.tickets) != MaxPerNamespace {
		t.Fatalf("%d tickets for namespace shop", len(s.tickets))
	}
	add("last", "bank", 1000)
	if plan := s.decide(); len(plan.Make) != 1 || plan.Make[0].Told.Namespace != "bank" {
		t.Errorf("made %v for namespace bank", plan.Make)
	}
}
