// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

func unreport(t *testing.T, w *World, rule string) {
	t.Helper()
	n, _ := w.Node("w1")
	patch, _, _ := protocol.Compose(n, []protocol.Change{{Volume: disk, NodeUID: n.UID, Version: n.Version, Rule: rule}})
	if a := w.Serve(SentPatch(n, patch)); a.Code != OK {
		t.Fatalf("volumesAttached is not written: %s", a.Code)
	}
}

func detach(w *World) {
	name := ledger.AttachmentName(disk, "w1")
	w.Serve(Request{Do: DropAttachment, Key: name})
	w.Unpublish(disk, "w1#1")
}

func unready(w *World, outOfService bool) {
	n, _ := w.Node("w1")
	n.Ready, n.OutOfService = ledger.ReadyUnknown, outOfService
	w.Put(n)
}

// Force takes a volume only from a machine that reaches no disk. Time alone takes it from a living machine:
// that is listed.
func TestForce(t *testing.T) {
	minute := time.Minute
	for _, test := range []struct {
		name   string
		rule   string
		before func(*World, *Machine)
		faults int
		byTime int
	}{
		{"no rule holds", rules.AfterUnreachable, func(*World, *Machine) {}, 3, 0},
		{"taint, power off", rules.OutOfService, func(w *World, m *Machine) { m.PowerOff(); unready(w, true) }, 0, 0},
		{"taint, storage cut", rules.OutOfService, func(w *World, m *Machine) { m.Cut = true; unready(w, true) }, 0, 0},
		{"taint, a machine that lives", rules.OutOfService, func(w *World, m *Machine) { unready(w, true) }, 2, 0},
		{"time, a machine that lives", rules.AfterUnreachable, func(w *World, m *Machine) { unready(w, false); w.Now = w.Now.Add(minute) }, 0, 1},
		{"time, power off", rules.AfterUnreachable, func(w *World, m *Machine) { m.PowerOff(); unready(w, false); w.Now = w.Now.Add(minute) }, 0, 0},
		{"not long enough", rules.AfterUnreachable, func(w *World, m *Machine) { unready(w, false); w.Now = w.Now.Add(minute - 1) }, 3, 0},
		{"long enough, and its Lease goes on", rules.AfterUnreachable, func(w *World, m *Machine) {
			w.Judge.Leases = true
			unready(w, false)
			for range 3 {
				w.Kubelet(m.ID).Renew()
				w.Now = w.Now.Add(minute / 3)
			}
		}, 3, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, k := running(t)
			w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
			test.before(w, k.Machine())
			unreport(t, w, test.rule)
			detach(w)
			faults(t, w, test.faults)
			if len(w.Judge.ByTime) != test.byTime {
				t.Errorf("forced by time: %q, want %d", w.Judge.ByTime, test.byTime)
			}
		})
	}
}

// If unpublishing takes access away, a volume may leave a living machine, but be elsewhere only afterwards.
func TestForceByUnpublish(t *testing.T) {
	minute := time.Minute
	for name, test := range map[string]struct {
		policy ledger.Policy
		before func(*World)
		beside bool // it is attached elsewhere before it is detached
		faults int
		byTime int
	}{
		"the cloud's taint":             {ledger.Policy{UnpublishFences: true}, shutDown, false, 0, 0},
		"the taint, without a policy":   {ledger.Policy{}, shutDown, false, 3, 0},
		"the taint, elsewhere too soon": {ledger.Policy{UnpublishFences: true}, shutDown, true, 1, 0},
		"a time":                        {ledger.Policy{UnpublishFences: true, AfterUnreachable: &minute}, func(w *World) { unready(w, false); w.Now = w.Now.Add(minute) }, false, 0, 0},
		"a time, elsewhere too soon":    {ledger.Policy{UnpublishFences: true, AfterUnreachable: &minute}, func(w *World) { unready(w, false); w.Now = w.Now.Add(minute) }, true, 1, 0},
		"not long enough":               {ledger.Policy{UnpublishFences: true, AfterUnreachable: &minute}, func(w *World) { unready(w, false) }, false, 3, 0},
		"a time alone":                  {ledger.Policy{AfterUnreachable: &minute}, func(w *World) { unready(w, false); w.Now = w.Now.Add(minute) }, false, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := running(t)
			test.policy.Name, test.policy.Driver = "p", disk.Driver
			w.Put(test.policy)
			test.before(w)
			unreport(t, w, rules.UnpublishFences)
			if test.beside {
				w.AddMachine("w2#1", "w2")
				w.Publish(disk, "w2#1")
			}
			detach(w)
			faults(t, w, test.faults)
			if len(w.Judge.ByTime) != test.byTime {
				t.Errorf("forced by time: %q, want %d", w.Judge.ByTime, test.byTime)
			}
		})
	}
}

