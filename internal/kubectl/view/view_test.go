// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

const testdata = "../testdata"

func worlds(t *testing.T) map[string]*facts.World {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	folders, err := filepath.Glob(testdata + "/*/objects.yaml")
	if err != nil || len(folders) < 5 {
		t.Fatalf("found %v: %v", folders, err)
	}
	all := map[string]*facts.World{}
	for _, path := range folders {
		var objects facts.Objects
		var now time.Time
		for _, file := range []string{testdata + "/base.yaml", path} {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(raw)) {
				if text, ok := strings.CutPrefix(line, "# now: "); ok {
					if now, err = time.Parse(time.RFC3339, strings.TrimSpace(text)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for part := range bytes.SplitSeq(raw, []byte("\n---\n")) {
				if object, _, err := decoder.Decode(part, nil, nil); err == nil {
					objects.Add(object) // other kinds are read for causes other than a volume's
				}
			}
		}
		all[filepath.Base(filepath.Dir(path))] = facts.NewWorld(objects, now)
	}
	return all
}

func TestSlotsAreThoseOfTheTable(t *testing.T) {
	seen := map[string]bool{}
	for name, w := range worlds(t) {
		drivers := map[[2]string]facts.Slots{}
		for _, n := range Of(w).Nodes {
			for _, d := range n.Drivers {
				drivers[[2]string{n.Node, d.Driver}] = d
			}
		}
		for _, s := range w.ListSlots() {
			d, ok := drivers[[2]string{s.Node, s.Driver}]
			counts := map[string]int32{}
			for _, slot := range d.Volumes {
				counts[slot.Slot]++
				seen[slot.Slot] = true
			}
			if !ok || counts["Used"] != s.Used || counts["Kept"] != s.Kept || counts["Leaving"] != s.Leaving || counts["Unknown"] != s.Unknown || counts["Reserved"] != s.Reserved ||
				!reflect.DeepEqual(d.Free, s.Free) || !reflect.DeepEqual(d.Limit, s.Limit) {
				t.Errorf("%s: %s has %v (%+v), the table %+v", name, s.Node, counts, d, s)
			}
		}
	}
	for _, state := range []string{"Used", "Kept", "Leaving", "Unknown", "Reserved"} {
		if !seen[state] {
			t.Errorf("no cluster has a slot that is %s", state)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for name, w := range worlds(t) {
		v := Of(w)
		known := map[string]bool{"": true}
		for _, n := range v.Nodes {
			known["node/"+n.Node] = true
		}
		for _, x := range v.Volumes {
			known["volume/"+x.Key] = true
		}
		for _, p := range w.Pods {
			known["pod/"+p.Namespace+"/"+p.Name] = true
		}
		for _, c := range w.Claims {
			known["claim/"+c.Namespace+"/"+c.Name] = true
		}
		for _, x := range w.Tickets {
			known["ticket/"+x.Namespace+"/"+x.Name] = true
		}
		for _, l := range v.Links {
			links++
			if !known[l.From] || !known[l.To] || l.From == "" || l.How == "" {
				t.Errorf("%s: %+v", name, l)
			}
		}
		for _, wait := range v.Waits {
			if !slices.ContainsFunc(v.Links, func(l Link) bool { return l.From == wait.Who.Ref() }) {
				t.Errorf("%s: nothing says what %s waits for: %s", name, wait.Who, wait.Answer)
			}
		}
	}
	if links < 5 {
		t.Errorf("only %d links", links)
	}
}

func TestChainOfADeadNode(t *testing.T) {
	w := worlds(t)["dead-node"]
	v := Of(w)
	find := func(from string) Link {
		i := slices.IndexFunc(v.Links, func(l Link) bool { return l.From == from })
		if i < 0 {
			t.Fatalf("nothing leads from %s: %+v", from, v.Links)
		}
		return v.Links[i]
	}
	pod, pv := find("pod/shop/db"), find("volume/pv-db")
	if pod.To != "volume/pv-db" || pod.Code != "NodeUnreachable" || pod.How != WaitsFor || pod.Do == "" {
		t.Errorf("the pod: %+v", pod)
	}
	if pv.To != "node/worker-1" || pv.How != LeavesAt {
		t.Errorf("the volume: %+v", pv)
	}
	if len(v.Waits) != 1 || v.Waits[0].Code != "NodeUnreachable" || v.Waits[0].Who.Ref() != "pod/shop/db" {
		t.Errorf("who waits: %+v", v.Waits)
	}
}

// The page does not check for null.
func TestListsAreNeverNull(t *testing.T) {
	if raw := text(t, Of(facts.NewWorld(facts.Objects{}, time.Unix(0, 0)))); strings.Contains(raw, "null") {
		t.Error(raw)
	}
	for name, w := range worlds(t) {
		if raw := text(t, Of(w)); strings.Contains(raw, "null") {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPodsAtDeadNodesWait(t *testing.T) {
	all := worlds(t)
	for _, c := range []struct{ world, pod, node, code string }{
		{"dead-statefulset", "pod/shop/db-0", "node/worker-1", "TerminatingAtDeadNode"},
		{"node-gone", "pod/shop/db", "node/worker-1", "NodeMissing"},
	} {
		v := Of(all[c.world])
		if len(v.Waits) != 1 || v.Waits[0].Who.Ref() != c.pod || v.Waits[0].Code != c.code || v.Waits[0].State != facts.PodAtDeadNode {
			t.Errorf("%s: who waits: %+v", c.world, v.Waits)
		}
		if !slices.ContainsFunc(v.Links, func(l Link) bool { return l.From == c.pod && l.To == c.node && l.How == WaitsFor && l.Do != "" }) {
			t.Errorf("%s: nothing leads from %s to %s: %+v", c.world, c.pod, c.node, v.Links)
		}
	}
}

func TestWaitingPodsHaveRemedies(t *testing.T) {
	for name, w := range worlds(t) {
		v := Of(w)
		remedy := func(ref string) bool {
			return slices.ContainsFunc(v.Links, func(l Link) bool { return l.From == ref && l.Do != "" })
		}
		for _, p := range w.ListWaits() {
			ref := p.Who.Ref()
			next := slices.ContainsFunc(v.Links, func(l Link) bool { return l.From == ref && remedy(l.To) })
			if c := p.Explained.Cause; c != nil && c.Do != "" && !remedy(ref) && !next {
				t.Errorf("%s: %s waits (%s), and the page has no remedy: explain says %q", name, ref, c.Code, c.Do)
			}
		}
	}
}
