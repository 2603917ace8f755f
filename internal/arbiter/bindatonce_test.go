// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sample"
)

// Whoever leads binds a pod at once only where nobody else has anything to do with its
// volumes, nor waits at the node.
func TestBindAtOnce(t *testing.T) {
	volume := func(h string) ledger.VolumeID { return ledger.VolumeID{Driver: sample.Driver, Handle: h} }
	attached := func(h string, n ledger.NodeName) ledger.Attachment {
		return ledger.Attachment{
			Name: ledger.AttachmentName(volume(h), n), UID: "va-" + h, Version: "1", Driver: sample.Driver, Node: n, PersistentVolume: h, Ours: true, Attached: true,
		}
	}
	held := func(h ledger.Hold) ledger.HoldSeen {
		h.Version = "1"
		return ledger.HoldSeen{Volume: volume("a"), Hold: h}
	}
	share := func(h string) ledger.Event {
		return ledger.PersistentVolume{Name: h, Version: "2", Volume: volume(h), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: h}}
	}
	ofClaim := func(c ledger.Claim) ledger.Event {
		c.Key, c.UID, c.Version = ledger.ClaimKey{Namespace: "s", Name: "a"}, "a", "2"
		return c
	}
	granted := sample.Ticket("q", "n1", ledger.TypePod, "b")
	granted.Phase = ledger.TicketGranted
	waiting := sample.Ticket("m", "n1", ledger.TypeManual, "b")
	waiting.Reason, waiting.Phase = string(arbiter.HeldElsewhere), ledger.TicketPending
	ended := sample.Pod("p", "", "a")
	ended.Version, ended.Phase = "2", ledger.PodTerminating
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"nobody else":                               {nil, true},
		"its claim is not bound":                    {[]ledger.Event{ofClaim(ledger.Claim{Class: "late"}), ledger.StorageClass{Name: "late", Version: "1", Driver: sample.Driver, WaitForFirst: true}}, false},
		"its claim is missing":                      {[]ledger.Event{ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "s", Name: "a"}}}, false},
		"its volume is at the node":                 {[]ledger.Event{attached("a", "n1")}, true},
		"its volume is at another node":             {[]ledger.Event{attached("a", "n2")}, false},
		"its volume is at another node, and shared": {[]ledger.Event{share("a"), attached("a", "n2")}, true},
		"a pod has its volume at another node":      {[]ledger.Event{sample.Pod("q", "n2", "a")}, false},
		"a pod leaves its volume at another node":   {[]ledger.Event{ledger.Pod{UID: "q", Version: "1", Namespace: "s", Name: "q", Node: "n2", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "a", Claim: "a"}}}}, false},
		"a ticket asks for its volume at another":   {[]ledger.Event{sample.Ticket("q", "n2", ledger.TypePod, "a")}, false},
		"a pod has its volume at the node":          {[]ledger.Event{sample.Pod("q", "n1", "a")}, true},
		"its volume was held, and is free":          {[]ledger.Event{held(ledger.Hold{Transitions: 3})}, true},
		"its volume is held at the node":            {[]ledger.Event{held(ledger.Hold{Node: "n1", Transitions: 3})}, true},
		"its volume is held at another":             {[]ledger.Event{held(ledger.Hold{Node: "n2", Transitions: 3})}, false},
		"its volume is promised":                    {[]ledger.Event{held(ledger.Hold{Next: ledger.Promise{Node: "n2"}, Transitions: 3})}, false},
		"its volume is promised at the node":        {[]ledger.Event{held(ledger.Hold{Node: "n1", Next: ledger.Promise{Node: "n1"}, Transitions: 3})}, false},
		"its volume was taken by force":             {[]ledger.Event{held(ledger.Hold{Fences: []ledger.Fence{{Node: "n2", Rule: "afterPodGone"}}, Transitions: 3})}, false},
		"another pod's slot is left":                {[]ledger.Event{sample.Pod("q", "n1", "b")}, true},
		"no slot is left":                           {[]ledger.Event{sample.Pod("q", "n1", "b"), sample.Pod("r", "n1", "c")}, false},
		"a ticket that is granted leaves a slot":    {[]ledger.Event{granted}, true},
		"a ticket nobody has decided on":            {[]ledger.Event{sample.Ticket("q", "n1", ledger.TypePod, "b")}, true},
		"two of them, and no slot is left":          {[]ledger.Event{sample.Ticket("q", "n1", ledger.TypePod, "b"), sample.Ticket("r", "n1", ledger.TypePod, "c")}, false},
		"one of them asks for its volume":           {[]ledger.Event{sample.Ticket("q", "n1", ledger.TypePod, "a")}, false},
		"a ticket whose claim is not seen yet":      {[]ledger.Event{sample.Ticket("m", "n1", ledger.TypeManual, "late")}, false},
		"somebody waits at the node":                {[]ledger.Event{waiting}, false},
		"a ticket there may have been granted":      {[]ledger.Event{sample.Ticket("q", "n1", ledger.TypePod, "b"), ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "s", Name: "uid-q"}, UID: "t-q"}}, false},
		"it has a ticket":                           {[]ledger.Event{sample.Ticket("p", "n1", ledger.TypePod, "a")}, false},
		"it has a ticket for another node":          {[]ledger.Event{sample.Ticket("p", "n2", ledger.TypePod, "a")}, false},
		"it has a node":                             {[]ledger.Event{func() ledger.Pod { p := sample.Pod("p", "n1", "a"); p.Version = "2"; return p }()}, false},
		"it is being deleted":                       {[]ledger.Event{ended}, false},
		"the node is gone":                          {[]ledger.Event{ledger.NodeGone{Name: "n1"}}, false},
		"the node lacks the driver":                 {[]ledger.Event{ledger.NodeDrivers{Node: "n1", Version: "2"}}, true},
		"the node lacks the driver, and needs it":   {[]ledger.Event{ledger.NodeDrivers{Node: "n1", Version: "2"}, ledger.Driver{Name: sample.Driver, Version: "1", AttachRequired: true, NeedsNode: true}}, false},
		"the node is out of service":                {[]ledger.Event{ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyFalse, OutOfService: true, Managed: true, Reporting: true}}, false},
		"no volume of it needs an attachment":       {[]ledger.Event{ledger.Driver{Name: sample.Driver, Version: "1"}}, false},
	} {
		l := sample.Ledger(append([]ledger.Event{sample.Pod("p", "", "a")}, test.facts...)...)
		s := l.Snapshot()
		r, can := arbiter.Arbiter{}.BindAtOnce(s, s.Pod("uid-p"), "n1", sample.Now)
		if can != test.want {
			t.Errorf("%s: %v, want %v", name, can, test.want)
		}
		if can && (r.ID != ledger.BindID("s", "uid-p") || r.Phase != ledger.TicketGranted || r.Bind != ledger.BindSent || r.Node != "n1" || len(r.Volumes) != 1) {
			t.Errorf("%s: reservation %+v", name, r)
		}
	}
}

