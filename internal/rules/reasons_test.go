// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// The page docs/reasons.md explains each code, sorted; package arch compares the other reasons.
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
	for _, code := range rules.Codes() {
		codes = append(codes, string(code))
	}
	for _, code := range codes {
		if !slices.Contains(documented, code) {
			t.Errorf("docs/reasons.md has no row for %s", code)
		}
	}
	for _, code := range documented {
		if !slices.Contains(codes, code) {
			t.Errorf("docs/reasons.md has a row for %s, which is no reason", code)
		}
	}
	if !t.Failed() && !slices.Equal(documented, codes) {
		t.Errorf("docs/reasons.md has its rows in another order than reasontable.go:\n%v", codes)
	}
}

// A new rule needs a test of its refusal.
func TestEveryReasonIsTested(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"testdata/*.txt", "*_test.go", "../protocol/*_test.go", "../convert/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
		}
	}
	words := strings.FieldsFunc(text.String(), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, code := range rules.Codes() {
		if !slices.Contains(words, string(code)) {
			t.Errorf("no script of testdata and no test gives the reason %s", code)
		}
	}
}

func TestBoundsAreDocumented(t *testing.T) {
	for page, bounds := range map[string]map[string]string{
		"../../docs/reasons.md": {
			"| `TooManyTickets` |": fmt.Sprintf(" %d tickets of this namespace already wait", rules.MaxWaiting),
			"| `TooManyVolumes` |": fmt.Sprintf("than a VolumeTicket can list, %d |", rules.MaxVolumes),
		},
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for row, bound := range bounds {
			_, rest, found := strings.Cut(string(text), row)
			line, _, _ := strings.Cut(rest, "\n")
			if !found || !strings.Contains(line, bound) {
				t.Errorf("%s: %s does not say %q: %s", page, row, bound, line)
			}
		}
	}
}

func TestReasonsHaveMessages(t *testing.T) {
	for _, code := range rules.Codes() {
		if message := (rules.Reason{Code: code}).Message(); message == string(code) || message == "" {
			t.Errorf("%s has no message", code)
		}
	}
}

// Two claims of different namespaces can lead to one disk.
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
		r := rules.PodRequest(c.snapshot(), &waits)
		if got := c.arb.Fit(c.snapshot(), r, "n2", c.Now).First().Message(); got != want.text {
			t.Errorf("Fit says %q, want %q", got, want.text)
		}
		bound := pod(want.namespace, "bound", "n2")
		need := rules.PodRequest(c.snapshot(), &bound).Needs[0]
		if got := c.arb.Explain(c.snapshot(), need, "n2", c.Now).SeenFrom(want.namespace).First().Message(); got != want.text {
			t.Errorf("Explain says %q, want %q", got, want.text)
		}
		c.drop(world.Pods, bound.UID)
	}
}

func TestMessagesSayWhen(t *testing.T) {
	waits := map[int64]string{90: "1m30s", -1: "No time", 0: "while a pod at that node uses it"}
	for seconds, says := range waits {
		message := (rules.Reason{Code: rules.NodeUnreachable, Claim: "data", Node: "n1", Seconds: seconds}).Message()
		for _, other := range waits {
			if got := strings.Contains(message, other); got != (other == says) {
				t.Errorf("%d seconds: that it says %q is %t: %s", seconds, other, got, message)
			}
		}
		if got := strings.Contains(message, "at once when the node comes back"); got != (seconds >= 0) {
			t.Errorf("%d seconds: that the way out is quicker is told: %t: %s", seconds, got, message)
		}
	}
	for since, says := range map[int64]string{0: "from n1, ", 1_000_000_000: "from n1 (since 2001-09-09T01:46:40Z), "} {
		if message := (rules.Reason{Code: rules.DetachUnanswered, Claim: "data", Node: "n1", Since: since}).Message(); !strings.Contains(message, says) {
			t.Errorf("since %d: %s", since, message)
		}
	}
}

func TestMessagesOfSlots(t *testing.T) {
	all := []string{"needed", "AttachPolicy few", "in all", "waits for a slot", "ResourceExhausted", "quota"}
	few := rules.Reason{Code: rules.NoFreeSlot, Driver: "disk", Node: "n1", Used: 1, Limit: 2, Needed: 1}
	with := func(change func(*rules.Reason)) rules.Reason {
		r := few
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		r    rules.Reason
		says []string
	}{
		"one":                    {few, nil},
		"two":                    {with(func(r *rules.Reason) { r.Needed = 2 }), []string{"needed"}},
		"one, by a policy":       {with(func(r *rules.Reason) { r.Policy = "few" }), []string{"AttachPolicy few"}},
		"two, by a policy":       {with(func(r *rules.Reason) { r.Needed, r.Policy = 2, "few" }), []string{"needed", "AttachPolicy few"}},
		"more than there are":    {with(func(r *rules.Reason) { r.Code, r.Needed = rules.SlotsNotKept, 3 }), []string{"in all"}},
		"kept for another":       {with(func(r *rules.Reason) { r.Code, r.Volume = rules.SlotsNotKept, promised }), []string{"waits for a slot"}},
		"refused without a word": {rules.Reason{Code: rules.NodeExhausted, Driver: "disk"}, []string{"ResourceExhausted"}},
		"refused with words":     {rules.Reason{Code: rules.NodeExhausted, Driver: "disk", Detail: "quota"}, []string{"quota"}},
	} {
		for _, words := range all {
			if got := strings.Contains(test.r.Message(), words); got != slices.Contains(test.says, words) {
				t.Errorf("%s: that it says %q is %t: %s", name, words, got, test.r.Message())
			}
		}
	}
}
