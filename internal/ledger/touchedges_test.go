// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"
	"testing"
)

// Volumes by handle, nodes with @, tickets with #, pods with %, policies with $.
func touchedText(t Touched) string {
	var list []string
	for _, v := range t.Volumes {
		list = append(list, v.Handle)
	}
	for _, n := range t.Nodes {
		list = append(list, "@"+string(n))
	}
	for _, k := range t.Tickets {
		list = append(list, "#"+k.Name)
	}
	for _, uid := range t.Pods {
		list = append(list, "%"+uid)
	}
	for _, p := range t.Policies {
		list = append(list, "$"+p)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

func TestWhatEventsTouch(t *testing.T) {
	v := VolumeID{"disk", "h"}
	key := ClaimKey{Namespace: "ns", Name: "data"}
	pv := func(version string, change func(*PersistentVolume)) Event {
		p := PersistentVolume{Name: "pv", Version: version, Volume: v, Claim: key, Access: AccessNode}
		change(&p)
		return p
	}
	node := func(change func(*NodeState)) Event {
		n := proofNode("n", "5")
		change(&n)
		return n
	}
	drivers := NodeDrivers{Node: "n", Version: "1", Drivers: []DriverOnNode{{Name: "disk", Limit: 2}}}
	bothDrivers := NodeDrivers{Node: "n", Version: "1", Drivers: []DriverOnNode{{Name: "disk", Limit: 2}, {Name: "other", Limit: 2}}}
	claim := Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true}
	unbound := Claim{Key: key, UID: "c", Version: "1", Class: "fast"}
	fast := StorageClass{Name: "fast", Version: "1", Driver: "disk"}
	pod := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Claim: "data"}}}
	asks := Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{Claim: "data"}}}
	manual := Ticket{ID: TicketID{"ns", "m"}, UID: "m", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	made := proofAttachment(v, "n", "a", "1")
	made.PersistentVolume, made.Inline = "pv", VolumeID{}
	another := PersistentVolume{Name: "pv", Version: "2", Volume: VolumeID{"disk", "i"}, Access: AccessNode}
	granted := asks
	granted.Version, granted.Phase = "2", TicketGranted
	written := asks
	written.Version = "2"
	is := func(*PersistentVolume) {}
	same := func(*NodeState) {}
	waits := UnboundClaim("disk", "c").Handle
	policy := Policy{Name: "rule", Version: "1", Driver: "disk"}
	bound := []Event{pv("1", is), claim, pod}
	lists := func(version string, reported ...VolumeID) Event {
		n := proofNode("n", version)
		n.Reported = reported
		return n
	}
	forUnknown := Attachment{Name: AttachmentName(VolumeID{"disk", "unknown"}, "n"), UID: "a", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}
	for name, test := range map[string]struct {
		before []Event
		event  Event
		want   string
	}{
		"a PersistentVolume":                {nil, pv("1", is), "h"},
		"with a claim that a pod uses":      {[]Event{claim, pod}, pv("1", is), "%p @n h"},
		"for another claim now":             {[]Event{pv("1", func(p *PersistentVolume) { p.Claim.Name = "other" }), claim, pod}, pv("2", is), "%p @n h"},
		"for another claim of its name":     {[]Event{pv("1", func(p *PersistentVolume) { p.ClaimUID = "old" }), claim, pod}, pv("2", is), "%p @n h"},
		"an older one":                      {[]Event{pv("2", is)}, pv("1", is), ""},
		"of another volume now":             {[]Event{pv("1", is)}, pv("2", func(p *PersistentVolume) { p.Volume.Handle = "i" }), "h i"},
		"that is gone":                      {bound, PersistentVolumeGone{"pv"}, "%p h"},
		"that is gone, and was awaited":     {[]Event{PersistentVolume{Name: "pv", Version: "1"}, claim, asks}, PersistentVolumeGone{"pv"}, "#t"},
		"that needs no attachment":          {[]Event{claim, pod, asks, manual}, PersistentVolume{Name: "pv", Version: "1", Access: AccessMany}, "#m #t %p"},
		"that had an attachment":            {[]Event{pv("1", is), proofNode("n", "1"), made}, PersistentVolumeGone{"pv"}, "h"},
		"of another, and had one":           {[]Event{pv("1", is), proofNode("n", "1"), made}, another, "h i"},
		"that is gone after that":           {[]Event{pv("1", is), proofNode("n", "1"), made, another}, PersistentVolumeGone{"pv"}, "h i"},
		"that comes back after that":        {[]Event{pv("1", is), proofNode("n", "1"), made, PersistentVolumeGone{"pv"}}, another, "h i"},
		"that is gone, and so is that":      {[]Event{pv("1", is), proofNode("n", "1"), made, another, AttachmentGone{made.Name}}, PersistentVolumeGone{"pv"}, "i"},
		"that names what others call so":    {[]Event{HoldSeen{v, Hold{Version: "1", Node: "n"}}, proofNode("n", "1"), made, another}, PersistentVolumeGone{"pv"}, "h i"},
		"that was never there":              {bound, PersistentVolumeGone{"other"}, ""},
		"a claim":                           {[]Event{pv("1", is)}, claim, "h"},
		"a claim that a pod uses":           {[]Event{pv("1", is), pod}, claim, "%p @n h"},
		"a claim that a ticket uses":        {[]Event{pv("1", is), asks}, claim, "#t @n h"},
		"a claim of a class":                {[]Event{drivers, fast}, unbound, waits},
		"a claim that is gone":              {bound, ClaimGone{key}, "%p h"},
		"a claim that is not bound":         {[]Event{pod}, Claim{Key: key, UID: "c", Version: "1"}, "%p"},
		"a claim that was never there":      {nil, ClaimGone{key}, ""},
		"a class, and its claims":           {[]Event{drivers, unbound, asks}, fast, waits + " #t"},
		"a class of another CSI driver now": {[]Event{bothDrivers, unbound, fast, asks}, StorageClass{Name: "fast", Version: "2", Driver: "other"}, waits + " #t"},
		"a class, and who waits for one":    {[]Event{drivers, unbound, Ticket{ID: asks.ID, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: asks.Volumes}}, fast, waits + " #t"},
		"a class that is gone":              {[]Event{drivers, unbound, fast, asks}, StorageClassGone{"fast"}, ""},
		"another class":                     {[]Event{drivers, unbound, asks}, StorageClass{Name: "slow", Version: "1", Driver: "disk"}, ""},
		"another class, and its claims":     {[]Event{drivers, unbound, fast, asks}, StorageClass{Name: "slow", Version: "1", Driver: "disk"}, ""},
		"a class of what is bound":          {[]Event{drivers, pv("1", is), Claim{Key: key, UID: "c", Version: "1", Class: "fast", PersistentVolume: "pv", Bound: true}, asks}, fast, ""},
		"the same class":                    {[]Event{drivers, unbound, fast, asks}, StorageClass{Name: "fast", Version: "2", Driver: "disk"}, ""},
		"a class of another driver now":     {[]Event{drivers, unbound, fast}, StorageClass{Name: "fast", Version: "2", Driver: "none"}, ""},
		"a pod":                             {[]Event{pv("1", is), claim}, pod, "%p @n h"},
		"a pod as before":                   {bound, Pod{UID: "p", Version: "2", Namespace: "ns", Name: "p", Node: "n", Volumes: pod.Volumes}, "%p h"},
		"a pod that leaves":                 {bound, Pod{UID: "p", Version: "2", Namespace: "ns", Name: "p", Node: "n", Phase: PodTerminating, Volumes: pod.Volumes}, "%p h"},
		"a pod that is gone":                {bound, PodGone{"p"}, "@n h"},
		"a pod that was never there":        {bound, PodGone{"q"}, ""},
		"a pod that is not bound":           {[]Event{pv("1", is), claim}, Pod{UID: "q", Version: "1", Namespace: "ns", Name: "q", Volumes: pod.Volumes}, "%q"},
		"a ticket":                          {[]Event{pv("1", is), claim}, asks, "#t @n h"},
		"a ticket that is granted":          {[]Event{pv("1", is), claim, asks}, granted, "#t @n h"},
		"a ticket that is gone":             {[]Event{pv("1", is), claim, asks}, TicketGone{ID: asks.ID}, "#t @n h"},
		"a ticket in doubt":                 {[]Event{pv("1", is), claim, asks}, TicketInDoubt{ID: asks.ID, UID: "t"}, "#t h"},
		"a doubt that is told again":        {[]Event{pv("1", is), claim, asks, TicketInDoubt{ID: asks.ID, UID: "t"}}, TicketInDoubt{ID: asks.ID, UID: "t"}, ""},
		"a ticket that is written":          {[]Event{pv("1", is), claim, asks}, written, "#t h"},
		"a granted one at an unknown node":  {nil, Ticket{ID: asks.ID, UID: "t", Version: "1", Type: TypeManual, Node: "m", Phase: TicketGranted}, "#t"},
		"a doubt of no ticket":              {nil, TicketInDoubt{ID: asks.ID, UID: "t"}, ""},
		"a doubt of another ticket":         {[]Event{asks}, TicketInDoubt{ID: asks.ID, UID: "u"}, ""},
		"a doubt of a granted one":          {[]Event{granted}, TicketInDoubt{ID: asks.ID, UID: "t"}, ""},
		"a ticket that is released":         {[]Event{pv("1", is), claim, granted}, TicketReleased{ID: asks.ID, UID: "t"}, "#t @n h"},
		"an attachment":                     {[]Event{proofNode("n", "1")}, proofAttachment(v, "n", "a", "1"), "@n h"},
		"an attachment that changes":        {[]Event{proofNode("n", "1"), proofAttachment(v, "n", "a", "1")}, proofAttachment(v, "n", "a", "2"), "h"},
		"an attachment that is gone":        {[]Event{proofNode("n", "1"), proofAttachment(v, "n", "a", "1")}, AttachmentGone{AttachmentName(v, "n")}, "@n h"},
		"an attachment placed by its name":  {append(bound, HoldSeen{VolumeID{"disk", "unknown"}, Hold{Version: "1", Node: "n"}}), forUnknown, "@n h unknown"},
		"an attachment of an unknown disk":  {append(bound, Complete{}), forUnknown, unknownSource("disk", forUnknown.Name).Handle + " @n h"},
		"an attachment of one before":       {[]Event{pv("1", is), proofNode("n", "1"), made, another}, AttachmentGone{made.Name}, "@n h i"},
		"an attachment for another's":       {[]Event{proofNode("n", "1"), HoldSeen{v, Hold{Version: "1", Node: "n"}}, another}, made, "@n h i"},
		"a node":                            {bound, node(same), "@n h"},
		"a node as before":                  {append(bound, proofNode("n", "1")), node(same), ""},
		"a node that is not Ready":          {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.Ready = ReadyUnknown }), "@n h"},
		"a node that is out of service":     {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.OutOfService = true }), "@n h"},
		"a node that is not managed":        {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.Managed = false }), "@n h"},
		"a node that is drained":            {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.Draining = true }), "@n h"},
		"a node that says its boot":         {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.BootID = "b" }), "@n h"},
		"a node with labels":                {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.Labels = map[string]string{"zone": "a"} }), "@n"},
		"a node that mounts by label":       {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.SELinuxMount = true }), "@n"},
		"a node that lists it":              {append(bound, proofNode("n", "1")), node(func(n *NodeState) { n.Reported = []VolumeID{v} }), "h"},
		"a node that lists another no more": {append(bound, lists("1", VolumeID{"disk", "i"})), lists("5"), "@n i"},
		"a creation that was never sent":    {bound, AttachResolved{Volume: v, Node: "n"}, ""},
		"a node without another volume":     {append(bound, proofNode("n", "1"), HoldSeen{VolumeID{"disk", "i"}, Hold{Version: "1", Node: "m"}}), NodeGone{"n"}, "@n h"},
		"a node that is gone":               {append(bound, proofNode("n", "1")), NodeGone{"n"}, "@n h"},
		"a node that was never there":       {bound, NodeGone{"m"}, ""},
		"a node's drivers":                  {bound, drivers, "@n h"},
		"a node's drivers that are gone":    {append(bound, drivers), NodeDriversGone{"n"}, "@n h"},
		"drivers that were never there":     {bound, NodeDriversGone{"m"}, ""},
		"a policy":                          {bound, policy, "$rule h"},
		"a policy for another driver":       {bound, Policy{Name: "rule", Version: "1", Driver: "other"}, "$rule"},
		"a policy that moves":               {append(bound, policy), Policy{Name: "rule", Version: "2", Driver: "other"}, "$rule h"},
		"an older policy":                   {append(bound, Policy{Name: "rule", Version: "2", Driver: "disk"}), policy, ""},
		"a policy that is gone":             {append(bound, policy), PolicyGone{"rule"}, "$rule h"},
		"a driver that attaches":            {bound, Driver{Name: "disk", Version: "1", AttachRequired: true}, ""},
		"a driver that does not":            {bound, Driver{Name: "disk", Version: "1"}, "h"},
		"a driver that did not, and goes":   {append(bound, Driver{Name: "disk", Version: "1"}), DriverGone{"disk"}, "h"},
		"a driver that attached, and goes":  {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true}), DriverGone{"disk"}, ""},
		"a driver that does no longer":      {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true}), Driver{Name: "disk", Version: "2"}, "h"},
		"a driver that mounts by label":     {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true}), Driver{Name: "disk", Version: "2", AttachRequired: true, SELinuxMount: true}, "h"},
		"a new one that does":               {bound, Driver{Name: "disk", Version: "1", AttachRequired: true, SELinuxMount: true}, "h"},
		"one that does no longer":           {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true, SELinuxMount: true}), Driver{Name: "disk", Version: "2", AttachRequired: true}, "h"},
		"one that did, and goes":            {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true, SELinuxMount: true}), DriverGone{"disk"}, "h"},
		"one as before":                     {append(bound, Driver{Name: "disk", Version: "1", AttachRequired: true, SELinuxMount: true}), Driver{Name: "disk", Version: "2", AttachRequired: true, SELinuxMount: true}, ""},
		"a driver, and who waits for it":    {[]Event{unbound, fast, asks}, Driver{Name: "disk", Version: "1", AttachRequired: true}, waits + " #t"},
		"a refusal for want of room":        {[]Event{proofNode("n", "1")}, Attachment{Name: "a", UID: "a", Version: "1", Driver: "disk", Node: "n", Inline: v, AttachError: CallError{Code: ResourceExhausted}}, "@n h"},
		"a ticket that waits for slots now": {[]Event{pv("1", is), claim, Ticket{ID: asks.ID, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: asks.Volumes}}, Ticket{ID: asks.ID, UID: "t", Version: "2", Type: TypeManual, Node: "n", Volumes: asks.Volumes, Reason: "HeldElsewhere"}, "#t @n h"},
	} {
		l := New()
		for _, e := range test.before {
			l.Apply(start, e)
		}
		l.Snapshot()
		if got := touchedText(l.Apply(start, test.event)); got != test.want {
			t.Errorf("%s touches %q, want %q", name, got, test.want)
		}
	}
}

