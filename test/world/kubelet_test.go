// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

var disk = ledger.VolumeID{Driver: "csi.test", Handle: "v1"}

func running(t *testing.T) (*World, Kubelet) {
	t.Helper()
	w := New()
	claim := ledger.ClaimKey{Namespace: "ns", Name: "c1"}
	w.Put(ledger.Driver{Name: disk.Driver, AttachRequired: true})
	w.Put(ledger.PersistentVolume{Name: "pv1", UID: "pv1", Volume: disk, Access: ledger.AccessNode, Claim: claim})
	w.Put(ledger.Claim{Key: claim, UID: "c1", PersistentVolume: "pv1", Bound: true, Access: ledger.AccessNode})
	for _, n := range []ledger.NodeName{"w1", "w2"} {
		id := string(n) + "#1"
		w.AddMachine(id, n)
		w.Kubelet(id).Register(ledger.DriverOnNode{Name: disk.Driver, NodeID: id, Limit: ledger.NoLimit})
		report(t, w, id)
	}
	w.Put(ledger.Pod{UID: "p1", Namespace: "ns", Name: "p1", Node: "w1", Volumes: []ledger.PodVolume{{Name: "vol", Claim: "c1"}}})
	attach(w, "w1", "w1#1")
	reach(t, w, "w1#1", "p1")
	return w, w.Kubelet("w1#1")
}

func attach(w *World, n ledger.NodeName, machine string) {
	w.Put(ledger.Attachment{
		Name: ledger.AttachmentName(disk, n), UID: w.UID(), Driver: disk.Driver, Node: n, PersistentVolume: "pv1",
		NodeID: machine, Attached: true, Ours: true,
	})
	w.Publish(disk, machine)
	reported(w, n, disk)
}

func reported(w *World, n ledger.NodeName, list ...ledger.VolumeID) {
	now, _ := w.Node(n)
	now.Reported = list
	w.Put(now)
}

func report(t *testing.T, w *World, machine string) {
	t.Helper()
	k := w.Kubelet(machine)
	k.SeeNode()
	k.SeePods()
	if r, possible := k.Report(); possible {
		k.Reported(w.Serve(r))
	}
}

func resolve(t *testing.T, w *World, machine string) {
	t.Helper()
	r, possible := w.Kubelet(machine).Resolve()
	if !possible {
		t.Fatal("there is nothing to resolve")
	}
	w.Kubelet(machine).Resolved(w.Serve(r))
}

func reach(t *testing.T, w *World, machine, pod string) {
	t.Helper()
	report(t, w, machine)
	k := w.Kubelet(machine)
	if r, possible := k.Verify(disk); possible {
		k.Verified(disk, w.Serve(r))
	}
	if r, possible := k.Check(disk); possible {
		k.CheckedBy(disk, w.Serve(r))
	}
	k.Mount(disk, pod)
	if !k.Run(pod) {
		t.Fatalf("%s does not run", pod)
	}
}

func mountsReported(t *testing.T, w *World, n ledger.NodeName, v ledger.VolumeID) {
	t.Helper()
	machine, uid := string(n)+"#1", "at-"+string(n)
	k := w.Kubelet(machine)
	w.Put(ledger.Pod{UID: uid, Namespace: "ns", Name: uid, Node: n, Volumes: []ledger.PodVolume{{Name: "v", Claim: "c"}}})
	report(t, w, machine)
	is, _ := w.Node(n)
	patch, _, _ := protocol.Compose(is, []protocol.Change{{Volume: v, NodeUID: is.UID, Add: true}})
	w.Serve(SentPatch(is, patch))
	k.SeeNode()
	look, _ := k.Verify(v)
	k.Verified(v, w.Serve(look))
	k.Check(v)
	if !k.Mount(v, uid) {
		t.Fatalf("it is not mounted at %s", n)
	}
}

func inUse(w *World, n ledger.NodeName) bool {
	now, _ := w.Node(n)
	return slices.Contains(now.InUse, disk)
}

