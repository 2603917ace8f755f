// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// A grant is judged by the node's highest limit so far; if nothing lies between a decision and its write,
// by the present limit.
func TestLimitsThatStand(t *testing.T) {
	for _, exact := range []bool{false, true} {
		w := New()
		w.Judge.Exact = exact
		for _, limit := range []int32{2, 0} {
			w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: disk.Driver, NodeID: "w1#1", Limit: limit}}})
		}
		w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessMany})
		id := ledger.TicketID{Namespace: "ns", Name: "t"}
		w.Put(ledger.Ticket{ID: id, UID: "t", Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}})
		w.Serve(Request{Do: DecideTicket, Key: id.String(), Phase: ledger.TicketGranted})
		if found := len(w.Judge.Faults) > 0; found != exact {
			t.Errorf("exact %t: %v", exact, w.Judge.Faults)
		}
	}
}

// A deleted hold may be made again unchanged, but not with the same transitions for another node, or with
// fewer.
func TestHoldMadeAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		hold ledger.Hold
		bad  bool
	}{
		{"as it was", ledger.Hold{Node: "w1", Transitions: 2}, false},
		{"for another node", ledger.Hold{Node: "w2", Transitions: 2}, true},
		{"for another node, counted", ledger.Hold{Node: "w2", Transitions: 3}, false},
		{"counted anew", ledger.Hold{Node: "w1", Transitions: 1}, true},
	} {
		w := New()
		w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessNode})
		w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Node: "w1", Transitions: 2}})
		w.Drop(Holds, disk.String())
		w.Put(ledger.HoldSeen{Volume: disk, Hold: test.hold})
		if found := len(w.Judge.Faults) > 0; found != test.bad {
			t.Errorf("%s: %v", test.name, w.Judge.Faults)
		}
	}
}