// Missing evidence frees nothing.
func TestWherePodsLead(t *testing.T) {
	one, two, asked := VolumeID{"d", "1"}, VolumeID{"d", "2"}, UnboundClaim("d", "a")
	none := VolumeID{}
	for _, test := range []struct {
		is   VolumeID
		link Link
		was  VolumeID
		want VolumeID
	}{
		{one, LinkVolume, none, one}, {one, LinkVolume, two, one}, {one, LinkVolume, asked, one},
		{none, LinkNone, one, none}, {none, LinkNone, asked, none},
		{none, LinkMissing, one, one}, {none, LinkMissing, asked, none}, {none, LinkMissing, none, none},
		{none, LinkUnbound, one, one}, {none, LinkUnbound, asked, asked}, {none, LinkUnseen, asked, asked}, {none, LinkLost, asked, none}, {none, LinkOutside, asked, none},
		{asked, LinkUnbound, none, asked}, {asked, LinkUnbound, one, one}, {UnboundClaim("d", "b"), LinkUnbound, asked, UnboundClaim("d", "b")},
	} {
		if got := resolveOnce(test.is, test.link, test.was); got != test.want {
			t.Errorf("%s (%s) after %s: %s, want %s", test.is, test.link, test.was, got, test.want)
		}
	}
}

