// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func with(o *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	for _, change := range changes {
		change(o)
	}
	return o
}

func deleting(o *unstructured.Unstructured) {
	o.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-03-01T12:00:00Z"
}

func ofClass(class string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, class, "spec", "networkFenceClassName")
	}
}

func (s *scene) marked(name string, changes map[string]string, more ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := s.fences[0].DeepCopy()
	o.SetName(name)
	a := o.GetAnnotations()
	for key, value := range changes {
		a[key] = value
	}
	o.SetAnnotations(a)
	return with(o, more...)
}

// Moorage fenced all its clients, the Node is the same, and all present clients are covered.
func TestWhatGoesOnToCount(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		counts bool
	}{
		"as it was":                         {func(*scene) {}, true},
		"csi-addons has forgotten its node": {func(s *scene) { s.addons = s.addons[1:] }, true},
		"its list has grown":                {func(s *scene) { s.addons[0] = addon("id-a", "rbd", "10.0.0.1/32", "10.9.0.1/32") }, false},
		"its list has grown, and another fence covers that": {func(s *scene) {
			s.addons[0] = addon("id-a", "rbd", "10.0.0.1/32", "10.9.0.1/32")
			s.fences = append(s.fences, answers(others("x", stateFenced, "10.9.0.0/24"), succeeded, ""))
		}, true},
		"its list can't be read":      {func(s *scene) { s.addons[0] = addon("id-a", "rbd", "everything") }, false},
		"another class of the driver": {func(s *scene) { s.classes["rbd-b"] = driver }, false},
		"clients of another class":    {func(s *scene) { s.addons = append(s.addons, addon("id-a", "rbd-b", "10.8.0.1/32")) }, false},
		"made again from a file":      {func(s *scene) { s.fences[0].SetUID("another") }, false},
		"over":                        {func(s *scene) { s.fences[0] = s.marked("x", map[string]string{annotationState: over + " uid-of-ours"}) }, false},
		"nothing of it was confirmed": {func(s *scene) { s.fences[0] = s.marked("x", map[string]string{annotationState: ""}) }, false},
		"it is of another node": {func(s *scene) {
			s.addons = s.addons[1:]
			s.fences[0] = s.marked("x", map[string]string{annotationNode: "b"})
		}, false},
		"it is of another Node": {func(s *scene) {
			s.addons = s.addons[1:]
			s.fences[0] = s.marked("x", map[string]string{annotationNodeUID: "x"})
		}, false},
		"it is being deleted":              {func(s *scene) { deleting(s.fences[0]) }, false},
		"it has no addresses":              {func(s *scene) { _ = unstructured.SetNestedSlice(s.fences[0].Object, nil, "spec", "cidrs") }, false},
		"another asks to let it in":        {func(s *scene) { s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.1/32")) }, false},
		"another has asked so, and goes":   {func(s *scene) { s.fences = append(s.fences, with(others("x", stateUnfenced, "10.0.0.1/32"), deleting)) }, true},
		"another asks so for another node": {func(s *scene) { s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.2/32")) }, true},
	} {
		s := fenced(t)
		test.change(s)
		if did, said := s.decide(); slices.Contains(did, "unmark a") == test.counts {
			t.Errorf("%s: %q %q", name, did, said)
		}
	}
	s := fenced(t)
	s.apply(ledger.NodeGone{Name: "a"})
	if did, said := s.decide(); slices.ContainsFunc(did, func(d string) bool { return strings.HasSuffix(d, "mark a") }) || !strings.Contains(strings.Join(said, "\n"), "set spec.fenceState to Unfenced") {
		t.Errorf("the Node is gone: %q %q", did, said)
	}
}

func TestLetInSinceIsForGood(t *testing.T) {
	for name, confirmed := range map[string]bool{"confirmed before": true, "not confirmed before": false} {
		s := newScene(t)
		s.dies()
		s.do(t)
		answers(s.fences[0], succeeded, "fencing operation successful")
		if confirmed {
			s.do(t) // confirm
			s.do(t) // mark
		}
		s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.1/32"))
		if did := s.do(t); !slices.Contains(did, "doubt") {
			t.Errorf("%s: while another asks to let it in: %q", name, did)
		}
		s.fences = s.fences[:1] // carried out, and deleted
		for range 3 {
			s.do(t)
		}
		if did, said := s.decide(); len(did) > 0 || s.ledger.Snapshot().Node("a").IsCutOff(driver) || !strings.Contains(strings.Join(said, "\n"), "delete it, which lets nobody in") {
			t.Errorf("%s: afterwards: %q %q, cut off: %v", name, did, said, s.ledger.Snapshot().Node("a").CutOff)
		}
		s.comesBack("a-boot-2")
		if did := append(s.do(t), s.do(t)...); !slices.Equal(did, []string{"end", "unfence"}) {
			t.Errorf("%s: after another boot: %q", name, did)
		}
	}
}

// The storage might let it in last.
func TestNoFenceWhileItIsLetIn(t *testing.T) {
	s := newScene(t)
	s.classes["fs"] = "fs.example.com"
	s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.1/32"))
	ofClass("fs")(s.fences[0])
	s.dies()
	if did, said := s.decide(); len(did) > 0 || !strings.Contains(strings.Join(said, "\n"), "carried out x, which asks to let the same client in") {
		t.Errorf("while it is let in for another driver: %q %q", did, said)
	}
	s.fences = nil
	s.expect(t, "once that is over", "make a")
}

func TestAnnotationsLost(t *testing.T) {
	s := newScene(t)
	s.dies()
	s.do(t)
	s.fences[0].SetAnnotations(nil)
	if did, said := s.decide(); len(did) > 0 || !strings.Contains(strings.Join(said, "\n"), "has lost the annotations") {
		t.Errorf("%q %q", did, said)
	}
}

// Another machine with the Node's name has booted.
func TestClonedMachineStaysFenced(t *testing.T) {
	s := newScene(t)
	same := func(n *ledger.NodeState) { n.SystemUUID = "03000200-0400-0500-0006-000700080009" }
	s.node("b", same)
	s.node("a", func(n *ledger.NodeState) { same(n); n.Ready, n.ReadySince = ledger.ReadyUnknown, 2 })
	s.do(t)
	answers(s.fences[0], succeeded, "fencing operation successful")
	s.do(t)
	s.do(t)
	s.node("a", func(n *ledger.NodeState) { same(n); n.ReadySince, n.BootID = 3, "boot-of-another-machine" })
	if did, said := s.decide(); len(did) > 0 {
		t.Errorf("%q %q", did, said)
	}
}

// Another machine may report under the name during the confirmation.
func TestBootOfAnotherMachineIsNotNoted(t *testing.T) {
	s := newScene(t)
	s.dies()
	s.do(t)
	s.node("a", func(n *ledger.NodeState) {
		n.Ready, n.ReadySince, n.SystemUUID, n.BootID = ledger.ReadyFalse, 3, "b-machine", "boot-of-b"
	})
	answers(s.fences[0], succeeded, "fencing operation successful")
	s.do(t) // confirm
	s.do(t)
	s.comesBack("a-boot-1") // the boot in which it was cut off
	if did, said := s.decide(); len(did) > 0 || !strings.Contains(strings.Join(said, "\n"), "nobody has said in which boot") {
		t.Errorf("%q %q", did, said)
	}
}

// The other returning nodes were not heard yet.
func TestTimeBeginsAnewWhenTheBrakeIsLifted(t *testing.T) {
	s := newScene(t)
	s.policy("rbd", 20*time.Second)
	for _, n := range []ledger.NodeName{"a", "b", "c"} {
		s.node(n, func(n *ledger.NodeState) { n.Ready, n.ReadySince = ledger.ReadyUnknown, 2 })
	}
	s.now = s.now.Add(10 * time.Minute)
	s.node("b", func(n *ledger.NodeState) { n.ReadySince = 3 })
	s.expect(t, "in the moment in which the first one is back")
	s.now = s.now.Add(21 * time.Second)
	s.expect(t, "later", "make a")
}

// The storage is asked, unless another fence needs the client out.
func TestHowItEnds(t *testing.T) {
	good := func(o *unstructured.Unstructured) { answers(o, succeeded, "") }
	const unfences, deletes = "unfence a", "delete a"
	for name, test := range map[string]struct {
		other *unstructured.Unstructured
		want  string
	}{
		"nothing else":                    {others("x", stateFenced, "10.0.0.2/32"), unfences},
		"another's of the same address":   {with(others("x", stateFenced, "10.0.0.1/32"), good), deletes},
		"another's that failed":           {others("x", stateFenced, "10.0.0.1/32"), unfences},
		"another's that goes":             {with(others("x", stateFenced, "10.0.0.1/32"), good, deleting), unfences},
		"another's that lets in":          {others("x", stateUnfenced, "10.0.0.1/32"), unfences},
		"another driver's":                {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs")), ""},
		"another driver's, elsewhere":     {with(others("x", stateFenced, "10.0.0.2/32"), ofClass("fs")), unfences},
		"another driver's that goes":      {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs"), deleting), unfences},
		"another driver's that lets in":   {with(others("x", stateUnfenced, "10.0.0.1/32"), ofClass("fs")), unfences},
		"of a class that nobody knows of": {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("?")), ""},
	} {
		s := fenced(t)
		s.classes["fs"] = "fs.example.com"
		s.comesBack("a-boot-2")
		s.do(t) // unmark
		s.do(t) // end
		s.fences = append(s.fences, test.other)
		did, said := s.decide()
		did = slices.DeleteFunc(did, func(d string) bool { return d == "mark a" }) // by another node's
		if got := strings.Join(did, ", "); got != test.want {
			t.Errorf("%s: %q, want %q; said %q", name, did, test.want, said)
		}
	}
}

func TestTwoEndAtOnce(t *testing.T) {
	s := fenced(t)
	s.fences = append(s.fences, s.marked("second", nil))
	s.comesBack("a-boot-2")
	var steps []string
	for range 4 {
		steps = append(steps, s.do(t)...)
	}
	if want := []string{"unmark", "end", "end", "unfence", "unfence"}; !slices.Equal(steps, want) {
		t.Errorf("%q", steps)
	}
}

func TestOverIsForGood(t *testing.T) {
	s := fenced(t)
	s.comesBack("a-boot-2")
	s.do(t)
	s.do(t)
	s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince, n.BootID = ledger.ReadyUnknown, 9, "a-boot-2" })
	s.expect(t, "lost again", "unfence a")
	s.do(t)
	s.expect(t, "asked")
	answers(s.fences[0], succeeded, unfencedWords)
	s.expect(t, "let in", "delete a")
	s.do(t)
	s.expect(t, "and now", "make a")
}

// The boot is noted at the confirmation: mounts of a boot from before the fence do not end with it.
func TestBootBeforeTheFence(t *testing.T) {
	s := newScene(t)
	s.dies()
	s.do(t)
	s.node("a", func(n *ledger.NodeState) { n.Ready, n.ReadySince, n.BootID = ledger.ReadyUnknown, 5, "a-boot-2" })
	answers(s.fences[0], succeeded, "fencing operation successful")
	s.do(t)
	s.do(t)
	s.comesBack("a-boot-2")
	if did, said := s.decide(); len(did) > 0 {
		t.Errorf("it is in the boot in which it was cut off: %q %q", did, said)
	}
	s.comesBack("a-boot-3")
	s.expect(t, "another boot", "unmark a")
	s.apply(ledger.NodeWord{Node: "a", UID: "word", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-3", Whole: true, Has: []ledger.VolumeID{disk}, Mounted: []ledger.VolumeID{disk}})
	s.expect(t, "and moorage-node says that the volume is mounted")
}

// An answer from before the outage, or of a gone NodeMountReport, is void.
func TestLookOfBefore(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"another outage": func(s *scene) { s.node("a", func(n *ledger.NodeState) { n.ReadySince = 9 }) },
		"made again": func(s *scene) {
			s.apply(ledger.NodeWordGone{Node: "a"})
			s.apply(ledger.NodeWord{Node: "a", UID: "second", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-1", Look: 8, Looked: 8, Whole: true})
		},
	} {
		s := fenced(t)
		s.comesBack("a-boot-1")
		s.word(7, 7)
		s.do(t)
		s.do(t)
		s.word(8, 8)
		s.expect(t, "looked", "unmark a")
		change(s)
		s.expect(t, name, "note look a")
	}
}

func TestAmbiguousIDs(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"one ID at two nodes": func(s *scene) {
			s.apply(ledger.NodeDrivers{Node: "b", Version: s.next(), Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "id-a", Limit: ledger.NoLimit}}})
		},
		"the name of another": func(s *scene) {
			s.addons[0] = addon("b", "rbd", "10.0.0.1/32")
			s.addons = append(s.addons, addon("id-a", "rbd", "10.0.0.1/32"))
		},
		"of nobody": func(s *scene) { s.addons = append(s.addons, addon("?", "rbd", "10.0.0.0/31")) },
	} {
		s := newScene(t)
		s.dies()
		change(s)
		if did, said := s.decide(); slices.Contains(did, "make a") {
			t.Errorf("%s: %q %q", name, did, said)
		}
	}
}

func TestWhatIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		say    string
	}{
		"no answer": {func(s *scene) {
			delete(s.fences[0].Object, "status")
			s.fences[0] = s.marked("x", map[string]string{annotationState: ""})
		}, "does the controller of csi-addons run"},
		"an error": {func(s *scene) {
			s.fences[0] = answers(s.marked("x", map[string]string{annotationState: ""}), "Failed", "no such cluster")
		}, "no such cluster"},
		"asked to let in": {func(s *scene) {
			_ = unstructured.SetNestedField(s.fences[0].Object, stateUnfenced, "spec", "fenceState")
		}, "to let the machine in again"},
		"another lets in": {func(s *scene) { s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.1/32")) }, "x asks to let the same client in"},
		"another Node": {func(s *scene) {
			s.apply(ledger.NodeGone{Name: "a"})
			s.node("a", func(n *ledger.NodeState) { n.UID = "new" })
		}, "set spec.fenceState to Unfenced"},
		"the annotations are lost, and the machine has booted": {func(s *scene) {
			s.fences[0].SetAnnotations(nil)
			s.comesBack("a-boot-2")
		}, "node a is Ready, and NetworkFence"},
		"another's storage": {func(s *scene) {
			s.comesBack("a-boot-2")
			s.do(t)
			s.do(t)
			s.fences = append(s.fences, with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs")))
		}, "waits for x, which cuts the same client off"},
	} {
		s := fenced(t)
		test.change(s)
		if did, said := s.decide(); !strings.Contains(strings.Join(said, "\n"), test.say) {
			t.Errorf("%s: %q %q", name, did, said)
		}
	}
	if _, said := fenced(t).decide(); len(said) > 0 {
		t.Errorf("all is as it should be, and it says %q", said)
	}
}

func TestUnconfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"silent":               {func(*scene) {}, nil},
		"confirmed":            {func(s *scene) { answers(s.fences[0], succeeded, "") }, []string{"confirm a"}},
		"confirmed, of before": {func(s *scene) { answers(s.fences[0], succeeded, unfencedWords) }, nil},
		"confirmed, changed":   {func(s *scene) { answers(s.fences[0], succeeded, ""); s.fences[0].SetGeneration(3) }, nil},
		"Ready":                {func(s *scene) { s.comesBack("a-boot-1") }, []string{"end a"}},
		"the Node is gone":     {func(s *scene) { s.apply(ledger.NodeGone{Name: "a"}) }, nil},
		"it goes":              {func(s *scene) { s.comesBack("a-boot-1"); deleting(s.fences[0]) }, nil},
	} {
		s := newScene(t)
		s.dies()
		s.do(t)
		test.change(s)
		if did, said := s.decide(); !slices.Equal(did, test.want) {
			t.Errorf("%s: %q, want %q; said %q", name, did, test.want, said)
		}
	}
}

// It has read everything since the question.
func TestTheLook(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ledger.NodeWord)
		want   bool
	}{
		"nothing there":     {func(*ledger.NodeWord) {}, true},
		"not looked yet":    {func(w *ledger.NodeWord) { w.Looked = 7 }, false},
		"not all was read":  {func(w *ledger.NodeWord) { w.Whole = false }, false},
		"a record unread":   {func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }, false},
		"of another driver": {func(w *ledger.NodeWord) { w.Has = []ledger.VolumeID{{Driver: "other", Handle: "x"}} }, true},
		"of this driver":    {func(w *ledger.NodeWord) { w.Has = []ledger.VolumeID{{Driver: driver, Handle: "x"}} }, false},
		"of this driver, unlisted": {func(w *ledger.NodeWord) {
			w.Unlisted = []ledger.Unlisted{{Driver: driver, Digests: []string{"00000000"}}}
		}, false},
		"of another one, unlisted": {func(w *ledger.NodeWord) {
			w.Unlisted = []ledger.Unlisted{{Driver: "other", Digests: []string{"00000000"}}}
		}, true},
		"of another boot": {func(w *ledger.NodeWord) { w.BootID = "a-boot-0" }, false},
		"of another Node": {func(w *ledger.NodeWord) { w.NodeUID = "x" }, false},
	} {
		s := fenced(t)
		s.comesBack("a-boot-1")
		s.word(7, 7)
		s.do(t)
		s.do(t)
		w := ledger.NodeWord{Node: "a", UID: "word", Version: s.next(), NodeUID: "a-uid", BootID: "a-boot-1", Look: 8, Looked: 8, Whole: true}
		test.change(&w)
		s.apply(w)
		if did, said := s.decide(); slices.Contains(did, "unmark a") != test.want {
			t.Errorf("%s: %q %q", name, did, said)
		}
	}
}