// The granter is responsible for its own grants only, also if pods are bound past them.
func TestLimitsBesideBinds(t *testing.T) {
	for name, test := range map[string]struct {
		claims string // of the tickets, granted in this order
		past   string // of the pod that is bound past them
		after  int    // the number of grants before it
		stock  string // a volume that kube-controller-manager has just attached
		bad    bool
		early  string // claims of tickets from the start
		gone   bool   // the pod has gone before its volume is attached, unknown to the attacher
		anew   string // claims of tickets that change after the volume's attach
		left   string // claims of granted tickets that go before the bind
		listed string // claims of volumes in the node's volumesInUse, until that volume is attached
	}{
		"within the limit": {"ab", "c", 1, "", false, "b", false, "", "", ""},
		"its volume is attached before the ticket is made":             {"ab", "c", 1, "", true, "", false, "", "", ""},
		"its volume is attached before the ticket changes":             {"ab", "c", 1, "", true, "b", false, "b", "", ""},
		"but the one granted was there until then, by the node's word": {"ab", "c", 1, "", false, "", false, "", "", "b"},
		"or was, by a ticket that went before the bind":                {"ab", "c", 1, "", false, "", false, "", "b", ""},
		"over it by grants":                                    {"abd", "c", 1, "", true, "bd", false, "", "", ""},
		"over it by grants, later":                             {"abd", "c", 0, "", true, "abd", false, "", "", ""},
		"over it by the bind":                                  {"ab", "c", 2, "", false, "", false, "", "", ""},
		"its volume is granted, too":                           {"ac", "c", 1, "", false, "", false, "", "", ""},
		"and counts from then on":                              {"acb", "c", 1, "", true, "", false, "", "", ""},
		"but a grant was on its way when it was bound":         {"acb", "c", 1, "", false, "b", false, "", "", ""},
		"it takes a volume that stands":                        {"ab", "a", 1, "", false, "", false, "", "", ""},
		"which counts as before":                               {"abd", "a", 1, "", true, "", false, "", "", ""},
		"another one is attached there":                        {"cba", "c", 0, "a", false, "", false, "", "", ""},
		"its pod has gone":                                     {"ab", "c", 1, "", false, "b", true, "", "", ""},
		"its pod has gone, and it is over the limit by grants": {"abd", "c", 1, "", true, "bd", true, "", "", ""},
	} {
		w := New()
		w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
		w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: disk.Driver, NodeID: "w1#1", Limit: 2}}})
		for _, c := range []string{"a", "b", "c", "d"} {
			key := ledger.ClaimKey{Namespace: "ns", Name: c}
			w.Put(ledger.PersistentVolume{Name: c, UID: c, Volume: ledger.VolumeID{Driver: disk.Driver, Handle: c}, Access: ledger.AccessMany, Claim: key})
			w.Put(ledger.Claim{Key: key, UID: c, PersistentVolume: c, Bound: true, Access: ledger.AccessMany})
		}
		if test.stock != "" {
			w.Serve(Request{Do: CreateAttachment, Fact: ledger.Attachment{Name: "csi-" + test.stock, Driver: disk.Driver, Node: "w1", PersistentVolume: test.stock}})
		}
		w.Put(ledger.Pod{UID: "past", Namespace: "ns", Name: "past", Volumes: []ledger.PodVolume{{Name: "v", Claim: test.past}}})
		if test.listed != "" {
			w.Put(ledger.NodeState{Name: "w1", UID: "w1", InUse: []ledger.VolumeID{{Driver: disk.Driver, Handle: test.listed}}})
		}
		ask := func(claim string) {
			id := ledger.TicketID{Namespace: "ns", Name: claim}
			if _, exists := w.Ticket(TicketKey(id.String())); !exists {
				w.Put(ledger.Ticket{ID: id, UID: claim, Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{Claim: claim, ClaimUID: claim}}})
			}
		}
		for _, c := range test.early {
			ask(string(c))
		}
		w.Judge.Binds = true
		grant := func(claim string) {
			ask(claim)
			w.Serve(Request{Do: DecideTicket, Key: ledger.TicketID{Namespace: "ns", Name: claim}.String(), Phase: ledger.TicketGranted})
		}
		for _, c := range test.left {
			grant(string(c))
			w.Drop(Tickets, ledger.TicketID{Namespace: "ns", Name: string(c)}.String())
		}
		for i, c := range test.claims {
			if i == test.after {
				w.BindPast("past", "w1")
				if test.gone {
					w.Drop(Pods, "past")
				}
				w.Serve(Request{Do: CreateAttachment, Fact: ledger.Attachment{Name: "csi-" + test.past, Driver: disk.Driver, Node: "w1", PersistentVolume: test.past, Ours: true}})
				if test.listed != "" {
					w.Put(ledger.NodeState{Name: "w1", UID: "w1"})
				}
				for _, claim := range test.anew {
					waiting, _ := w.Ticket(TicketKey(ledger.TicketID{Namespace: "ns", Name: string(claim)}.String()))
					waiting.Reason = "NoFreeSlot"
					w.Put(waiting)
				}
			}
			grant(string(c))
		}
		if found := len(w.Judge.Faults) > 0; found != test.bad {
			t.Errorf("%s: %v", name, w.Judge.Faults)
		}
	}
}