func shutDown(w *World) {
	n, _ := w.Node("w1")
	n.Ready, n.Shutdown = ledger.ReadyUnknown, true
	w.Put(n)
}

func TestProofEnds(t *testing.T) {
	for _, again := range []bool{false, true} {
		w, k := running(t)
		minute := time.Minute
		w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
		unready(w, false)
		w.Now = w.Now.Add(minute)
		unreport(t, w, rules.AfterUnreachable)
		want := 0
		if again {
			report(t, w, k.Machine().ID)
			want = 2 // the deletion, and the detach
		}
		detach(w)
		faults(t, w, want)
	}
}

// A deletion under a proof permits the later detach, in any later state of the node.
func TestDeletedUnderProof(t *testing.T) {
	w, k := running(t)
	minute := time.Minute
	w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
	unready(w, false)
	w.Now = w.Now.Add(minute)
	unreport(t, w, rules.AfterUnreachable)
	w.Stamp(ledger.AttachmentName(disk, "w1"))
	w.Serve(Request{Do: DropAttachment, Key: ledger.AttachmentName(disk, "w1")})
	report(t, w, k.Machine().ID)
	w.Unpublish(disk, "w1#1")
	faults(t, w, 0)
}

// A forced deletion that was sent while the proof stood is listed if the node is Ready again. Any other is
// a fault.
func TestOvertaken(t *testing.T) {
	for _, test := range []struct {
		name         string
		outOfService bool
		read         func(before, proved, ready int64) int64
		faults       int
	}{
		{"read while the proof stood", false, func(_, proved, _ int64) int64 { return proved }, 0},
		{"not read", false, func(_, _, _ int64) int64 { return 0 }, 2},
		{"read before the proof was made", false, func(before, _, _ int64) int64 { return before }, 2},
		{"read when the node was Ready again", false, func(_, _, ready int64) int64 { return ready }, 2},
		{"not by time alone", true, func(_, proved, _ int64) int64 { return proved }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, k := running(t)
			minute, key := time.Minute, ledger.AttachmentName(disk, "w1")
			w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
			w.Stamp(key)
			unready(w, test.outOfService)
			w.Now = w.Now.Add(minute)
			read := func() int64 { return w.Serve(Request{Do: GetObject, Kind: Nodes, Key: "w1"}).At }
			before := read()
			unreport(t, w, rules.AfterUnreachable)
			proved := read()
			report(t, w, k.Machine().ID)
			w.Serve(Request{Do: DropAttachment, Key: key, Since: test.read(before, proved, read())})
			w.Unpublish(disk, "w1#1")
			faults(t, w, test.faults)
			if listed := len(w.Judge.Overtaken) == 1; listed != (test.faults == 0) {
				t.Errorf("overtaken: %q", w.Judge.Overtaken)
			}
		})
	}
}

// The same holds if the Node is made again: a read from before the end of Ready showed no rule.
func TestOvertakenByANodeMadeAgain(t *testing.T) {
	for _, gone := range []bool{true, false} {
		w, k := running(t)
		minute, key := time.Minute, ledger.AttachmentName(disk, "w1")
		w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
		read := func() int64 { return w.Serve(Request{Do: GetObject, Kind: Nodes, Key: "w1"}).At }
		since := read()
		w.Drop(Nodes, "w1")
		w.Now = w.Now.Add(minute)
		if gone {
			since = read()
		}
		w.Kubelet("w1#1").Start()
		w.Kubelet("w1#1").Register()
		report(t, w, k.Machine().ID)
		w.Serve(Request{Do: DropAttachment, Key: key, Since: since})
		if listed := len(w.Judge.Overtaken) == 1; listed != gone || len(w.Judge.Faults) > 0 == gone {
			t.Errorf("read when it was gone %t: faults %q, listed %q", gone, w.Judge.Faults, w.Judge.Overtaken)
		}
	}
}