// By name, and by UID if both have one.
func TestAnothersVolume(t *testing.T) {
	key, other := ClaimKey{Namespace: "ns", Name: "data"}, ClaimKey{Namespace: "ns", Name: "other"}
	for _, test := range []struct {
		pv   PersistentVolume
		uid  string
		want bool
	}{
		{PersistentVolume{}, "c", false},
		{PersistentVolume{Claim: key}, "c", false},
		{PersistentVolume{Claim: other}, "c", true},
		{PersistentVolume{Claim: key, ClaimUID: "c"}, "c", false},
		{PersistentVolume{Claim: key, ClaimUID: "d"}, "c", true},
		{PersistentVolume{Claim: key, ClaimUID: "d"}, "", false},
		{PersistentVolume{Claim: key}, "", false},
	} {
		if got := test.pv.IsAnothers(Claim{Key: key, UID: test.uid}); got != test.want {
			t.Errorf("%+v is another's than of %q: %t", test.pv, test.uid, got)
		}
	}
}

func TestPolicyClasses(t *testing.T) {
	l := New()
	for _, p := range []Policy{
		{Name: "all", Version: "1", Driver: "disk"}, {Name: "a", Version: "1", Driver: "disk", Class: "fast"}, {Name: "b", Version: "1", Driver: "disk", Class: "slow"},
		{Name: "c", Version: "1", Driver: "other", Class: "odd"},
	} {
		l.Apply(start, p)
	}
	s := l.Snapshot()
	if got := slices.Sorted(s.PolicyClasses("disk")); !slices.Equal(got, []string{"fast", "slow"}) {
		t.Errorf("classes %q", got)
	}
	heard := 0
	for range s.PolicyClasses("disk") {
		heard++
		break
	}
	if heard != 1 {
		t.Errorf("heard %d times", heard)
	}
}

