// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWhatHasATicket(t *testing.T) {
	attach := ledger.Policy{AttachFor: only(ledger.AllOperations()...)}
	snapshot, clone, expansion := only(ledger.OperationSnapshot), only(ledger.OperationClone), only(ledger.OperationExpansion)
	for name, test := range map[string]struct {
		policy ledger.Policy
		work   Work
		change func(*scene)
		want   string
		told   string
	}{
		"snapshot":                     {attach, snapshotOf("x", "a"), nil, "shop/snapshot-uid-x", ""},
		"snapshot, detached":           {ledger.Policy{DetachFor: snapshot}, snapshotOf("x", "a"), nil, "shop/snapshot-uid-x", ""},
		"snapshot, others asked for":   {ledger.Policy{AttachFor: clone, DetachFor: expansion}, snapshotOf("x", "a"), nil, "", ""},
		"no policy":                    {ledger.Policy{Driver: "other"}, snapshotOf("x", "a"), nil, "", ""},
		"no such volume":               {attach, snapshotOf("x", "none"), nil, "", ""},
		"of another driver":            {attach, func() Work { w := snapshotOf("x", "a"); w.Driver = "other"; return w }(), nil, "", ""},
		"nothing to attach":            {attach, snapshotOf("x", "a"), func(s *scene) { s.apply(ledger.Driver{Name: driver, Version: s.next()}) }, "", ""},
		"a volume that no claim has":   {attach, snapshotOf("x", "a"), func(s *scene) { s.apply(ledger.ClaimGone{Key: claim("a")}) }, "moorage-system/snapshot-uid-x", ""},
		"class says no":                {attach, snapshotOf("x", "a"), func(s *scene) { s.policy(ledger.Policy{Class: "fast", Says: ledger.FieldOperations}) }, "", ""},
		"group":                        {attach, snapshotOf("x", "a", "b"), nil, "shop/snapshot-uid-x", ""},
		"group, a volume is not there": {attach, snapshotOf("x", "a", "none"), nil, "", ""},
		"group, of several namespaces": {attach, snapshotOf("x", "a", "b"), func(s *scene) { s.apply(ledger.ClaimGone{Key: claim("a")}) }, "", "x " + ReasonMixed},
		"group, attached and detached": {attach, snapshotOf("x", "a", "b"), func(s *scene) {
			s.policy(ledger.Policy{Class: "slow", DetachFor: snapshot})
			s.apply(ledger.PersistentVolume{Name: "pv-b", UID: "pv-b", Version: s.next(), Class: "slow", Volume: ledger.VolumeID{Driver: driver, Handle: "b"}, Claim: claim("b"), ClaimUID: "uid-b"})
		}, "", "x " + ReasonMixed},
		"expansion":                           {attach, expand("a"), nil, "shop/expansion-uid-a", ""},
		"expansion, detached":                 {ledger.Policy{DetachFor: expansion}, expand("a"), nil, "shop/expansion-uid-a", ""},
		"expansion of no claim":               {attach, expand("none"), nil, "", ""},
		"clone":                               {attach, cloneTo("n", "a"), func(s *scene) { s.target("n", nil) }, "shop/clone-uid-n", ""},
		"clone, its claim is not seen":        {attach, cloneTo("n", "a"), nil, "", ""},
		"clone, its source is not there":      {attach, cloneTo("n", "none"), func(s *scene) { s.target("n", nil) }, "", ""},
		"clone, by a class of no driver":      {attach, cloneTo("n", "a"), func(s *scene) { s.target("n", func(c *ledger.Claim) { c.Class = "none" }) }, "", ""},
		"clone, by another driver":            {attach, cloneTo("n", "a"), func(s *scene) { s.otherClass("other", "other", false) }, "", ""},
		"clone, that waits for its pod":       {attach, cloneTo("n", "a"), func(s *scene) { s.otherClass("later", driver, true) }, "", ""},
		"clone, and its pod's node is chosen": {attach, cloneTo("n", "a"), func(s *scene) { s.otherClass("later", driver, true); s.selected() }, "shop/clone-uid-n", ""},
		"clone, from another namespace": {attach, func() Work { w := cloneTo("n", "a"); w.Claim.Namespace, w.Outside = "other", true; return w }(),
			func(s *scene) { s.target("n", nil) }, "", "n " + ReasonOutside},
		"clone, from another namespace, nobody asks": {ledger.Policy{AttachFor: snapshot}, func() Work { w := cloneTo("n", "a"); w.Claim.Namespace, w.Outside = "other", true; return w }(),
			func(s *scene) { s.target("n", nil) }, "", ""},
		"a name that is taken": {attach, expand("a"), func(s *scene) {
			s.apply(ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "expansion-uid-a"}, UID: "foreign", Version: s.next(), Type: ledger.TypeManual, Node: "n"})
		}, "", "a " + ReasonNameTaken},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.policy)
			if test.change != nil {
				test.change(s)
			}
			s.works = []Work{test.work}
			plan := s.decide()
			s.has(test.want)
			if got := codes(plan); got != test.told {
				t.Errorf("told %q, want %q", got, test.told)
			}
			for _, k := range s.tickets {
				detached := strings.HasSuffix(name, ", detached")
				if k.Spec.Detached != detached || k.Spec.Wherever == detached || k.Spec.TTLSeconds == nil || *k.Spec.TTLSeconds != 900 ||
					len(k.Spec.Volumes) != max(1, len(test.work.Handles)) || string(k.Spec.Type) != test.work.Operation.String() {
					t.Errorf("ticket %+v", k.Spec)
				}
			}
		})
	}
}

