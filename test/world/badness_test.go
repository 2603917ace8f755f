// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestVanishedVolume(t *testing.T) {
	w, k := running(t)
	if !w.Vanish("pv1") || w.Vanish("pv1") {
		t.Fatal("it vanishes once")
	}
	again := ledger.ClaimKey{Namespace: "ns", Name: "c2"}
	if claim, _ := w.Get(Claims, "ns/c1").(ledger.Claim); !claim.Lost || claim.Bound || !w.Exclusive(disk) || !k.Machine().Uses(disk) {
		t.Errorf("the claim is %+v", claim)
	}
	if !w.Import("pv1", "pv2", again) || w.Import("pv3", "pv4", again) {
		t.Fatal("it is not imported, or what never was is")
	}
	w.Serve(Request{Do: CreateAttachment, Fact: ledger.Attachment{
		Name: ledger.AttachmentName(disk, "w2"), Driver: disk.Driver, Node: "w2", PersistentVolume: "pv2", NodeID: "w2#1", Ours: true,
	}})
	w.Publish(disk, "w2#1")
	faults(t, w, 2) // two VolumeAttachments, and two machines
}

func TestRefusals(t *testing.T) {
	w, _ := running(t)
	name := ledger.AttachmentName(disk, "w1")
	for _, r := range []Refusal{{RefusedAttachments, name}, {What: RefusedAttachments}} {
		w.Refuse(r)
		if a := w.Serve(Request{Do: DropAttachment, Key: name}); a.Code != Forbidden {
			t.Errorf("%s: %s", r, a.Code)
		}
		if !w.RefusedFor(disk, "w2") {
			t.Errorf("%s does not excuse that the volume does not come to w2", r)
		}
		if parsed, ok := ParseRefusal(r.String()); !ok || parsed != r {
			t.Errorf("%s is read as %s", r, parsed)
		}
		w.Accept(r)
	}
	w.Refuse(Refusal{RefusedAttachments, "another"})
	if w.RefusedFor(disk, "w2") {
		t.Error("a rule about another one excuses this one")
	}
	for _, test := range []struct {
		rule Refusal
		Request
	}{
		{Refusal{What: RefusedAttachments}, Request{Do: CreateAttachment, Fact: ledger.Attachment{Name: "va"}}},
		{Refusal{RefusedTickets, "ns/t"}, Request{Do: DecideTicket, Key: "ns/t"}},
		{Refusal{RefusedNodes, "w1"}, Request{Do: PatchNode, Node: "w1"}},
	} {
		c := w.Clone()
		c.Refuse(test.rule)
		if a := c.Serve(test.Request); a.Code != Forbidden {
			t.Errorf("%s: %s", test.rule, a.Code)
		}
	}
	if a := w.Serve(Request{Do: DropAttachment, Key: name}); a.Code != OK {
		t.Errorf("after all: %s", a.Code)
	}
}