// A lone scheduler takes no node past its limit, and puts no exclusive volume at two nodes. With other
// schedulers one of the pods waits.
func TestBindsOfOneScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		access ledger.Access
		second string // the claim of the second pod
		node   ledger.NodeName
		ended  bool // the first pod has ended by then
		bad    bool
	}{
		"another volume at the full node":  {access: ledger.AccessNode, second: "b", node: "w1", bad: true},
		"another volume at another node":   {access: ledger.AccessNode, second: "b", node: "w2"},
		"the same volume at the same node": {access: ledger.AccessNode, second: "a", node: "w1"},
		"the same volume at another node":  {access: ledger.AccessNode, second: "a", node: "w2", bad: true},
		"a shared volume at another node":  {access: ledger.AccessMany, second: "a", node: "w2"},
		"a volume for one pod":             {access: ledger.AccessPod, second: "a", node: "w1", bad: true},
		"a volume whose pod has ended":     {access: ledger.AccessPod, second: "a", node: "w2", ended: true},
		"a slot of a pod that has ended":   {access: ledger.AccessNode, second: "b", node: "w1", ended: true},
	} {
		for _, alone := range []bool{true, false} {
			w := New()
			w.Judge.Alone = alone
			w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
			for _, n := range []ledger.NodeName{"w1", "w2"} {
				w.Put(ledger.NodeState{Name: n, UID: string(n), Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
				w.Put(ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: disk.Driver, Limit: 1}}})
			}
			for _, c := range []string{"a", "b"} {
				key := ledger.ClaimKey{Namespace: "ns", Name: c}
				w.Put(ledger.PersistentVolume{Name: c, UID: c, Volume: ledger.VolumeID{Driver: disk.Driver, Handle: c}, Access: test.access, Claim: key})
				w.Put(ledger.Claim{Key: key, UID: c, PersistentVolume: c, Bound: true, Access: test.access})
			}
			for uid, claim := range map[string]string{"first": "a", "second": test.second} {
				w.Put(ledger.Pod{UID: uid, Namespace: "ns", Name: uid, Volumes: []ledger.PodVolume{{Name: "v", Claim: claim}}})
			}
			w.Serve(Request{Do: BindPod, UID: "first", Node: "w1"})
			if test.ended {
				w.Serve(Request{Do: FinishPod, UID: "first"})
			}
			w.Serve(Request{Do: BindPod, UID: "second", Node: test.node})
			if found := len(w.Judge.Faults) > 0; found != (test.bad && alone) {
				t.Errorf("%s, alone %t: %v", name, alone, w.Judge.Faults)
			}
		}
	}
}

// A detach under a mount is no fault only if the leader can't know the mount: the same boot made its Node
// again before the leader began, and no hold named the boot.
func TestSameBootIsListed(t *testing.T) {
	for name, test := range map[string]struct {
		access  ledger.Access
		held    string // the boot in the hold at the Node's deletion
		boot    bool   // the machine has booted, so that nothing is mounted
		seen    bool   // by the leader
		written bool
		told    bool // the hold said so when the leader began, and no longer does
		before  bool // or only before that
		again   bool // the Node is deleted and made again under the leader
		anew    bool // the volume was unmounted since, and mounted for another pod
		after   bool // the volume is mounted after the Node is gone
		listed  bool
		faults  int
	}{
		"a shared volume":                  {access: ledger.AccessMany, listed: true},
		"the leader saw it once more":      {access: ledger.AccessMany, again: true, faults: 1},
		"another mount":                    {access: ledger.AccessMany, anew: true, faults: 1},
		"an exclusive one":                 {access: ledger.AccessNode, faults: 1},
		"the hold names the boot":          {access: ledger.AccessNode, held: "w1#1.1", faults: 1},
		"the hold names another boot":      {access: ledger.AccessNode, held: "w1#1.0", listed: true},
		"the leader saw that, too":         {access: ledger.AccessNode, held: "w1#1.0", seen: true, faults: 1},
		"the leader saw that":              {access: ledger.AccessMany, seen: true, faults: 1},
		"the hold says so":                 {access: ledger.AccessMany, written: true, faults: 1},
		"the hold said so":                 {access: ledger.AccessMany, told: true, faults: 1},
		"the hold said so before":          {access: ledger.AccessMany, before: true, faults: 1},
		"another boot: nothing is mounted": {access: ledger.AccessMany, boot: true},
		"mounted after that":               {access: ledger.AccessNode, held: "w1#1.0", after: true, listed: true},
		"mounted after the leader saw it":  {access: ledger.AccessNode, held: "w1#1.0", after: true, seen: true, faults: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := running(t)
			pv, _ := w.Get(PersistentVolumes, "pv1").(ledger.PersistentVolume)
			pv.Access = test.access
			w.Put(pv)
			if test.held != "" {
				w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Node: "w1", BootID: test.held, Transitions: 1}})
			}
			if test.seen {
				w.Judge.Begins(w)
			}
			if test.boot {
				k.Machine().PowerOff()
			}
			if test.after && !(k.Machine().Unpublish(disk, "p1") && k.Machine().Unstage(disk)) {
				t.Fatal("the volume is not unmounted")
			}
			w.Drop(Nodes, "w1")
			if test.after && !w.Mount(k.Machine(), disk, "p1") {
				t.Fatal("the volume is not mounted")
			}
			says := func(fences ...ledger.Fence) { w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Fences: fences}}) }
			if mount := (ledger.Fence{Node: "w1", BootID: k.Machine().BootID(), InUse: true}); test.told || test.before {
				says(mount)
			}
			if test.before {
				w.Judge.Begins(w)
				says()
			}
			if !test.seen {
				w.Judge.Begins(w)
			}
			if test.told {
				says()
			}
			register := func() {
				w.Kubelet("w1#1").Start()
				w.Kubelet("w1#1").Register()
			}
			register()
			if test.again {
				reported(w, "w1", disk)
				w.Drop(Nodes, "w1")
				register()
			}
			if m := k.Machine(); test.anew && !(m.Unpublish(disk, "p1") && m.Unstage(disk) && w.Mount(m, disk, "p2")) {
				t.Fatal("the volume is not mounted anew")
			}
			if test.written {
				w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Fences: []ledger.Fence{{Node: "w1", BootID: k.Machine().BootID()}}}})
			}
			a, _ := w.Attachment(ledger.AttachmentName(disk, "w1"))
			w.Serve(Request{Do: DropAttachment, Key: a.Name, UID: a.UID, Version: a.Version})
			if len(w.Judge.Faults) != test.faults || (len(w.Judge.SameBoot) == 1) != test.listed {
				t.Errorf("faults %q, listed %q", w.Judge.Faults, w.Judge.SameBoot)
			}
		})
	}
}