func (s *scene) otherClass(name, driver string, waits bool) {
	s.apply(ledger.StorageClass{Name: name, Version: s.next(), Driver: driver, WaitForFirst: waits})
	s.target("n", func(c *ledger.Claim) { c.Class = name })
}

func (s *scene) selected() {
	s.target("n", func(c *ledger.Claim) { c.Class, c.SelectedNode = "later", "node" })
}

// Unreadable objects do not end the ticket.
func TestItsEnd(t *testing.T) {
	policy := ledger.Policy{AttachFor: only(ledger.OperationSnapshot)}
	for name, test := range map[string]struct {
		change func(*scene)
		want   string
		over   Result
	}{
		"ready":         {func(s *scene) { s.works, s.ready["uid-x"] = nil, true }, "", Done},
		"gone":          {func(s *scene) { s.works = nil }, "", Unfinished},
		"no policy":     {func(s *scene) { s.policy(ledger.Policy{}) }, "", Unfinished},
		"not seen":      {func(s *scene) { s.works, s.unknown[KindSnapshot] = nil, true }, "shop/snapshot-uid-x", ""},
		"still at work": {func(*scene) {}, "shop/snapshot-uid-x", ""},
		"detached now":  {func(s *scene) { s.policy(ledger.Policy{DetachFor: only(ledger.OperationSnapshot)}) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy)
			s.works = []Work{snapshotOf("x", "a")}
			s.decide()
			s.grant()
			s.decide()
			test.change(s)
			plan := s.decide()
			s.has(test.want)
			var over Result
			for _, o := range plan.Over {
				over = o.Result
			}
			if over != test.over {
				t.Errorf("it is said to be %q, want %q", over, test.over)
			}
		})
	}
}

// The next ticket exists before the first lets go: the volume does not move.
func TestOneAfterTheOther(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	second := snapshotOf("y", "a")
	second.Created = 2
	group := snapshotOf("group", "a", "b") // of both together, which is something else
	s.works = []Work{second, snapshotOf("x", "a"), snapshotOf("z", "b"), group}
	s.decide()
	s.has("shop/snapshot-uid-group shop/snapshot-uid-x shop/snapshot-uid-z")
	s.grant()
	s.decide()
	s.works, s.ready["uid-x"] = []Work{second}, true
	s.decide()
	s.has("shop/snapshot-uid-x shop/snapshot-uid-y")
	s.decide()
	s.has("shop/snapshot-uid-y")
}

