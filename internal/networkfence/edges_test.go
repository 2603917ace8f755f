// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// with changes an object.
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

// marked is another fence of ours, as the first one is, with changed annotations.
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

// What goes on to count as cut off, of a node that says so: what Moorage fenced was all that
// there was, as long as the Node is the one, and as all that is listed now is covered.
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
		"its list can't be read, and was fenced": {func(s *scene) { s.addons[0] = addon("id-a", "rbd", "everything") }, true},
		"nothing of it was confirmed":            {func(s *scene) { s.fences[0] = s.marked("x", map[string]string{annotationConfirmed: ""}) }, false},
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

// A fence is let go only after the node has ceased to say that it is cut off, and undone only
// where no other fence needs it.
func TestHowItEnds(t *testing.T) {
	const unfences, deletes, stays = "unfence a", "delete a", "mark a"
	for name, test := range map[string]struct {
		other *unstructured.Unstructured
		want  string
	}{
		"nothing else":                    {others("x", stateFenced, "10.0.0.2/32"), unfences},
		"another's of the same address":   {others("x", stateFenced, "10.0.0.1/32"), deletes},
		"another's that goes":             {with(others("x", stateFenced, "10.0.0.1/32"), deleting), unfences},
		"another's that lets in":          {others("x", stateUnfenced, "10.0.0.1/32"), unfences},
		"another driver's":                {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs")), stays},
		"another driver's, elsewhere":     {with(others("x", stateFenced, "10.0.0.2/32"), ofClass("fs")), unfences},
		"another driver's that goes":      {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs"), deleting), unfences},
		"another driver's that lets in":   {with(others("x", stateUnfenced, "10.0.0.1/32"), ofClass("fs")), unfences},
		"of a class that nobody knows of": {with(others("x", stateFenced, "10.0.0.1/32"), ofClass("?")), stays},
	} {
		s := fenced(t)
		s.classes["fs"] = "fs.example.com"
		s.comesBack("a-boot-2")
		s.do(t) // unmark
		s.fences = append(s.fences, test.other)
		did, said := s.decide()
		if got := strings.Join(did, ", "); got != test.want && !(test.want == deletes && strings.Contains(got, deletes)) {
			t.Errorf("%s: %q, want %q; said %q", name, did, test.want, said)
		}
	}
}

// What a NetworkFence waits for is said.
func TestWhatIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		say    string
	}{
		"no answer": {func(s *scene) {
			delete(s.fences[0].Object, "status")
			s.fences[0] = s.marked("x", map[string]string{annotationConfirmed: ""})
		}, "does the controller of csi-addons run"},
		"an error": {func(s *scene) {
			s.fences[0] = answers(s.marked("x", map[string]string{annotationConfirmed: ""}), "Failed", "no such cluster")
		}, "no such cluster"},
		"asked to let in": {func(s *scene) {
			_ = unstructured.SetNestedField(s.fences[0].Object, stateUnfenced, "spec", "fenceState")
		}, "to let the machine in again"},
		"another lets in": {func(s *scene) { s.fences = append(s.fences, others("x", stateUnfenced, "10.0.0.1/32")) }, "x asks to let the same client in"},
		"another Node": {func(s *scene) {
			s.apply(ledger.NodeGone{Name: "a"})
			s.node("a", func(n *ledger.NodeState) { n.UID = "new" })
		}, "set spec.fenceState to Unfenced"},
		"another's storage": {func(s *scene) {
			s.comesBack("a-boot-2")
			s.fences = append(s.fences, with(others("x", stateFenced, "10.0.0.1/32"), ofClass("fs")))
		}, "waits for x, of another driver"},
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

// A fence that the storage has not confirmed follows from nothing, and nothing from it.
func TestUnconfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"silent":               {func(*scene) {}, nil},
		"confirmed":            {func(s *scene) { answers(s.fences[0], succeeded, "") }, []string{"confirm a"}},
		"confirmed, of before": {func(s *scene) { answers(s.fences[0], succeeded, unfencedWords) }, nil},
		"confirmed, changed":   {func(s *scene) { answers(s.fences[0], succeeded, ""); s.fences[0].SetGeneration(3) }, nil},
		"Ready":                {func(s *scene) { s.comesBack("a-boot-1") }, []string{"unfence a"}},
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

// What moorage-node says counts if it has read everything, and has looked since it was asked.
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
		"of another boot":   {func(w *ledger.NodeWord) { w.BootID = "a-boot-0" }, false},
		"of another Node":   {func(w *ledger.NodeWord) { w.NodeUID = "x" }, false},
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

// Without a systemUUID or a bootID nobody can tell a boot from another.
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

// covers asks each of a list to lie within one address range.
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
