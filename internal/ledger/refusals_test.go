// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

// A refusal ends with evidence of room or by its age, even if nothing attached could leave.
func TestRefusals(t *testing.T) {
	attachment := func(name, version string, attached bool, code int32) Event {
		return Attachment{Name: name, UID: name, Version: version, Driver: "disk", Node: "n", PersistentVolume: name,
			Attached: attached, AttachError: CallError{Code: code}}
	}
	refused := func(version string) Event { return attachment("a", version, false, ResourceExhausted) }
	over := func(after time.Duration) Event { return RefusalsOver{start.Add(after)} }
	csinode := func(version string) Event {
		return NodeDrivers{Node: "n", Version: version, Drivers: []DriverOnNode{{Name: "disk", Limit: 4}}}
	}
	if ResourceExhausted != 8 {
		t.Errorf("gRPC says that something is exhausted with 8, not %d", ResourceExhausted)
	}
	for name, test := range map[string]struct {
		events []Event // a second apart
		full   bool
	}{
		"refused":                                {[]Event{refused("1")}, true},
		"refused, and what was refused is gone":  {[]Event{refused("1"), AttachmentGone{"a"}}, true},
		"refused later than that":                {[]Event{refused("1"), over(-1)}, true},
		"refused by then":                        {[]Event{refused("1"), over(0)}, false},
		"long ago, and gone":                     {[]Event{refused("1"), AttachmentGone{"a"}, over(0)}, false},
		"long ago, and again":                    {[]Event{refused("1"), refused("2"), over(0)}, true},
		"twice, and both long ago":               {[]Event{refused("1"), refused("2"), over(time.Second)}, false},
		"long ago, and again after that":         {[]Event{refused("1"), over(0), refused("2")}, true},
		"by another code now":                    {[]Event{refused("1"), attachment("a", "2", false, 13)}, true},
		"another one has been attached":          {[]Event{refused("1"), attachment("b", "2", true, 0)}, false},
		"another one is attached all the while":  {[]Event{attachment("b", "1", true, 0), refused("2"), attachment("b", "3", true, 0)}, true},
		"another one was attached, and has left": {[]Event{attachment("b", "1", true, 0), refused("2"), AttachmentGone{"b"}}, false},
		"the CSINode has changed":                {[]Event{refused("1"), csinode("2")}, false},
		"the CSINode has changed, and again":     {[]Event{refused("1"), csinode("2"), refused("3"), over(time.Second)}, true},
	} {
		l := New()
		for i, e := range slices.Concat([]Event{csinode("0")}, test.events) {
			l.Apply(start.Add(time.Duration(i-1)*time.Second), e)
		}
		if got := l.Snapshot().Node("n").Driver("disk").Exhausted; got != test.full {
			t.Errorf("%s: full is %t, want %t", name, got, test.full)
		}
	}
}

func TestRefusalsOverTouchTheirNodes(t *testing.T) {
	refused := func(n NodeName, version string) Event {
		return Attachment{Name: string(n), UID: string(n), Version: version, Driver: "disk", Node: n, PersistentVolume: "pv",
			AttachError: CallError{Code: ResourceExhausted}}
	}
	l := New()
	l.Apply(start, refused("n1", "1"))
	l.Apply(start.Add(time.Second), refused("n2", "1"))
	fork := l.Fork()
	fork.Apply(start.Add(2*time.Second), refused("n1", "2"))
	fork.Apply(start.Add(2*time.Second), RefusalsOver{start.Add(time.Second)})
	for _, test := range []struct {
		until time.Duration
		want  []NodeName
	}{{-time.Second, nil}, {0, []NodeName{"n1"}}, {0, nil}, {time.Hour, []NodeName{"n2"}}, {time.Hour, nil}} {
		touched := l.Apply(start.Add(time.Hour), RefusalsOver{start.Add(test.until)})
		if !slices.Equal(touched.Nodes, test.want) || len(touched.Volumes)+len(touched.Tickets) > 0 {
			t.Errorf("refusals until %v being over touches %+v, want %v", test.until, touched, test.want)
		}
	}
}

func TestRefusalsOfSeveralDrivers(t *testing.T) {
	type at struct {
		node   NodeName
		driver string
	}
	all := []at{{"n1", "disk"}, {"n1", "other"}, {"n2", "disk"}}
	l := New()
	for i, r := range all {
		l.Apply(start.Add(time.Duration(i)*time.Second), Attachment{Name: string(r.node) + r.driver, UID: "u", Version: "1", Driver: r.driver, Node: r.node,
			PersistentVolume: "pv", AttachError: CallError{Code: ResourceExhausted}})
	}
	for over := range len(all) + 1 {
		l.Apply(start.Add(time.Hour), RefusalsOver{start.Add(time.Duration(over-1) * time.Second)})
		for i, r := range all {
			if got := l.Snapshot().Node(r.node).Driver(r.driver).Exhausted; got != (i >= over) {
				t.Errorf("%d refusals are over: %s at %s is full: %t", over, r.driver, r.node, got)
			}
		}
	}
}

func TestDriverIsForgottenWithItsRefusal(t *testing.T) {
	l := New()
	for _, e := range []Event{
		proofNode("n", "1"), Attachment{Name: "a", UID: "a", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv", AttachError: CallError{Code: ResourceExhausted}}, AttachmentGone{"a"},
	} {
		l.Apply(start, e)
	}
	if got := len(l.Snapshot().Node("n").Drivers); got != 1 {
		t.Errorf("%d drivers are known while one is full", got)
	}
	l.Apply(start, RefusalsOver{start})
	if got := l.Snapshot().Node("n").Drivers; len(got) != 0 {
		t.Errorf("known of its drivers: %+v", got)
	}
}