// Pauses after useless tickets double up to a bound; success or progress ends them.
func TestPauses(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationExpansion)})
	s.works = []Work{expand("a")}
	for _, pause := range []time.Duration{Timeout, 2 * Timeout, 4 * Timeout, 8 * Timeout, 8 * Timeout} {
		s.decide()
		s.has("shop/expansion-uid-a")
		s.grant()
		s.decide()
		s.after(Timeout)
		s.tickets = nil // its time is over
		if plan := s.decide(); codes(plan) != "a "+ReasonPaused || plan.Again != pause {
			t.Fatalf("after %s: told %q, again after %s", pause, codes(plan), plan.Again)
		}
		s.after(pause - time.Second)
		s.decide()
		s.has("")
		s.after(time.Second)
	}
	s.decide()
	s.grant()
	s.decide()
	s.grown("a", 2)
	s.tickets = nil
	s.decide()
	s.has("shop/expansion-uid-a")
}

// The ticket cost nothing: the next is made soon.
func TestWaitedInVain(t *testing.T) {
	s := newScene(t, ledger.Policy{DetachFor: only(ledger.OperationExpansion)})
	s.works = []Work{expand("a")}
	for range 5 {
		s.decide()
		s.after(15 * time.Minute)
		s.decide()
		s.tickets = nil
		if plan := s.decide(); codes(plan) != "" || plan.Again != shortestPause {
			t.Fatalf("told %q, again after %s", codes(plan), plan.Again)
		}
		s.after(shortestPause)
	}
}

func TestMadeAgain(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationClone)})
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		name := fmt.Sprint("n", i)
		s.target(name, nil)
		s.works = []Work{cloneTo(name, "a")}
		s.decide()
		s.has("shop/clone-uid-" + name)
		s.grant()
		s.decide()
		s.after(time.Minute)
		s.apply(ledger.ClaimGone{Key: claim(name)})
		s.works = nil
		s.decide()
		s.has("")
		s.target("again", nil)
		s.works = []Work{cloneTo("again", "a")}
		if plan := s.decide(); plan.Again != pause {
			t.Fatalf("again after %s, want %s", plan.Again, pause)
		}
		s.after(pause)
	}
}

func TestLongestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 45 * time.Second, 2: 90 * time.Second, 4: 6 * time.Minute, 8: 96 * time.Minute, 9: 2 * time.Hour, 1000: 2 * time.Hour} {
		if got := pause(45*time.Second, failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := pause(time.Second, 1); got != shortestPause {
		t.Errorf("after a moment: %s", got)
	}
}

func TestCloneIsGivenUp(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationClone)})
	s.target("n", nil)
	s.works = []Work{cloneTo("n", "a")}
	s.decide()
	s.grant()
	s.decide()
	s.apply(ledger.StorageClassGone{Name: "fast"})
	if plan := s.decide(); len(plan.Over) != 1 || plan.Over[0] != (Over{ledger.OperationClone, Unfinished}) {
		t.Errorf("%+v", plan)
	}
	s.has("")
}

func TestCloneIsBound(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationClone)})
	s.target("n", nil)
	s.works = []Work{cloneTo("n", "a")}
	s.decide()
	s.grant()
	s.decide()
	s.volume("n")
	s.works = nil
	if plan := s.decide(); len(plan.Over) != 1 || plan.Over[0] != (Over{ledger.OperationClone, Done}) || len(plan.Past) != 0 {
		t.Errorf("%+v", plan)
	}
	s.has("")
}

func TestInfeasible(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationExpansion)})
	s.works = []Work{expand("a")}
	s.decide()
	s.grant()
	s.decide()
	s.after(3 * time.Second)
	s.works[0].Infeasible = true
	s.decide()
	s.has("")
	if plan := s.decide(); plan.Again != shortestPause {
		t.Errorf("again after %s", plan.Again)
	}
	s.after(shortestPause)
	s.decide()
	s.grant()
	s.decide()
	s.after(10 * time.Minute)
	s.decide()
	s.has("shop/expansion-uid-a")
}

