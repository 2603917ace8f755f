// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

// anything makes facts that need not be consistent, from a few names so that they meet. An API server would
// not hold them, but an old cache might.
type anything struct {
	rest    []byte
	version int
}

func (g *anything) below(n int) int {
	if len(g.rest) == 0 {
		return 0
	}
	x := int(g.rest[0]) % n
	g.rest = g.rest[1:]
	return x
}

func (g *anything) flag() bool { return g.below(2) == 0 }

func (g *anything) name(prefix string, n int) string { return prefix + strconv.Itoa(g.below(n)) }

func (g *anything) node() ledger.NodeName { return ledger.NodeName(g.name("n", 3)) }

func (g *anything) volume() ledger.VolumeID {
	return ledger.VolumeID{Driver: []string{"disk", "", "kubernetes.io/fc"}[g.below(3)], Handle: g.name("h", 3)}
}

func (g *anything) key() ledger.ClaimKey {
	return ledger.ClaimKey{Namespace: namespace, Name: g.name("c", 3)}
}

func (g *anything) event() ledger.Event {
	g.version++
	v := strconv.Itoa(g.version)
	switch g.below(12) {
	case 0:
		return ledger.Pod{
			UID: g.name("p", 3), Version: v, Namespace: namespace, Name: "p", Node: g.node(), Phase: ledger.PodPhase(g.below(3)),
			Volumes: []ledger.PodVolume{{Name: "v", Claim: g.key().Name}, {Name: "i", Inline: g.volume(), Access: ledger.Access(g.below(6))}},
		}
	case 1:
		return g.ticket(v)
	case 2:
		return ledger.Claim{Key: g.key(), UID: g.name("u", 2), Version: v, Bound: g.flag(), PersistentVolume: g.name("pv", 3), Class: "k", Lost: g.flag()}
	case 3:
		return ledger.PersistentVolume{Name: g.name("pv", 3), Version: v, Volume: g.volume(), Access: ledger.Access(g.below(6)), Deleting: g.flag()}
	case 4, 5:
		a := ledger.Attachment{
			Name: g.name("a", 3), UID: g.name("u", 2), Version: v, Driver: "disk", Node: g.node(), PersistentVolume: g.name("pv", 3),
			Attached: g.flag(), Deleting: g.flag(), NodeID: g.name("i", 2),
		}
		if g.flag() {
			a.Name = ledger.AttachmentName(g.volume(), a.Node)
		}
		return a
	case 6, 7:
		return ledger.NodeState{
			Name: g.node(), UID: g.name("u", 2), Version: v, Ready: ledger.Readiness(g.below(3)), OutOfService: g.flag(), Managed: g.flag(),
			Reporting: g.flag(), Draining: g.flag(), InUse: []ledger.VolumeID{g.volume()}, Reported: []ledger.VolumeID{g.volume()},
		}
	case 8:
		return ledger.NodeDrivers{Node: g.node(), Version: v, Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: g.name("i", 2), Limit: int32(g.below(4)) - 1}}}
	case 9:
		return ledger.HoldSeen{Volume: g.volume(), Hold: ledger.Hold{
			Version: v, Node: g.node(), Next: ledger.Promise{Node: g.node()}, Force: &ledger.Force{Rule: rules.AfterPodGone, Node: g.node(), Elapsed: time.Minute},
		}}
	case 10:
		return []ledger.Event{
			ledger.PodGone{UID: g.name("p", 3)}, ledger.TicketGone{ID: ledger.TicketID{Namespace: namespace, Name: g.name("p", 3)}},
			ledger.ClaimGone{Key: g.key()}, ledger.PersistentVolumeGone{Name: g.name("pv", 3)}, ledger.NodeGone{Name: g.node()},
			ledger.AttachmentGone{Name: g.name("a", 3)}, ledger.HoldGone{Volume: g.volume()}, ledger.NodeDriversGone{Node: g.node()},
		}[g.below(8)]
	}
	minutes := time.Duration(g.below(9)) * time.Minute
	odd := minutes + time.Second/2
	return ledger.Policy{
		Name: g.name("y", 2), Version: v, Driver: "disk", DetachDelay: minutes, AfterPodGone: &odd, AfterUnreachable: &minutes, LiveMigration: g.flag(),
	}
}

func (g *anything) ticket(version string) ledger.Ticket {
	types := []ledger.TicketType{"Pod", ledger.TypeManual, ledger.TypeSnapshot, ledger.TypeLiveMigration, "Unheard"}
	pod := g.name("p", 3)
	return ledger.Ticket{
		ID: ledger.TicketID{Namespace: namespace, Name: pod}, UID: g.name("u", 2), Version: version, Type: types[g.below(5)], Node: g.node(),
		Phase:   ledger.TicketPhase(g.below(2)),
		Volumes: []ledger.TicketVolume{{Claim: g.key().Name}, {PersistentVolume: g.name("pv", 3)}, {}},
	}
}

