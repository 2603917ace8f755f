// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// A pipe gets no escapes and bars; with NO_COLOR a terminal gets bars only.
func TestStyles(t *testing.T) {
	slots := []facts.Slots{{NodeState: facts.NodeState{Node: "n", Ready: true}, Registered: true, Driver: "d", Used: 2, Reserved: 1, Limit: new(int32(4)), Free: new(int32(1))}}
	show := func(s Style) string {
		var b bytes.Buffer
		if err := Slots(slots, s).Print(Visible(&b), NewOutput(true), s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text := show(StyleOf(&bytes.Buffer{})); strings.ContainsAny(text, "\x1b█░") {
		t.Errorf("a pipe gets %q", text)
	}
	if text := show(Style{Terminal: true}); strings.Contains(text, "\x1b") || !strings.Contains(text, "██░·") {
		t.Errorf("a terminal without colours gets %q", text)
	}
	if text := show(Style{Terminal: true, Colour: true}); !strings.Contains(text, "\x1b[34m██\x1b[0m\x1b[32m░\x1b[0m") {
		t.Errorf("a terminal gets %q", text)
	}
}

func TestBarScales(t *testing.T) {
	text := bar(facts.Slots{Used: 1, Kept: 1, Leaving: 1, Reserved: 1, Limit: new(int32(128)), Free: new(int32(124))}, leastSigns)
	for _, sign := range []string{signUsed, signKept, signLeaving, signReserved, signFree} {
		if !strings.Contains(text, sign) {
			t.Errorf("%s is missing in %s", sign, text)
		}
	}
	if n := len([]rune(text)); n > leastSigns {
		t.Errorf("the bar has %d signs", n)
	}
	if text := bar(facts.Slots{Used: 2}, leastSigns); text != "██…" {
		t.Errorf("a node without a limit shows %s", text)
	}
}

func TestWrap(t *testing.T) {
	s := Style{Width: 40}
	for line := range strings.Lines(s.Wrap(strings.Repeat("word ", 30)+strings.Repeat("x", 60), 10)) {
		if n := len([]rune(strings.TrimSpace(line))); n > 30 && n != 60 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
	if got := s.Wrap("a  b\nc", 0); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

func TestOutputFormats(t *testing.T) {
	for format, structured := range map[string]bool{"": false, "wide": false, "json": true, "yaml": true} {
		o := NewOutput(true)
		o.Format = format
		if err := o.Validate(); err != nil || o.Structured() != structured {
			t.Errorf("%q: structured %t, %v", format, o.Structured(), err)
		}
	}
	for _, format := range []string{"xml", "json=x", "custom-columns=A:.b"} {
		o := NewOutput(false)
		o.Format = format
		if o.Validate() == nil {
			t.Errorf("%q is taken", format)
		}
	}
	o := NewOutput(true)
	o.Format = "yaml"
	const head = "apiVersion: cli.moorage.dev/v1alpha1\nitems:\n"
	for kind, want := range map[string]string{
		"":      head + "- a: 7\nkind: ThingList\n",
		"Thing": head + "- a: 7\n  apiVersion: cli.moorage.dev/v1alpha1\n  kind: Thing\nkind: ThingList\n",
	} {
		var b bytes.Buffer
		if err := o.PrintList(&b, Style{}, "ThingList", []Item{{kind, map[string]int{"a": 7}}}); err != nil || b.String() != want {
			t.Errorf("%q, %v", b.String(), err)
		}
	}
}

// Rows fit with names of ordinary length; longer names stay whole.
func TestTablesFit(t *testing.T) {
	now, since := time.Unix(1e9, 0), time.Unix(1e9, 0).Add(-71*time.Hour)
	long := func(n int) string { return strings.Repeat("x", n) }
	pod := facts.Requester{Kind: "Pod", Namespace: long(nsNameWidth), Name: "web-6d4cf56db6-x7k2p"}
	node, driver, claim, code := long(nodeWidth), long(driverWidth), "n/"+long(claimWidth-2), "ForeignAttachment"
	tables := map[string]func(s Style, node string) *Table{
		"volumes": func(_ Style, node string) *Table {
			return Volumes([]facts.Volume{{
				PersistentVolume: long(40), Claim: claim, Driver: driver, Handle: long(60), State: "DetachPending", Reason: &facts.Reason{Code: code},
				Holder: &facts.Holder{Node: node, For: []facts.Requester{pod, pod}, Since: since}, Next: &facts.Waiter{Who: pod, Node: node}, Waiting: []facts.Waiter{{Who: pod}},
			}, {
				Claim: claim, State: "InUse", Nodes: []facts.VolumeOnNode{{Node: node, Since: since}, {Node: long(nodeWidth)}},
			}}, now)
		},
		"tickets": func(_ Style, node string) *Table {
			return Tickets([]facts.Ticket{
				{Namespace: "n", Name: long(nsNameWidth - 2), Type: "LiveMigration", Node: node, State: "Pending", Reasons: []facts.Reason{{Code: "DriverNotRegistered"}}, Created: since},
			}, now)
		},
		"nodes": func(s Style, node string) *Table {
			return Slots([]facts.Slots{
				{NodeState: facts.NodeState{Node: node, OutOfService: true}, Driver: driver, Used: 100, Kept: 1, Leaving: 1, Reserved: 1, Stated: new(int32(128)), Limit: new(int32(127)), Free: new(int32(24)), Registered: true},
				{NodeState: facts.NodeState{Node: node, Ready: true, Cordoned: true}, Driver: driver, Exhausted: true, Registered: true, Used: 12},
			}, s)
		},
		"waits": func(_ Style, node string) *Table {
			return waits([]facts.Wait{{Who: facts.Requester{Kind: "Pod", Namespace: "n", Name: long(nsNameWidth - 2)}, Node: node, State: "WaitsForVolumes", Code: "DriverNotRegistered", Since: since}}, now)
		},
	}
	for name, table := range tables {
		for _, s := range []Style{{}, {Terminal: true, Width: 80}} {
			var b bytes.Buffer
			if err := table(s, node).Print(&b, NewOutput(true), s); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := len([]rune(strings.TrimRight(line, " \n"))); n > plainWidth {
					t.Errorf("%s: %d columns:\n%s", name, n, b.String())
					break
				}
			}
		}
		var b bytes.Buffer
		whole := "ip-10-0-12-34.eu-west-1.compute.internal"
		if err := table(Style{}, whole).Print(&b, NewOutput(true), Style{}); err != nil || !strings.Contains(b.String(), whole) {
			t.Errorf("%s: %v: a long name of a node is not whole:\n%s", name, err, b.String())
		}
	}
}

func TestWideIsWhole(t *testing.T) {
	pod := facts.Requester{Kind: "Pod", Namespace: "shop", Name: "web-6d4cf56db6-x7k2p"}
	table := Volumes([]facts.Volume{{
		PersistentVolume: "pvc-1", Claim: "shop/data", State: "DetachPending", Reason: &facts.Reason{Code: "DetachFailed"},
		Holder: &facts.Holder{Node: "worker-1", For: []facts.Requester{pod}}, Next: &facts.Waiter{Who: pod, Node: "worker-2"},
	}}, time.Unix(0, 0))
	o := NewOutput(true)
	o.Format = "wide"
	var b bytes.Buffer
	if err := table.Print(&b, o, Style{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"VOLUME", "pvc-1", "DetachPending", "DetachFailed", "shop/web-6d4cf56db6-x7k2p at worker-2", "SINCE"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("it lacks %q:\n%s", text, b.String())
		}
	}
	if strings.Contains(b.String(), "STATUS") || strings.Contains(b.String(), "…") {
		t.Errorf("it merges or shortens:\n%s", b.String())
	}
}

// The names of a workload's pods agree in the middle.
func TestShortName(t *testing.T) {
	for name, want := range map[string]string{"db-0": "db-0", "web-6d4cf56db6-x7k2p": "web-6…-x7k2p", "twelve-chars": "twelve-chars"} {
		if got := shortName(name, 12); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestLinked(t *testing.T) {
	live := Style{Flags: "--context prod"}
	file := Style{Bundle: "it's.tar.gz"}
	named := `kubectl moorage --bundle 'it'\''s.tar.gz' `
	for _, c := range []struct {
		style      Style
		text, want string
	}{
		{live, "ask kubectl moorage ticket explain x", "ask kubectl moorage --context prod ticket explain x"},
		{live, "kubectl moorage ticket end x", "kubectl moorage --context prod ticket end x"},
		{live, "kubectl get pv, kubectl -n x get pods", "kubectl --context prod get pv, kubectl --context prod -n x get pods"},
		{live, "kubectl moorage says so", "kubectl moorage says so"},
		{file, "kubectl moorage ticket explain x", named + "ticket explain x"},
		{file, "kubectl moorage ticket renew x", "kubectl moorage ticket renew x"},
		{file, "kubectl taint node x", "kubectl taint node x"},
		{Style{}, "kubectl taint node x", "kubectl taint node x"},
	} {
		if got := c.style.Linked(c.text); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.text, got, c.want)
		}
		if once := c.style.Linked(c.text); c.style.Linked(once) != once {
			t.Errorf("twice: %s", c.style.Linked(once))
		}
	}
}
