// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

const driver = "rbd.example.com"

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type scene struct {
	now     time.Time
	ledger  *ledger.Ledger
	version int
	fences  []*unstructured.Unstructured
	addons  []*unstructured.Unstructured
	classes map[string]string
	address map[ledger.NodeName][]netip.Addr
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{now: epoch, ledger: ledger.New(), classes: map[string]string{"rbd": driver}, address: map[ledger.NodeName][]netip.Addr{}}
	s.apply(ledger.Driver{Name: driver, AttachRequired: true})
	s.policy("rbd", 0)
	for i, n := range []ledger.NodeName{"a", "b", "c", "d"} {
		s.node(n, func(*ledger.NodeState) {})
		s.apply(ledger.NodeDrivers{Node: n, Version: s.next(), Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "id-" + string(n), Limit: ledger.NoLimit}}})
		s.address[n] = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
		s.addons = append(s.addons, addon("id-"+string(n), "rbd", fmt.Sprintf("10.0.0.%d/32", i+1)))
	}
	s.apply(ledger.PersistentVolume{Name: "pv", UID: "pv", Version: s.next(), Volume: disk, Access: ledger.AccessNode})
	s.apply(ledger.Attachment{Name: ledger.AttachmentName(disk, "a"), UID: "va", Version: s.next(), Driver: driver, Node: "a", PersistentVolume: "pv", Attached: true, Ours: true})
	return s
}

var disk = ledger.VolumeID{Driver: driver, Handle: "disk"}

func (s *scene) next() string { s.version++; return fmt.Sprint(s.version) }

func (s *scene) apply(e ledger.Event) { s.ledger.Apply(s.now, e) }

func (s *scene) policy(class string, after time.Duration) {
	s.apply(ledger.Policy{Name: "p", Version: s.next(), Driver: driver, NetworkFence: ledger.NetworkFence{Class: class, After: &after}})
}

func (s *scene) node(n ledger.NodeName, change func(*ledger.NodeState)) {
	state := ledger.NodeState{
		Name: n, UID: string(n) + "-uid", Version: s.next(), Ready: ledger.ReadyTrue, ReadySince: 1, Managed: true, Reporting: true,
		SystemUUID: string(n) + "-machine", BootID: string(n) + "-boot-1",
	}
	if known := s.ledger.Snapshot().Node(n); known != nil {
		state.CutOff = known.CutOff
	}
	change(&state)
	s.apply(state)
}

func (s *scene) dies() {
	s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince = ledger.ReadyUnknown, 2 })
}

func (s *scene) comesBack(boot string) {
	s.node("a", func(n *ledger.NodeState) { n.ReadySince, n.BootID = 3, boot })
}

func (s *scene) word(look, looked int64, has ...ledger.VolumeID) {
	s.apply(ledger.NodeWord{Node: "a", UID: "word", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-1", Look: look, Looked: looked, Has: has, Whole: true})
}

func addon(nodeID, class string, cidrs ...string) *unstructured.Unstructured {
	var list []any
	for _, c := range cidrs {
		list = append(list, c)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"driver": map[string]any{"name": driver, "nodeID": nodeID}},
		"status": map[string]any{"networkFenceClientStatus": []any{map[string]any{"networkFenceClassName": class, "ClientDetails": []any{map[string]any{"id": "client", "cidrs": list}}}}},
	}}
}

func others(name, state string, cidrs ...string) *unstructured.Unstructured {
	o := Action{Name: name, Class: "rbd", CIDRs: func() []netip.Prefix { p, _ := prefixes(cidrs); return p }()}.Object()
	o.SetAnnotations(nil)
	_ = unstructured.SetNestedField(o.Object, state, "spec", "fenceState")
	o.SetUID("uid-of-" + "other")
	o.SetGeneration(1)
	return o
}

func answers(o *unstructured.Unstructured, result, message string) *unstructured.Unstructured {
	o.Object["status"] = map[string]any{"result": result, "message": message}
	return o
}

func (s *scene) state() State {
	state := State{Snapshot: s.ledger.Snapshot(), Now: s.now, Classes: s.classes, Addresses: s.address}
	for _, o := range s.fences {
		state.Fences = append(state.Fences, FenceOf(o))
	}
	for _, o := range s.addons {
		state.Clients = append(state.Clients, ClientsOf(o))
	}
	return state
}

func (s *scene) decide() (did []string, troubles []string) {
	actions, said, _ := s.state().Decide()
	for _, a := range actions {
		did = append(did, a.Do.String()+" "+string(a.Node))
	}
	for _, t := range said {
		troubles = append(troubles, t.Message)
	}
	return did, troubles
}