// decideAll asks every question about everything. Planned steps must be possible.
func decideAll(t failer, a rules.Arbiter, s ledger.Snapshot, now time.Time) {
	t.Helper()
	for v := range s.Volumes() {
		for _, step := range a.Plan(s, v.ID, now).Steps {
			checkStep(t, step)
			if a.Cooperative && step.Kind >= rules.Report && step.Kind != rules.ProveAbsent { // a read
				t.Fatalf("in Cooperative mode node status and detaches are the other controller's: %+v", step)
			}
		}
		for i := range v.OnNodes {
			a.SafeToDetach(s, v, &v.OnNodes[i], now)
		}
	}
	var nodes []ledger.NodeName
	for n := range s.Nodes() {
		nodes = append(nodes, n.Name)
	}
	for p := range s.Pods() {
		r := rules.PodRequest(s, p)
		a.Admissible(s, r)
		a.Nodes(s, r, now)
		for _, n := range append(nodes, "nowhere") {
			a.Fit(s, r, n, now)
			a.Rank(s, r, n, rules.Weights{})
			for _, need := range r.Needs {
				for _, reason := range a.Explain(s, need, n, now).Reasons {
					if reason.Message() == "" || reason.Message() == string(reason.Code) {
						t.Fatalf("reason %s has no words", reason.Code)
					}
				}
			}
		}
	}
	for k := range s.Tickets() {
		a.Grant(s, k, now)
		a.Keeps(s, k, now)
		a.Satisfied(s, k, now)
	}
	a.Audit(s, now)
	a.AuditAtRest(s, now)
}

func checkStep(t failer, s rules.Step) {
	t.Helper()
	ok := false
	switch s.Kind {
	case rules.WriteHold:
		ok = s.Expect == s.Hold.Version
		checkComesBack(t, s)
	case rules.DeleteHold:
		ok = s.Expect != ""
	case rules.CreateAttachment:
		ok = s.Node != "" && s.Attachment == ledger.AttachmentName(s.Volume, s.Node)
	case rules.Report:
		ok = s.Node != "" && s.NodeUID != ""
	case rules.Unreport:
		ok = s.Node != "" && (s.Rule == "" || s.NodeVersion != "" || s.NodeUID == "")
	case rules.ConfirmUnwanted, rules.DeleteAttachment, rules.MarkWanted, rules.RetryAttach:
		ok = s.Node != "" && s.Attachment != "" && s.UID != "" && s.Version != ""
	case rules.AskNode:
		ok = s.Node != "" && s.Word.UID != "" && s.Word.Version != ""
	case rules.RemovePod:
		ok = s.UID != ""
	case rules.ProveAbsent:
		ok = s.Node != ""
	case rules.FindAttachment:
		ok = s.Node != "" && s.Attachment != ""
	case rules.GetObject, rules.ListObjects, rules.ListPods, rules.ConfirmAttachment, rules.PatchNode, rules.DecideTicket, rules.DeleteTicket, rules.Kinds:
		// No step has these.
	}
	if !ok {
		t.Fatalf("a step that nobody can carry out: %+v", s)
	}
}

// checkComesBack checks that the API returns a hold as it was planned: otherwise it would be written again
// and again.
func checkComesBack(t failer, s rules.Step) {
	t.Helper()
	object := convert.HoldObject(convert.HoldContext{Volume: s.Volume}, s.Hold)
	if got := convert.Hold(object).Hold; !reflect.DeepEqual(got, s.Hold) {
		t.Fatalf("planned   %+v\ncomes back %+v", s.Hold, got)
	}
}

func playAnything(t failer, data []byte) {
	g, l, now := &anything{rest: data}, ledger.New(), time.Unix(1_700_000_000, 0)
	for len(g.rest) > 0 {
		now = now.Add(time.Duration(g.below(90)) * time.Second)
		l.Apply(now, g.event())
	}
	for _, a := range []rules.Arbiter{{}, {StayAttached: true}, {Cooperative: true}} {
		decideAll(t, a, l.Snapshot(), now)
		d := &ledger.Delta{}
		d.Remove("p0")
		d.Add("p1", "n1")
		decideAll(t, a, l.Snapshot().With(d), now)
	}
}

// TestAnything decides on inconsistent facts.
func TestAnything(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		playAnything(t, proptest.Bytes(t, 300))
	})
}

func FuzzAnything(f *testing.F) {
	f.Add([]byte{0, 3, 0, 0, 4, 1, 0, 2, 6, 0, 0, 9, 1, 10, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 {
			data = data[:1000]
		}
		playAnything(t, data)
	})
}
