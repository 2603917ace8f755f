// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Nobody may ever hear that a volume was put into volumesAttached: what was proved of it before is over when
// that is sent, whatever comes of it, and nothing may be deleted by it (simulator, seed 98076327).
func TestReportEndsProofs(t *testing.T) {
	p := newPlayer(attachment("5"), node("1"))
	p.play(t, Do(step(arbiter.Unreport)), replies(Done, node("2")))
	p.memory.confirmed.add("va")
	proof := func() ledger.ProofStage { return p.ledger.Snapshot().Volume(disk).NodeVolume("n1").Proof.Stage }
	if proof() != ledger.ProofUnreported {
		t.Fatal("nothing is proved: this test is about nothing")
	}
	check(t, p.play(t, Do(step(arbiter.Report)), replies(Unknown), replies(Unknown)),
		"tell ReportSent", "patch-node n1 add=true uid=n", "wait 20s", "get nodes n1", "failed")
	if is := proof(); is != ledger.ProofNone {
		t.Errorf("it is still %s", is)
	}
}