func TestValidTerms(t *testing.T) {
	label := func(op NodeOperator, values ...string) NodeTerm {
		return NodeTerm{Labels: []NodeRequirement{{"zone", op, values}}}
	}
	field := func(op NodeOperator, values ...string) NodeTerm {
		return NodeTerm{Fields: []NodeRequirement{{"metadata.name", op, values}}}
	}
	for _, test := range []struct {
		term NodeTerm
		want bool
	}{
		{NodeTerm{}, false},
		{label(NodeIn), false}, {label(NodeIn, "a"), true}, {label(NodeIn, "a", "b"), true}, {label(NodeNotIn), false}, {label(NodeNotIn, "a"), true},
		{label(NodeExists), true}, {label(NodeExists, "a"), false}, {label(NodeDoesNotExist), true}, {label(NodeDoesNotExist, "a"), false},
		{label(NodeGt, "1"), true}, {label(NodeGt), false}, {label(NodeGt, "1", "2"), false}, {label(NodeGt, "a"), false}, {label(NodeLt, "1"), true}, {label(NodeLt, "a"), false},
		{label('?', "a"), false}, {label(NodeIn, "a b"), false},
		{field(NodeIn, "a"), true}, {field(NodeNotIn, "a"), true}, {field(NodeIn), false}, {field(NodeIn, "a", "b"), false}, {field(NodeExists), false}, {field(NodeExists, "a"), false}, {field(NodeGt, "1"), false},
		{NodeTerm{Labels: label(NodeExists).Labels, Fields: field(NodeIn, "a").Fields}, true}, {NodeTerm{Labels: label(NodeExists, "a").Labels, Fields: field(NodeIn, "a").Fields}, false},
		{NodeTerm{Labels: label(NodeExists).Labels, Fields: field(NodeGt, "1").Fields}, false},
	} {
		if got := test.term.valid(); got != test.want {
			t.Errorf("%+v: %t", test.term, got)
		}
	}
}