func (s *scene) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	if did, troubles := s.decide(); !slices.Equal(did, want) {
		t.Errorf("%s: %q, want %q; said: %q", when, did, want, troubles)
	}
}

func (s *scene) do(t *testing.T) []string {
	t.Helper()
	actions, _, _ := s.state().Decide()
	var did []string
	for _, a := range actions {
		did = append(did, a.Do.String())
		s.carryOut(t, a)
	}
	return did
}

func (s *scene) carryOut(t *testing.T, a Action) {
	t.Helper()
	i := slices.IndexFunc(s.fences, func(o *unstructured.Unstructured) bool { return o.GetName() == a.Name })
	switch a.Do {
	case Make:
		o := a.Object()
		o.SetUID("uid-of-ours")
		o.SetResourceVersion(s.next())
		o.SetGeneration(1)
		s.fences = append(s.fences, o)
	case Mark, Unmark:
		s.apply(func() ledger.Event {
			n := s.ledger.Snapshot().Node(a.Node).NodeState
			n.Version, n.CutOff = s.next(), nil
			if a.Do == Mark {
				n.CutOff = []string{a.Driver}
			}
			return n
		}())
	case Confirm, Doubt, End, NoteLook, Unfence:
		patch := a.Patch(s.ledger.Snapshot().Node("a").NodeState)
		o := s.fences[i]
		if meta := patch["metadata"].(map[string]any); meta["uid"] != string(o.GetUID()) || meta["resourceVersion"] != o.GetResourceVersion() {
			t.Errorf("%s is written at %v, and is %s at %s", a.Name, meta, o.GetUID(), o.GetResourceVersion())
		} else if changed, found := meta["annotations"].(map[string]any); found {
			all := o.GetAnnotations()
			for key, value := range changed {
				all[key] = value.(string)
			}
			o.SetAnnotations(all)
		}
		if _, found := patch["spec"]; found {
			_ = unstructured.SetNestedField(o.Object, stateUnfenced, "spec", "fenceState")
			o.SetGeneration(o.GetGeneration() + 1)
		}
		o.SetResourceVersion(s.next())
	case AskLook:
		w := *s.ledger.Snapshot().Node(a.Node).Word
		w.Version, w.Look = s.next(), a.Machine.Look
		s.apply(w)
	case Delete:
		s.fences = slices.Delete(s.fences, i, i+1)
	}
}

func fenced(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.dies()
	s.do(t)
	answers(s.fences[0], succeeded, "fencing operation successful")
	s.do(t)
	s.do(t)
	if !s.ledger.Snapshot().Node("a").IsCutOff(driver) {
		t.Fatal("the node is not cut off")
	}
	return s
}

func TestWholeLife(t *testing.T) {
	s := newScene(t)
	s.policy("rbd", time.Minute)
	s.expect(t, "all is well")
	s.dies()
	if actions, _, again := s.state().Decide(); len(actions) > 0 || again != time.Minute {
		t.Errorf("at first: %v, again after %s", actions, again)
	}
	s.now = s.now.Add(time.Minute)
	var steps []string
	take := func() { steps = append(steps, s.do(t)...) }
	take()
	if o := s.fences[0]; o.GetAnnotations()[annotationBootID] != "a-boot-1" || FenceOf(o).CIDRs[0].String() != "10.0.0.1/32" || FenceOf(o).Class != "rbd" {
		t.Errorf("it made %v", o)
	}
	take() // the storage has not answered
	answers(s.fences[0], succeeded, "fencing operation successful")
	take()
	take()
	take()
	s.comesBack("a-boot-2")
	take()
	take()
	take()
	take() // the storage has not answered; the result is still that of the fencing
	answers(s.fences[0], succeeded, "unfencing operation successful")
	take()
	take()
	if want := []string{"make", "confirm", "mark", "unmark", "end", "unfence", "delete"}; !slices.Equal(steps, want) {
		t.Errorf("the steps were %q, want %q", steps, want)
	}
}

