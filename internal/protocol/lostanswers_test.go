// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A volume may be in volumesAttached without an answer: its earlier proofs end when the report is sent,
// with any outcome, and permit no deletion (simulator, seed 98076327).
func TestReportEndsProofs(t *testing.T) {
	p := newPlayer(attachment("5"), node("1"))
	p.play(t, Do(step(rules.Unreport)), replies(Done, node("2")))
	p.memory.confirmed.add("va")
	proof := func() ledger.ProofStage { return p.ledger.Snapshot().Volume(disk).OnNode("n1").Proof.Stage }
	if proof() != ledger.ProofUnreported {
		t.Fatal("nothing is proved: this test is about nothing")
	}
	check(t, p.play(t, Do(step(rules.Report)), replies(Unknown), replies(Unknown)),
		"tell ReportSent", "patch-node n1 add=true uid=n", "wait 20s", "get nodes n1", "failed")
	if is := proof(); is != ledger.ProofNone {
		t.Errorf("it is still %s", is)
	}
}

var iscsi = ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "i"}

func iscsiPod(uid string, n ledger.NodeName) ledger.Pod {
	return ledger.Pod{UID: uid, Name: uid, Namespace: "ns", Version: "1", Node: n, Volumes: []ledger.PodVolume{{Name: "v", Claim: "i"}}}
}

// iscsiWorld is an exclusive volume without VolumeAttachments, and nodes n1 and n2.
func iscsiWorld(more ...ledger.Event) *player {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	return newPlayer(append([]ledger.Event{
		node("1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "m" }),
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessNode, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{},
	}, more...)...)
}

// reportedAt carries out the volume's plan until it is about to enter volumesAttached of a node, and says
// whether a request has proved before that it is not in n1's.
func (p *player) reportedAt(t *testing.T, n ledger.NodeName) (report rules.Step, proved bool) {
	t.Helper()
	for version := range 5 {
		for _, s := range (rules.Arbiter{}).Plan(p.ledger.Snapshot(), iscsi, p.now).Steps {
			switch {
			case s.Kind == rules.WriteHold:
				h := s.Hold
				h.Version = s.Expect + strconv.Itoa(version+1)
				p.play(t, Do(s), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: h}))
			case s.Kind == rules.Unreport || s.Kind == rules.ProveAbsent:
				return s, true
			case s.Kind == rules.Report && s.Node == n:
				return s, false
			}
		}
	}
	t.Fatalf("it is never put into volumesAttached of %s", n)
	return rules.Step{}, false
}

// The API server puts it into volumesAttached of n1; neither the answer nor the read after it arrives.
func TestLostReportWithoutAttachment(t *testing.T) {
	p := iscsiWorld(iscsiPod("p", "n1"))
	report, _ := p.reportedAt(t, "n1")
	p.play(t, Do(report), replies(Unknown), replies(Unknown))
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n2"))
	if _, proved := p.reportedAt(t, "n2"); !proved {
		t.Error("it is put into volumesAttached of n2, and that of n1 names it")
	}
}

// Nothing is lost: a new leader's watch of Nodes is behind the last leader's report at n1.
func TestOldNodeWithoutAttachment(t *testing.T) {
	p := iscsiWorld(iscsiPod("q", "n2"), ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{
		Version: "9", Node: "n1", NodeUID: "n", State: ledger.HoldHeld, Transitions: 1, PVs: []string{"i"}}})
	if _, proved := p.reportedAt(t, "n2"); !proved {
		t.Error("it is put into volumesAttached of n2, and no request has shown that n1 neither names nor uses it")
	}
}

// The hold says Stays; the write that takes that back is carried out without an answer. Then a user deletes
// the VolumeAttachment, and its detach fails: the attacher is not asked to leave the volume there by a hold
// that is due to be written again.
func TestLostHoldIsNotBelieved(t *testing.T) {
	for _, came := range []Result{Unknown, NotSent} { // for the write: it is written again in either case
		lostHoldIsNotBelieved(t, came)
	}
}

func lostHoldIsNotBelieved(t *testing.T, came Result) {
	t.Helper()
	a := rules.Arbiter{StayAttached: true}
	p := newPlayer(node("1", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }), pod("p", "n1", "a"), attachment("5"), ledger.Complete{},
		node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "m" }),
		ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}})
	holds := func() (h ledger.Hold, write *rules.Step) {
		for _, s := range a.Plan(p.ledger.Snapshot(), disk, p.now).Steps {
			if s.Kind == rules.WriteHold {
				h, write = s.Hold, &s
			}
		}
		return h, write
	}
	h, _ := holds()
	h.Version, h.Stays = "5", true
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: h})
	written, write := holds()
	if write == nil || written.Stays {
		t.Fatal("nothing takes it back: this test is about nothing")
	}
	p.play(t, Do(*write), replies(came))
	refuses := func(a *ledger.Attachment) { a.Deleting, a.DetachError = true, ledger.CallError{Message: "no"} }
	p.ledger.Apply(p.now, attachment("6", refuses))
	for _, s := range a.Plan(p.ledger.Snapshot(), disk, p.now).Steps {
		if s.Kind == rules.MarkWanted {
			t.Errorf("the attacher is told to leave the volume at n1 (%s), and the hold is about to say that it is not there", came)
		}
	}
}
