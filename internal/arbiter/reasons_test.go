// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// docs/reasons.md explains every code, in the order of the code, and says of
// each what changes it and what to do. What is said with reasons of others
// stands below; package arch compares that. How each is treated, too.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	codesOnly, _, _ := strings.Cut(string(page), "\n## How each is treated\n")
	var documented []string
	for line := range strings.Lines(codesOnly) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		code := strings.Trim(strings.TrimSpace(cells[0]), "`")
		documented = append(documented, code)
		if len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("%s: the row has %d cells, want code, meaning, what changes it, what to do", code, len(cells))
		}
	}
	var codes []string
	for _, code := range arbiter.Codes() {
		codes = append(codes, string(code))
	}
	if !slices.Equal(documented, codes) {
		t.Errorf("docs/reasons.md has\n%v, the code has\n%v", documented, codes)
	}
}

// A code has words of its own.
func TestReasonsHaveMessages(t *testing.T) {
	for _, code := range arbiter.Codes() {
		if message := (arbiter.Reason{Code: code}).Message(); message == string(code) || message == "" {
			t.Errorf("%s has no message", code)
		}
	}
}

// Two claims of different namespaces can lead to one disk. Who waits is not
// told who of the other namespace has it.
func TestOtherNamespacesAreNotNamed(t *testing.T) {
	c := newCluster()
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		c.addMachine(string(n), n)
		c.put(ledger.NodeState{Name: n, UID: string(n), Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		c.put(ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: ledger.NoLimit}}})
	}
	disk := ledger.VolumeID{Driver: "disk", Handle: "h"}
	for _, namespace := range []string{"mine", "theirs"} {
		key := ledger.ClaimKey{Namespace: namespace, Name: "data"}
		c.put(ledger.PersistentVolume{Name: namespace, Volume: disk, Access: ledger.AccessNode, Claim: key})
		c.put(ledger.Claim{Key: key, UID: "claim-" + namespace, Bound: true, PersistentVolume: namespace, Access: ledger.AccessNode})
	}
	pod := func(namespace, name string, node ledger.NodeName) ledger.Pod {
		p := ledger.Pod{UID: namespace + name, Namespace: namespace, Name: name, Node: node, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
		c.put(p)
		return p
	}
	pod("theirs", "secret", "n1")
	c.settle()
	for _, want := range []struct{ namespace, text string }{
		{"mine", "can't take volume data: n1 holds it for somebody of another namespace"},
		{"theirs", "can't take volume data: n1 holds it for pod theirs/secret"},
	} {
		waits := pod(want.namespace, "waits", "")
		r := arbiter.PodRequest(c.snapshot(), &waits)
		if got := c.arb.Fit(c.snapshot(), r, "n2", c.Now).First().Message(); got != want.text {
			t.Errorf("Fit says %q, want %q", got, want.text)
		}
		bound := pod(want.namespace, "bound", "n2")
		need := arbiter.PodRequest(c.snapshot(), &bound).Needs[0]
		if got := c.arb.Explain(c.snapshot(), need, "n2", c.Now).SeenFrom(want.namespace).First().Message(); got != want.text {
			t.Errorf("Explain says %q, want %q", got, want.text)
		}
		c.drop(world.Pods, bound.UID)
	}
}