// A confirmed fence with an unchanged request must cover all clients of the node.
func TestWhatCounts(t *testing.T) {
	good := func() *unstructured.Unstructured {
		return answers(others("x", stateFenced, "10.0.0.1/32"), succeeded, "fencing operation successful")
	}
	for name, test := range map[string]struct {
		change func(*scene)
		counts bool
	}{
		"confirmed": {func(s *scene) { s.fences = append(s.fences, good()) }, true},
		"wider": {func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.0.0.0/24"), succeeded, ""))
		}, true},
		"of two": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "10.0.0.1/32", "10.9.0.1/32")
			s.fences = append(s.fences, good(), answers(others("y", stateFenced, "10.9.0.1/32"), succeeded, ""))
		}, true},
		"not all clients": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "10.0.0.1/32", "10.9.0.1/32")
			s.fences = append(s.fences, good())
		}, false},
		"another address": {func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.0.0.2/32"), succeeded, ""))
		}, false},
		"not answered": {func(s *scene) { s.fences = append(s.fences, others("x", stateFenced, "10.0.0.1/32")) }, false},
		"failed": {func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.0.0.1/32"), "Failed", "no"))
		}, false},
		"asks to unfence": {func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateUnfenced, "10.0.0.1/32"), succeeded, "unfencing operation successful"))
		}, false},
		"unfenced by another": {func(s *scene) { s.fences = append(s.fences, good(), others("y", stateUnfenced, "10.0.0.0/30")) }, false},
		"changed since":       {func(s *scene) { o := good(); o.SetGeneration(2); s.fences = append(s.fences, o) }, false},
		"answered before": {func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.0.0.1/32"), succeeded, "unfencing operation successful"))
		}, false},
		"being deleted": {func(s *scene) {
			o := good()
			o.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-03-01T12:00:00Z"
			s.fences = append(s.fences, o)
		}, false},
		"unfenced by another driver": {func(s *scene) {
			s.classes["fs"] = "fs.example.com"
			o := others("y", stateUnfenced, "10.0.0.1/32")
			_ = unstructured.SetNestedField(o.Object, "fs", "spec", "networkFenceClassName")
			s.fences = append(s.fences, good(), o)
		}, false},
		"of another driver":      {func(s *scene) { s.classes["rbd"] = "another.example.com"; s.fences = append(s.fences, good()) }, false},
		"of a class that is not": {func(s *scene) { delete(s.classes, "rbd"); s.fences = append(s.fences, good()) }, false},
		"clients not known":      {func(s *scene) { s.addons = nil; s.fences = append(s.fences, good()) }, false},
		"clients of another class": {func(s *scene) {
			s.addons[0] = addon("id-a", "cephfs", "10.0.0.1/32")
			s.fences = append(s.fences, good())
		}, false},
		"clients unreadable": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "10.0.0.1/32", "everything")
			s.fences = append(s.fences, good())
		}, false},
		"client without address": {func(s *scene) { s.addons[0] = addon("id-a", "rbd"); s.fences = append(s.fences, good()) }, false},
		"the fence unreadable": {func(s *scene) {
			o := good()
			_ = unstructured.SetNestedSlice(o.Object, []any{"10.0.0.1/32", "x"}, "spec", "cidrs")
			s.fences = append(s.fences, o)
		}, false},
		"no policy": {func(s *scene) { s.policy("", 0); s.fences = append(s.fences, good()) }, false},
		"IPv4 in IPv6": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "::ffff:10.0.0.1/128")
			s.fences = append(s.fences, good())
		}, true},
	} {
		s := newScene(t)
		test.change(s)
		did, troubles := s.decide()
		if got := slices.Contains(did, "mark a"); got != test.counts {
			t.Errorf("%s: %q %q", name, did, troubles)
		}
		// Schedulers believe a node's condition: a void condition is removed.
		s.node("a", func(n *ledger.NodeState) { n.CutOff = []string{driver} })
		if did, _ := s.decide(); slices.Contains(did, "unmark a") == test.counts {
			t.Errorf("%s, and the node says so: %q", name, did)
		}
	}
}