func TestListedHoldsEnd(t *testing.T) {
	l, v := New(), VolumeID{"disk", "h"}
	at := driverNode{"disk", "n"}
	listed := func() bool { return l.facts.unmatched.get(at) != nil }
	for i, test := range []struct {
		event Event
		want  bool
	}{
		{HoldSeen{v, Hold{Version: "1", Node: "n"}}, true},
		{HoldSeen{v, Hold{Version: "2", Node: "n"}}, true},
		{proofAttachment(v, "n", "a", "1"), false},
		{AttachmentGone{AttachmentName(v, "n")}, true},
		{HoldSeen{v, Hold{Version: "3", Node: "m"}}, false},
		{HoldSeen{v, Hold{Version: "4", Node: "n"}}, true},
		{HoldGone{Volume: v}, false},
	} {
		if l.Apply(start, test.event); listed() != test.want {
			t.Errorf("event %d: listed: %t", i, listed())
		}
	}
}

func TestAnotherMachineIsTouched(t *testing.T) {
	v := VolumeID{"disk", "h"}
	first := proofNode("n", "1")
	first.Ready, first.ReadySince, first.SystemUUID, first.ProviderID, first.BootID = ReadyUnknown, 1, "m", "p", "b"
	for name, test := range map[string]struct {
		change func(*NodeState)
		want   bool
	}{
		"nothing":                   {func(*NodeState) {}, false},
		"its systemUUID":            {func(n *NodeState) { n.SystemUUID = "other" }, true},
		"its providerID":            {func(n *NodeState) { n.ProviderID = "other" }, true},
		"its boot":                  {func(n *NodeState) { n.BootID = "other" }, true},
		"it lists what it did list": {func(n *NodeState) { n.InUse = nil }, false},
	} {
		l := New()
		l.Apply(start, first)
		l.Apply(start, proofAttachment(v, "n", "a", "1"))
		next := first
		next.Version = "2"
		test.change(&next)
		if got := slices.Contains(l.Apply(start, next).Volumes, v); got != test.want {
			t.Errorf("%s: touched: %t", name, got)
		}
	}
}