// A reservation without a ticket counts as one that is granted does, until its pod is seen
// bound or gone; a second bind of its pod waits for that.
func TestReservedAtOnce(t *testing.T) {
	l := sample.Ledger(sample.Pod("p", "", "a"), sample.Pod("q", "", "a"), sample.Pod("r", "", "b", "c"))
	s := l.Snapshot()
	r, _ := arbiter.Arbiter{}.BindAtOnce(s, s.Pod("uid-p"), "n1", sample.Now)
	l.Apply(sample.Now, r)
	s = l.Snapshot()
	if _, again := (arbiter.Arbiter{}).BindAtOnce(s, s.Pod("uid-p"), "n1", sample.Now); again {
		t.Error("a pod is bound twice")
	}
	fits := func(pod string, n ledger.NodeName) bool {
		s := l.Snapshot()
		return arbiter.Arbiter{}.Fit(s, arbiter.PodRequest(s, s.Pod(pod)), n, sample.Now.Add(time.Second)).Allowed()
	}
	switch {
	case !fits("uid-p", "n1"):
		t.Error("it stands in its own way")
	case fits("uid-r", "n1"):
		t.Error("its slot is given away")
	case fits("uid-q", "n2"):
		t.Error("its volume is given away")
	}
	bound := sample.Pod("p", "n1", "a")
	bound.Version = "2"
	l.Apply(sample.Now, bound)
	if l.Snapshot().Ticket(r.ID) != nil {
		t.Error("the reservation outlives the bind")
	}
	l.Apply(sample.Now, ledger.PodGone{UID: "uid-p"})
	if !fits("uid-r", "n1") {
		t.Error("the slot of a pod that is gone is taken")
	}
}