func TestMake(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		say    string // empty: it is made
	}{
		"it can't be reached": {func(*scene) {}, ""},
		"its ID is its name":  {func(s *scene) { s.addons[0] = addon("a", "rbd", "10.0.0.1/32") }, ""},
		"covers another node": {func(s *scene) { s.addons[0] = addon("id-a", "rbd", "10.0.0.0/24") }, "would cut b off, too"},
		"covers another node's client": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "10.9.0.0/24")
			s.addons[2] = addon("id-c", "rbd", "10.9.0.7/32")
		}, "would cut c off, too"},
		"no such class":      {func(s *scene) { s.classes = nil }, "there is no NetworkFenceClass rbd"},
		"a class of another": {func(s *scene) { s.classes["rbd"] = "x" }, "NetworkFenceClass rbd is for driver x"},
		"no clients":         {func(s *scene) { s.addons = s.addons[1:] }, "GET_CLIENTS_TO_FENCE"},
		"too many can't be reached": {func(s *scene) {
			for _, n := range []ledger.NodeName{"b", "c"} {
				s.node(n, func(n *ledger.NodeState) { n.Ready, n.ReadySince = ledger.ReadyUnknown, 2 })
			}
		}, "more than 55% of the nodes"},
	} {
		s := newScene(t)
		s.dies()
		test.change(s)
		did, troubles := s.decide()
		if made := slices.Contains(did, "make a"); made != (test.say == "") || test.say != "" && !strings.Contains(strings.Join(troubles, "\n"), test.say) {
			t.Errorf("%s: %q %q", name, did, troubles)
		}
	}
	for name, change := range map[string]func(*scene){
		"it is Ready": func(s *scene) { s.comesBack("a-boot-1") },
		"it is out of service": func(s *scene) {
			s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince, n.OutOfService = ledger.ReadyUnknown, 2, true })
		},
		"it is gone":       func(s *scene) { s.apply(ledger.NodeGone{Name: "a"}) },
		"nothing is there": func(s *scene) { s.apply(ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "a")}) },
		"never by policy":  func(s *scene) { s.policy("rbd", -1) },
		"it is there":      func(s *scene) { s.do(t) },
		"another has it": func(s *scene) {
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.0.0.1/32"), succeeded, ""))
		},
		"one that goes": func(s *scene) {
			s.do(t)
			s.fences[0].Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-03-01T12:00:00Z"
		},
		"the Lease is read": func(s *scene) {
			s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince = ledger.ReadyFalse, 4 })
		},
	} {
		s := newScene(t)
		s.dies()
		change(s)
		if did, _ := s.decide(); slices.Contains(did, "make a") {
			t.Errorf("%s: %q", name, did)
		}
	}
}

// Another boot, or an empty look by moorage-node since Ready, lets the machine in.
func TestUnfencing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"silent":       {func(*scene) {}, nil},
		"another boot": {func(s *scene) { s.comesBack("a-boot-2") }, []string{"unmark a"}},
		"another boot, with records of the one before": {func(s *scene) {
			s.comesBack("a-boot-2")
			s.apply(ledger.NodeWord{Node: "a", UID: "word", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-2", Has: []ledger.VolumeID{disk}, Whole: true})
		}, []string{"unmark a"}},
		"another boot, and mounted there": {func(s *scene) {
			s.comesBack("a-boot-2")
			s.apply(ledger.NodeWord{Node: "a", UID: "word", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-2", Has: []ledger.VolumeID{disk}, Mounted: []ledger.VolumeID{disk}, Whole: true})
		}, nil},
		"the same boot": {func(s *scene) { s.comesBack("a-boot-1") }, nil},
		"no boot":       {func(s *scene) { s.comesBack("") }, nil},
		"another boot silent": {func(s *scene) {
			s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince, n.BootID = ledger.ReadyUnknown, 2, "a-boot-2" })
		}, nil},
		"another Node": {func(s *scene) {
			s.apply(ledger.NodeGone{Name: "a"})
			s.node("a", func(n *ledger.NodeState) { n.UID, n.BootID, n.CutOff = "new", "a-boot-2", nil })
		}, []string{"mark a"}},
		"another machine": {func(s *scene) {
			s.node("a", func(n *ledger.NodeState) { n.SystemUUID, n.BootID = "other", "a-boot-2" })
		}, nil},
		"another machine, of which no client is listed": {func(s *scene) {
			s.addons = s.addons[1:]
			s.node("a", func(n *ledger.NodeState) { n.SystemUUID, n.BootID = "other", "a-boot-2" })
		}, []string{"unmark a"}},
		"it can be asked":     {func(s *scene) { s.comesBack("a-boot-1"); s.word(7, 7) }, []string{"note look a"}},
		"asked":               {func(s *scene) { s.comesBack("a-boot-1"); s.word(7, 7); s.do(t) }, []string{"ask to look a"}},
		"asked, and silent":   {func(s *scene) { s.comesBack("a-boot-1"); s.word(7, 7); s.do(t); s.do(t) }, nil},
		"looked, and found":   {func(s *scene) { s.comesBack("a-boot-1"); s.word(7, 7); s.do(t); s.do(t); s.word(8, 8, disk) }, nil},
		"looked, and nothing": {func(s *scene) { s.comesBack("a-boot-1"); s.word(7, 7); s.do(t); s.do(t); s.word(8, 8) }, []string{"unmark a"}},
		"looked, and wanted": {func(s *scene) {
			s.node("a", func(n *ledger.NodeState) { n.ReadySince, n.InUse = 3, []ledger.VolumeID{disk} })
			s.word(7, 7)
			s.do(t)
			s.do(t)
			s.word(8, 8)
		}, []string{"unmark a"}},
		"changed by a person": {func(s *scene) {
			s.carryOut(t, Action{Do: Unfence, Name: s.fences[0].GetName(), UID: "uid-of-ours", Version: s.fences[0].GetResourceVersion()})
		}, []string{"unmark a"}},
		"failed since": {func(s *scene) { answers(s.fences[0], "Failed", "the sidecar is gone") }, nil},
		"no policy":    {func(s *scene) { s.policy("", 0) }, []string{"unmark a"}},
	} {
		s := fenced(t)
		test.change(s)
		if did, troubles := s.decide(); !slices.Equal(did, test.want) {
			t.Errorf("%s: %q, want %q; said %q", name, did, test.want, troubles)
		}
	}
}