// An exclusive volume of a pod known to the granter is granted nowhere else.
func TestGrantBesideABind(t *testing.T) {
	for name, test := range map[string]struct {
		past    bool
		unknown bool
		held    ledger.NodeName
		bad     bool
	}{
		"nobody was bound before":       {bad: true},
		"nobody knew of the pod":        {unknown: true},
		"the hold names neither":        {past: true},
		"the hold names the first node": {past: true, held: "w1"},
		"the hold names the other one":  {past: true, held: "w2", bad: true},
	} {
		w, key := New(), ledger.ClaimKey{Namespace: "ns", Name: "c"}
		w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
		w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessNode, Claim: key})
		w.Put(ledger.Claim{Key: key, UID: "c", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode})
		for _, n := range []ledger.NodeName{"w1", "w2"} {
			w.Put(ledger.NodeState{Name: n, UID: string(n), Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
			w.Put(ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: disk.Driver, Limit: ledger.NoLimit}}})
		}
		for _, uid := range []string{"past", "bound"} {
			w.Put(ledger.Pod{UID: uid, Namespace: "ns", Name: uid, Volumes: []ledger.PodVolume{{Name: "v", Claim: "c"}}})
		}
		if test.past {
			w.BindPast("past", "w1")
			w.Drop(Pods, "past")
		}
		if test.held != "" {
			w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Node: test.held, Transitions: 1}})
		}
		known := w.Version()
		w.Serve(Request{Do: BindPod, UID: "bound", Node: "w2"})
		id := ledger.TicketID{Namespace: "ns", Name: "next"}
		w.Put(ledger.Ticket{ID: id, UID: "t", Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{Claim: "c", ClaimUID: "c"}}})
		if !test.unknown {
			known = w.Version()
		}
		w.Serve(Request{Do: DecideTicket, Key: id.String(), Phase: ledger.TicketGranted, Since: known})
		if found := len(w.Judge.Faults) > 0; found != test.bad {
			t.Errorf("%s: %v", name, w.Judge.Faults)
		}
	}
}

// A leader attaches a volume whose ticket says that it is attached nowhere: the judge reports it.
func TestAttachedWhileKeptDetached(t *testing.T) {
	for _, v := range []ledger.VolumeID{disk, {Driver: "kubernetes.io/iscsi", Handle: "i"}} {
		for _, first := range []bool{false, true} { // it is attached before the ticket is told
			w := New()
			w.Put(ledger.NodeState{Name: "w1", UID: "w1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
			w.AddMachine("w1#1", "w1")
			w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: v, Access: ledger.AccessMany})
			attach := func() {
				if !v.NoAttach() {
					w.Publish(v, "w1#1")
					return
				}
				n, _ := w.Node("w1")
				patch, _, _ := protocol.Compose(n, []protocol.Change{{Volume: v, NodeUID: n.UID, Add: true}})
				if a := w.Serve(SentPatch(n, patch)); a.Code != OK {
					t.Fatal(a.Code)
				}
				if n, _ := w.Node("w1"); lacks(n.Reported, v) {
					t.Fatal("not reported")
				}
			}
			if first {
				attach()
			}
			ticket := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "t"}, UID: "t", Type: ledger.TypeExpansion, Node: ledger.Detached,
				Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
			w.Put(ticket)
			ticket.SatisfiedSince = 1
			w.Put(ticket)
			if !first {
				attach()
			}
			if len(w.Judge.Faults) == 0 {
				t.Errorf("%s, attached before %t: the judge sees nothing", v, first)
			}
		}
	}
}