func faults(t *testing.T, w *World, want int) {
	t.Helper()
	if len(w.Judge.Faults) != want {
		t.Errorf("the judge finds %q, want %d", w.Judge.Faults, want)
	}
}

// A mount needs volumesInUse, volumesAttached and the VolumeAttachment to name the volume, in this order.
func TestHandshake(t *testing.T) {
	w, k := running(t)
	faults(t, w, 0)
	w.Put(ledger.Pod{UID: "p2", Namespace: "ns", Name: "p2", Node: "w2", Volumes: []ledger.PodVolume{{Name: "vol", Claim: "c1"}}})
	other := w.Kubelet("w2#1")
	other.SeePods()
	reported(w, "w2", disk)
	other.SeeNode()
	if other.CanVerify(disk) {
		t.Error("it looks at volumesAttached before it has told that it uses the volume")
	}
	report(t, w, "w2#1")
	if !inUse(w, "w2") || !other.CanVerify(disk) {
		t.Error("it does not look at volumesAttached")
	}
	if r, _ := other.Verify(disk); true {
		other.Verified(disk, w.Serve(r))
	}
	r, possible := other.Check(disk)
	if !possible {
		t.Fatal("it does not check the VolumeAttachment")
	}
	other.CheckedBy(disk, w.Serve(r))
	if other.Mount(disk, "p2") {
		t.Error("it mounts what has no VolumeAttachment")
	}
	if !k.Machine().Uses(disk) || other.Machine().Uses(disk) {
		t.Error("the volume is not where it was")
	}
}

// A starting kubelet leaves a mount that volumesAttached lacks out of volumesInUse. Before that, its
// heartbeats have no list.
func TestRestartDropsUseThatIsNotReported(t *testing.T) {
	for _, named := range []bool{true, false} {
		w, k := running(t)
		if !k.Machine().Stick(disk) {
			t.Fatal("nothing is staged")
		}
		w.DeletePod("p1")
		w.Drop(Pods, "p1") // by force
		if !named {
			reported(w, "w1")
		}
		k.Kill()
		k.Start()
		n, _ := w.Node("w1")
		n.Ready = ledger.ReadyUnknown
		w.Put(n)
		k.Register()
		report(t, w, "w1#1")
		if now, _ := w.Node("w1"); now.Ready != ledger.ReadyTrue || !inUse(w, "w1") {
			t.Error("its heartbeat is not what it was before it has read its Node")
		}
		resolve(t, w, "w1#1")
		if k.Unmount(disk, "p1") {
			t.Error("a mount that is stuck is gone")
		}
		report(t, w, "w1#1")
		if inUse(w, "w1") != named || !k.Machine().Uses(disk) {
			t.Errorf("volumesAttached names it: %v; volumesInUse names it: %v; it is mounted: %v", named, inUse(w, "w1"), k.Machine().Uses(disk))
		}
	}
}

// The residual risks: a starting kubelet forgets volumes, though volumesAttached names them.
func TestRestartForgets(t *testing.T) {
	for _, test := range []struct {
		name      string
		forgetful bool
		unknown   bool
		want      bool // volumesInUse names it
	}{
		{"killed between NodeUnpublish and NodeUnstage", true, false, false},
		{"the same, of a kubelet that finds staged volumes", false, false, true},
		{"reconstruction fails", false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, k := running(t)
			w.Forgetful = test.forgetful
			w.DeletePod("p1")
			k.SeePods()
			k.Stop("p1")
			var unknown []ledger.VolumeID
			if test.unknown {
				unknown = append(unknown, disk)
			} else if !k.Unpublish(disk, "p1") {
				t.Fatal("it does not unpublish the volume")
			}
			w.Drop(Pods, "p1")
			k.Kill()
			k.Start(unknown...)
			k.Register()
			k.SeePods()
			if k.CanResolve() {
				resolve(t, w, "w1#1")
			}
			report(t, w, "w1#1")
			if inUse(w, "w1") != test.want || !k.Machine().Uses(disk) {
				t.Errorf("volumesInUse names it: %v, it is staged: %v", inUse(w, "w1"), k.Machine().Uses(disk))
			}
			if test.want {
				return
			}
			k.Unmount(disk, "p1")
			if !k.Machine().Uses(disk) || k.CanUnstage(disk) {
				t.Error("it unstages what it does not know")
			}
		})
	}
}