func TestBoundOfANamespace(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	for i := range 100 {
		name := fmt.Sprintf("v%02d", i)
		s.volume(name)
		w := snapshotOf(name, name)
		w.Created = int64(i)
		s.works = append(s.works, w)
	}
	s.apply(ledger.PersistentVolume{Name: "other", UID: "other", Version: s.next(), Class: "fast", Access: ledger.AccessNode, Volume: ledger.VolumeID{Driver: driver, Handle: "other"}})
	late := snapshotOf("other", "other")
	late.Created = 1000
	s.works = append(s.works, late)
	plan := s.decide()
	if len(plan.Make) != MaxPerNamespace+1 || !strings.Contains(s.names(), "moorage-system/snapshot-uid-other") || !strings.Contains(s.names(), "uid-v15") {
		t.Fatalf("made %s", s.names())
	}
	if len(plan.Troubles) != MaxPerNamespace || plan.Troubles[0].Code != ReasonTooMany {
		t.Errorf("told %s", codes(plan))
	}
	s.works = slices.Delete(s.works, 0, 1)
	s.decide()
	s.decide()
	if !strings.Contains(s.names(), "uid-v16") {
		t.Errorf("one has ended, and the next one has no ticket: %s", s.names())
	}
}

func TestWaits(t *testing.T) {
	s := newScene(t, ledger.Policy{DetachFor: only(ledger.OperationExpansion)})
	s.works = []Work{expand("a")}
	s.decide()
	s.tickets[0].Reason, s.tickets[0].Message = "HeldElsewhere", "pod db has it"
	if plan := s.decide(); codes(plan) != "" || plan.Again != patience {
		t.Errorf("told %q, again after %s", codes(plan), plan.Again)
	}
	s.after(patience)
	if plan := s.decide(); codes(plan) != "a HeldElsewhere" || !strings.Contains(plan.Troubles[0].Message, "pod db has it") {
		t.Errorf("told %+v", plan.Troubles)
	}
}

func TestForeign(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	s.works = []Work{snapshotOf("x", "a")}
	m := s.decide().Make[0]
	for name, change := range map[string]func(*v1alpha1.VolumeTicket){
		"no label":        func(t *v1alpha1.VolumeTicket) { delete(t.Labels, v1alpha1.LabelOperation) },
		"another's":       func(t *v1alpha1.VolumeTicket) { t.Labels[v1alpha1.LabelManagedBy] = "backup" },
		"no owner":        func(t *v1alpha1.VolumeTicket) { t.OwnerReferences = nil },
		"another owner":   func(t *v1alpha1.VolumeTicket) { t.OwnerReferences[0].UID = "other" },
		"other operation": func(t *v1alpha1.VolumeTicket) { t.Labels[v1alpha1.LabelOperation] = "Clone" },
		"other type":      func(t *v1alpha1.VolumeTicket) { t.Spec.Type = v1alpha1.TicketManual },
		"of a claim":      func(t *v1alpha1.VolumeTicket) { t.OwnerReferences[0].Kind = "PersistentVolumeClaim" },
		"a node":          func(t *v1alpha1.VolumeTicket) { t.Spec.Wherever, t.Spec.NodeName = false, "n" },
		"no end":          func(t *v1alpha1.VolumeTicket) { t.Spec.TTLSeconds = nil },
		"on drain":        func(t *v1alpha1.VolumeTicket) { t.Spec.OnDrain = v1alpha1.OnDrainStay },
		"parameters":      func(t *v1alpha1.VolumeTicket) { t.Spec.Parameters = map[string]string{"a": "b"} },
	} {
		object := m.Object()
		change(object)
		if _, ours := TicketOf(object); ours {
			t.Errorf("%s: it is taken for Moorage's", name)
		}
	}
}