// In a live migration, a mount at a deleted Node of a volume without VolumeAttachments is no fault.
func TestMigrationFromANodeThatIsGone(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "i"}
	for _, migrates := range []bool{true, false} {
		w := New()
		w.Put(ledger.Policy{Name: "p", Driver: iscsi.Driver, LiveMigration: true})
		pv := ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: iscsi, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "ns", Name: "c"}}
		w.Put(pv)
		w.Put(ledger.Claim{Key: pv.Claim, UID: "c", PersistentVolume: "pv", Bound: true})
		for _, n := range []ledger.NodeName{"w1", "w2"} {
			w.AddMachine(string(n)+"#1", n)
			w.Kubelet(string(n) + "#1").Register(ledger.DriverOnNode{Name: iscsi.Driver, NodeID: string(n)})
		}
		mountsReported(t, w, "w1", iscsi)
		w.Drop(Nodes, "w1")
		if migrates {
			w.Put(ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "t"}, UID: "t", Type: ledger.TypeLiveMigration, Node: "w2",
				Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "c"}}})
		}
		mountsReported(t, w, "w2", iscsi)
		if len(w.Judge.Faults) > 0 == migrates {
			t.Errorf("it migrates %t: %q", migrates, w.Judge.Faults)
		}
	}
}

// With complete facts, a departed volume excuses no grant past the limit, unless the granter still counts
// it.
func TestAllKnownEndsExcuses(t *testing.T) {
	for name, test := range map[string]struct {
		stays, known, counted bool
		faults                int
	}{
		"not all is known":        {},
		"all is known":            {known: true, faults: 1},
		"it is counted there":     {known: true, counted: true},
		"the pod is there still":  {known: true, stays: true},
		"nobody knows that it is": {stays: true},
	} {
		w := New()
		w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
		w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: disk.Driver, NodeID: "w1#1", Limit: 1}}})
		for _, c := range []string{"a", "b"} {
			key := ledger.ClaimKey{Namespace: "ns", Name: c}
			w.Put(ledger.PersistentVolume{Name: c, UID: c, Volume: ledger.VolumeID{Driver: disk.Driver, Handle: c}, Access: ledger.AccessMany, Claim: key})
			w.Put(ledger.Claim{Key: key, UID: c, PersistentVolume: c, Bound: true, Access: ledger.AccessMany})
		}
		w.Put(ledger.Pod{UID: "past", Namespace: "ns", Name: "past", Volumes: []ledger.PodVolume{{Name: "v", Claim: "b"}}})
		w.BindPast("past", "w1")
		if !test.stays {
			w.Drop(Pods, "past")
		}
		if test.known {
			w.Judge.AllKnown(w, func(At) bool { return test.counted })
		}
		for _, c := range []string{"a", "b"} {
			id := ledger.TicketID{Namespace: "ns", Name: c}
			w.Put(ledger.Ticket{ID: id, UID: c, Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{Claim: c}}})
			w.Serve(Request{Do: DecideTicket, Key: id.String(), Phase: ledger.TicketGranted})
		}
		if len(w.Judge.Faults) != test.faults {
			t.Errorf("%s: %q", name, w.Judge.Faults)
		}
	}
}