// Without a systemUUID or bootID, no boot can be told from another.
func TestMachinesWithoutNames(t *testing.T) {
	for name, change := range map[string]map[string]string{"no systemUUID": {annotationSystemUUID: ""}, "no bootID": {annotationBootID: ""}} {
		s := fenced(t)
		s.fences[0] = s.marked("x", change)
		s.comesBack("a-boot-2")
		if change[annotationSystemUUID] == "" && name == "no systemUUID" {
			s.node("a", func(n *ledger.NodeState) { n.SystemUUID, n.BootID = "", "a-boot-2" })
		}
		if did, said := s.decide(); slices.Contains(did, "unmark a") {
			t.Errorf("%s: %q %q", name, did, said)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		by, list string
		want     bool
	}{
		{"10.0.0.0/24", "10.0.0.1/32", true}, {"10.0.0.1/32", "10.0.0.0/24", false}, {"10.0.0.1/32", "10.0.0.1/32", true},
		{"10.0.0.1", "10.0.0.1/32", true}, {"10.0.0.0/25 10.0.0.128/25", "10.0.0.0/24", false}, {"fd00::/64", "fd00::1/128", true}, {"fd00::/64", "10.0.0.1/32", false},
	} {
		by, _ := prefixes(strings.Fields(test.by))
		list, _ := prefixes(strings.Fields(test.list))
		if got := covers(by, list); got != test.want {
			t.Errorf("%s covers %s: %t", test.by, test.list, got)
		}
	}
}