func TestLease(t *testing.T) {
	w, k := running(t)
	read := func() int64 {
		a := w.Serve(Request{Do: GetObject, Kind: Leases, Key: "w1"})
		if a.Code != OK {
			return 0
		}
		return a.Facts[0].(ledger.NodeLease).Renewed
	}
	if read() != 0 {
		t.Error("there is a Lease that nobody has made")
	}
	k.Renew()
	first := read()
	k.Broken = true
	report(t, w, "w1#1")
	w.Now = w.Now.Add(time.Second)
	if first == 0 || !k.Renew() || read() == first {
		t.Error("a kubelet that is not ready does not renew its Lease")
	}
	k.Linked = false
	if k.Renew() {
		t.Error("one that is cut off renews its Lease")
	}
	k.Linked = true
	w.Drop(Nodes, "w1")
	if k.Renew() || read() != 0 {
		t.Error("there is a Lease without a Node")
	}
}

func TestIdentity(t *testing.T) {
	w, k := running(t)
	first, _ := w.Node("w1")
	again := func() ledger.NodeState {
		w.Drop(Nodes, "w1")
		w.Kubelet("w1#1").Start()
		w.Kubelet("w1#1").Register()
		n, _ := w.Node("w1")
		return n
	}
	same := again()
	if same.UID == first.UID || same.SystemUUID != first.SystemUUID || same.BootID != first.BootID || !k.Machine().Uses(disk) {
		t.Errorf("the same boot: %+v", same)
	}
	k.Machine().PowerOff()
	boot := again()
	if boot.SystemUUID != first.SystemUUID || boot.BootID == first.BootID || k.Machine().Uses(disk) {
		t.Errorf("another boot: %+v", boot)
	}
	w.AddMachine("w1#2", "w1")
	w.Drop(Nodes, "w1")
	w.Kubelet("w1#2").Register()
	if n, _ := w.Node("w1"); n.SystemUUID == first.SystemUUID {
		t.Errorf("another machine: %+v", n)
	}
}

// A rule of force excuses nothing once the node is Ready again.
func TestExcuseEndsWithTheRule(t *testing.T) {
	minute := time.Minute
	for name, outOfService := range map[string]bool{"a time": false, "the taint": true} {
		for _, again := range []bool{false, true} {
			w, k := running(t)
			w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
			unready(w, outOfService)
			w.Now = w.Now.Add(minute)
			if outOfService {
				k.Machine().PowerOff()
			}
			unreport(t, w, rules.AfterUnreachable)
			if again {
				w.Drop(Nodes, "w1")
				w.Put(ledger.NodeState{Name: "w1", UID: "again", Ready: ledger.ReadyUnknown, Managed: true})
			}
			n, _ := w.Node("w1")
			n.Ready, n.OutOfService = ledger.ReadyTrue, false
			w.Put(n)
			if outOfService {
				k.Machine().PowerOn()
			}
			w.AddMachine("w2#1", "w2")
			w.Publish(disk, "w2#1")
			if len(w.Judge.Faults) != 1 || len(w.Judge.ByTime) != 0 {
				t.Errorf("%s, made again %t: faults %q, by time %q", name, again, w.Judge.Faults, w.Judge.ByTime)
			}
		}
	}
}