// After the granter had complete facts, an earlier limit excuses no grant.
func TestAllKnownEndsLimits(t *testing.T) {
	for _, known := range []bool{false, true} {
		w := New()
		w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
		for _, limit := range []int32{2, 1} {
			w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: disk.Driver, NodeID: "w1#1", Limit: limit}}})
		}
		if !w.Judge.Marks(w) {
			t.Error("that a limit has shrunk is no mark")
		}
		if known {
			w.Judge.AllKnown(w, func(At) bool { return false })
		}
		if w.Judge.Marks(w) == known {
			t.Errorf("known %t: the mark", known)
		}
		for _, c := range []string{"a", "b"} {
			key := ledger.ClaimKey{Namespace: "ns", Name: c}
			w.Put(ledger.PersistentVolume{Name: c, UID: c, Volume: ledger.VolumeID{Driver: disk.Driver, Handle: c}, Access: ledger.AccessMany, Claim: key})
			w.Put(ledger.Claim{Key: key, UID: c, PersistentVolume: c, Bound: true, Access: ledger.AccessMany})
			id := ledger.TicketID{Namespace: "ns", Name: c}
			w.Put(ledger.Ticket{ID: id, UID: c, Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{Claim: c}}})
			w.Serve(Request{Do: DecideTicket, Key: id.String(), Phase: ledger.TicketGranted})
		}
		if len(w.Judge.Faults) > 0 != known {
			t.Errorf("known %t: %q", known, w.Judge.Faults)
		}
	}
}

func TestToldOfWhatIsNotAttached(t *testing.T) {
	for _, attached := range []bool{false, true} {
		w := New()
		w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
		w.AddMachine("w1#1", "w1")
		w.Kubelet("w1#1").Register(ledger.DriverOnNode{Name: disk.Driver, NodeID: "w1#1", Limit: ledger.NoLimit})
		n, _ := w.Node("w1")
		n.Ready = ledger.ReadyTrue
		w.Put(n)
		pv := ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "ns", Name: "c"}}
		w.Put(pv)
		w.Put(ledger.Claim{Key: pv.Claim, UID: "c", PersistentVolume: "pv", Bound: true})
		if attached {
			w.Publish(disk, "w1#1")
		}
		ticket := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "t"}, UID: "t", Type: ledger.TypeBackup, Node: "w1",
			Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "c"}}}
		w.Put(ticket)
		ticket.SatisfiedSince = 1
		w.Put(ticket)
		if len(w.Judge.Faults) > 0 == attached {
			t.Errorf("attached %t: %q", attached, w.Judge.Faults)
		}
	}
}

// A VolumeAttachment past the limit is a fault for an opted-in pod that has not started. For others the
// driver decides.
func TestAttachesPastTheLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit int32
		pod   ledger.Pod
		bad   bool
	}{
		"one slot for two":  {1, ledger.Pod{}, true},
		"two slots":         {2, ledger.Pod{}, false},
		"it did not opt in": {1, ledger.Pod{OptedOut: true}, false},
		"it has started":    {1, ledger.Pod{Started: true}, false},
		"it is on its way":  {1, ledger.Pod{Phase: ledger.PodTerminating}, false},
		"there is no limit": {ledger.NoLimit, ledger.Pod{}, false},
	} {
		w := New()
		w.Put(ledger.NodeState{Name: "w1", UID: "w1", Ready: ledger.ReadyTrue, Managed: true})
		w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "w1", Limit: test.limit}}})
		for _, claim := range []string{"a", "b"} {
			key := ledger.ClaimKey{Namespace: "ns", Name: claim}
			w.Put(ledger.PersistentVolume{Name: claim, UID: claim, Volume: ledger.VolumeID{Driver: "disk", Handle: claim}, Access: ledger.AccessMany, Claim: key})
			w.Put(ledger.Claim{Key: key, UID: claim, PersistentVolume: claim, Bound: true, Access: ledger.AccessMany})
			p := test.pod
			p.UID, p.Namespace, p.Name, p.Node, p.Volumes = claim, "ns", claim, "w1", []ledger.PodVolume{{Name: "v", Claim: claim}}
			w.Put(p)
			w.Serve(Request{Do: CreateAttachment, Fact: ledger.Attachment{Name: "csi-" + claim, Driver: "disk", Node: "w1", PersistentVolume: claim, Ours: true}})
		}
		if found := len(w.Judge.Faults) > 0; found != test.bad {
			t.Errorf("%s: %v", name, w.Judge.Faults)
		}
	}
}