// Common clients are let in only when both fences allow it.
func TestUnfencingOfOneStorage(t *testing.T) {
	s := fenced(t)
	s.classes["fs"] = "fs.example.com"
	o := s.fences[0].DeepCopy()
	o.SetName("of-fs")
	a := o.GetAnnotations()
	a[annotationDriver] = "fs.example.com"
	o.SetAnnotations(a)
	_ = unstructured.SetNestedField(o.Object, "fs", "spec", "networkFenceClassName")
	s.fences = append(s.fences, o)
	mounted := ledger.VolumeID{Driver: "fs.example.com", Handle: "share"}
	s.comesBack("a-boot-1")
	s.word(7, 7, mounted)
	s.do(t)
	s.do(t)
	s.word(8, 8, mounted)
	s.do(t)
	s.do(t)
	if did, troubles := s.decide(); slices.Contains(did, "unfence a") || !strings.Contains(strings.Join(troubles, "\n"), "waits for of-fs") {
		t.Errorf("the other driver's volume is mounted: %q %q", did, troubles)
	}
	s.word(9, 9)
	s.do(t) // it is asked about the second driver as well
	s.do(t)
	s.word(10, 10)
	s.do(t)
	if did, troubles := s.decide(); len(did) != 2 || did[0] != "unfence a" {
		t.Errorf("nothing is mounted: %q %q", did, troubles)
	}
}

func TestReadyBeforeConfirmed(t *testing.T) {
	s := newScene(t)
	s.dies()
	s.do(t)
	s.comesBack("a-boot-1")
	s.expect(t, "Ready", "end a")
	answers(s.fences[0], succeeded, "fencing operation successful")
	s.expect(t, "Ready, and confirmed", "confirm a")
	s.fences[0].SetGeneration(2)
	s.expect(t, "Ready, and changed since, so that it never will be confirmed", "end a")
}

func TestOddObjects(t *testing.T) {
	for _, odd := range []any{nil, "x", int64(7), []any{"x", nil, int64(1)}, map[string]any{"x": nil}} {
		for _, path := range [][]string{{"spec"}, {"status"}, {"spec", "cidrs"}, {"spec", "driver"}, {"spec", "driver", "name"}, {"status", "networkFenceClientStatus"}} {
			for _, of := range []*unstructured.Unstructured{addon("id-a", "rbd", "10.0.0.1/32"), answers(others("x", stateFenced, "10.0.0.1/32"), succeeded, "")} {
				o := of.DeepCopy()
				if parent, ok := o.Object[path[0]].(map[string]any); ok && len(path) == 2 {
					parent[path[1]] = odd
				} else if len(path) == 1 {
					o.Object[path[0]] = odd
				}
				f, c := FenceOf(o), ClientsOf(o)
				if len(path) < 3 && f.counts() && len(f.CIDRs) == 0 {
					t.Errorf("%v of %v: %v %v", odd, path, f, c)
				}
			}
		}
	}
}

func TestCondition(t *testing.T) {
	if got := (Action{Driver: driver}).ConditionType(); got != v1alpha1.NetworkFencePrefix+driver {
		t.Error(got)
	}
	if m := (rules.CutMachine{Driver: "d", NodeUID: "u", BootID: "1"}); fenceName(m) == fenceName(rules.CutMachine{Driver: "d", NodeUID: "u", BootID: "2"}) {
		t.Error("two boots have one name")
	}
}

// csi-addons writes fields without omitempty with its finalizer. Moorage sets them at once: otherwise the
// spec would change, and no fence would count.
func TestMadeAsCSIAddonsWritesIt(t *testing.T) {
	spec := Action{Do: Make, Name: "x", Class: "rbd"}.Object().Object["spec"].(map[string]any)
	want := map[string]any{"networkFenceClassName": "rbd", "driver": "", "fenceState": "Fenced", "cidrs": []any{}, "secret": map[string]any{}}
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("the spec is %v, want %v", spec, want)
	}
}