// The same boot makes a Node again after a forced detach: nothing remembers the mount, and another detach
// is listed.
func TestTakenFromAMountOfBefore(t *testing.T) {
	for _, test := range []struct{ before, gone, remade bool }{
		{remade: true}, {}, {before: true}, {before: true, remade: true}, {gone: true, remade: true},
	} {
		w, k := running(t)
		again := func() {
			w.Kubelet("w1#1").Start()
			w.Kubelet("w1#1").Register()
		}
		if test.before {
			w.Drop(Nodes, "w1")
			again()
			report(t, w, k.Machine().ID)
			reported(w, "w1", disk)
		}
		minute := time.Minute
		w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
		w.Judge.Begins(w)
		unready(w, false)
		if test.gone {
			w.Drop(Nodes, "w1")
			w.Now = w.Now.Add(minute)
		} else {
			w.Now = w.Now.Add(minute)
			unreport(t, w, rules.AfterUnreachable)
		}
		detach(w)
		if test.remade {
			w.Drop(Nodes, "w1")
			again()
		}
		report(t, w, k.Machine().ID)
		w.Drop(Attachments, ledger.AttachmentName(disk, "w1"))
		attach(w, "w1", "w1#1")
		reported(w, "w1")
		faults(t, w, 0)
		w.Serve(Request{Do: DropAttachment, Key: ledger.AttachmentName(disk, "w1")})
		if listed := len(w.Judge.SameBoot) == 1; listed != test.remade || len(w.Judge.Faults) > 0 == test.remade {
			t.Errorf("%+v: faults %q, listed %q", test, w.Judge.Faults, w.Judge.SameBoot)
		}
	}
}

// A volume without VolumeAttachments is taken by time from a recreated Node that omits it. A later mount
// elsewhere is listed.
func TestTakenFromANodeThatDoesNotNameIt(t *testing.T) {
	iscsi, minute := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "i"}, time.Minute
	for _, forced := range []bool{true, false} {
		w := New()
		pv := ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: iscsi, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "ns", Name: "c"}}
		w.Put(pv)
		w.Put(ledger.Claim{Key: pv.Claim, UID: "c", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode})
		w.Put(ledger.Policy{Name: "p", Driver: iscsi.Driver, AfterUnreachable: &minute})
		for _, n := range []ledger.NodeName{"w1", "w2"} {
			w.AddMachine(string(n)+"#1", n)
			w.Kubelet(string(n) + "#1").Register()
		}
		mountsReported(t, w, "w1", iscsi)
		w.Drop(Nodes, "w1")
		w.Kubelet("w1#1").Start()
		w.Kubelet("w1#1").Register()
		unready(w, false)
		w.Now = w.Now.Add(minute)
		n, exists := w.Node("w1")
		if !exists || !lacks(n.Reported, iscsi) {
			t.Fatalf("the Node that was made again: %+v", n)
		}
		if forced {
			patch, _, _ := protocol.Compose(n, []protocol.Change{{Volume: iscsi, NodeUID: n.UID, Version: n.Version, Rule: rules.AfterUnreachable}})
			if a := w.Serve(SentPatch(n, patch)); a.Code != OK {
				t.Fatal(a.Code)
			}
		}
		n.Ready = ledger.ReadyTrue
		w.Put(n)
		mountsReported(t, w, "w2", iscsi)
		if listed := len(w.Judge.ByTime) == 1; listed != forced || len(w.Judge.Faults) > 0 == forced {
			t.Errorf("forced %t: faults %q, listed %q", forced, w.Judge.Faults, w.Judge.ByTime)
		}
	}
}

// A Lease may be deleted before its last renewal is read: a volume taken by time is then listed.
func TestRenewedBeforeTheNodeIsGone(t *testing.T) {
	minute := time.Minute
	for _, read := range []bool{false, true} {
		w, k := running(t)
		w.Judge.Leases = true
		w.Put(ledger.Policy{Name: "p", Driver: disk.Driver, AfterUnreachable: &minute})
		k.Renew()
		unready(w, false)
		w.Now = w.Now.Add(2 * minute)
		k.Renew()
		w.Now = w.Now.Add(told - time.Second)
		if read {
			w.Now = w.Now.Add(time.Second)
		}
		w.Drop(Nodes, "w1")
		w.Now = w.Now.Add(minute / 2)
		detach(w)
		if listed := len(w.Judge.ByTime) == 1; listed == read || len(w.Judge.Faults) > 0 != read {
			t.Errorf("read %t: faults %q, listed %q", read, w.Judge.Faults, w.Judge.ByTime)
		}
	}
}