// A kubelet registers its Node once: after a deletion it is heard of only after a restart.
func TestDeletedNodeIsNotMadeAgain(t *testing.T) {
	w, k := running(t)
	w.Drop(Nodes, "w1")
	k.SeeNode()
	if k.Register() || k.News() {
		t.Error("it makes its Node again, or reports to none")
	}
	k.Start()
	if !k.Register() {
		t.Fatal("a new process does not register its Node")
	}
	if now, _ := w.Node("w1"); len(now.InUse) > 0 || now.Reporting || !k.Machine().Uses(disk) {
		t.Errorf("the new Node is %+v", now)
	}
}

func TestNotReady(t *testing.T) {
	w, k := running(t)
	k.Broken = true
	report(t, w, "w1#1")
	if now, _ := w.Node("w1"); now.Ready != ledger.ReadyFalse || !inUse(w, "w1") {
		t.Errorf("the Node is %+v", now)
	}
	k.Broken, k.Leaving = false, true
	if k.News() {
		t.Error("the last word is another one")
	}
	if !k.Stop("p1") || !k.Machine().Uses(disk) {
		t.Error("a shutdown does not end the pods")
	}
}

func TestCloneOfAKubelet(t *testing.T) {
	w, _ := running(t)
	c := w.Clone()
	w.Kubelet("w1#1").Exit("p1")
	w.Kubelet("w1#1").Unmount(disk, "p1")
	if m := c.Machines["w1#1"]; !m.Uses(disk) || !m.Containers["p1"] || len(m.Process.Ended) > 0 {
		t.Errorf("the clone has changed: %+v", m)
	}
	if w.Machines["w1#1"].Uses(disk) {
		t.Error("it is mounted still")
	}
}

func TestUnknownRequest(t *testing.T) {
	w := New()
	if a := w.Serve(Request{Do: Unsupported}); a.Code == OK {
		t.Error("it is done")
	}
	faults(t, w, 1)
}

// A kubelet checks volumesAttached for a pod that goes before the answer, and holds the unused volume for
// attached. Without VolumeAttachments nothing else is checked before the next mount. Only Forgetful
// kubelets do that here.
func TestResidualRiskOfALateLook(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "i"}
	for _, forgetful := range []bool{false, true} {
		w := New()
		w.Forgetful = forgetful
		w.AddMachine("w1#1", "w1")
		w.Kubelet("w1#1").Register(ledger.DriverOnNode{Name: disk.Driver, NodeID: "w1#1"})
		pv := ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: iscsi, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "ns", Name: "c"}}
		w.Put(pv)
		w.Put(ledger.Claim{Key: pv.Claim, UID: "c", PersistentVolume: "pv", Bound: true})
		k := w.Kubelet("w1#1")
		comes := func(uid string) {
			w.Put(ledger.Pod{UID: uid, Namespace: "ns", Name: uid, Node: "w1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "c"}}})
			k.SeePods()
			report(t, w, "w1#1")
		}
		comes("p")
		reported(w, "w1", iscsi)
		k.SeeNode()
		look, possible := k.Verify(iscsi)
		if !possible {
			t.Fatal("it does not look")
		}
		answer := w.Serve(look)
		w.Drop(Pods, "p")
		k.SeePods()
		report(t, w, "w1#1")
		if now, _ := w.Node("w1"); !lacks(now.InUse, iscsi) {
			t.Fatal("it says that the volume is in use")
		}
		reported(w, "w1") // by the leader
		comes("q")
		k.Verified(iscsi, answer)
		k.Check(iscsi)
		if mounts := k.Mount(iscsi, "q"); mounts != forgetful {
			t.Errorf("forgetful %t: it mounts %t", forgetful, mounts)
		}
	}
}
