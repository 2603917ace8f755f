// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const saidAgain = "a node says what it did"

func noise() map[string][]ledger.Event {
	far := diskOf("far.example.com", "far", ledger.AccessNode)
	farAttachment := ledger.Attachment{Name: "csi-far", UID: "far", Driver: "far.example.com", Node: "n1", PersistentVolume: "pv-far", Attached: true, Ours: true}
	user := boundTo(podWith("user", "far"), "n1")
	asks := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "far-asks"}, UID: "t-asks", Type: ledger.TypeManual, Node: "n2",
		Volumes: []ledger.TicketVolume{{Claim: "far"}},
	}
	granted := asks
	granted.Phase = ledger.TicketGranted
	return map[string][]ledger.Event{
		"another claim comes and goes":            all(disk("noise", ledger.AccessNode), one(ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "shop", Name: "noise"}})),
		"the claim's name in another namespace":   one(ledger.Claim{Key: ledger.ClaimKey{Namespace: "else", Name: "data"}, UID: "theirs", Bound: true, PersistentVolume: "pv-noise"}),
		"a volume of another driver is attached":  all(far, one(farAttachment)),
		"and detached":                            all(far, one(farAttachment, ledger.AttachmentGone{Name: farAttachment.Name})),
		"a pod of another driver comes and goes":  all(far, one(factOf(user), ledger.PodGone{UID: string(user.UID)})),
		"a ticket of another driver":              all(far, one(asks, granted, ledger.TicketGone{ID: asks.ID})),
		"a policy of another driver":              one(ledger.Policy{Name: "far", Driver: "far.example.com", Headroom: 1}),
		"a class of another name":                 one(ledger.StorageClass{Name: "far", Driver: "far.example.com", WaitForFirst: true}),
		"a slot is taken that nobody waits for":   all(disk("more", ledger.AccessNode), one(attached("more", "n1"))),
		"a pod of the driver comes where it runs": all(disk("a", ledger.AccessMany), one(factOf(boundTo(podWith("another", "a"), "n1")))),
		"a driver is set up that nobody asks for": one(ledger.Driver{Name: "far.example.com", AttachRequired: true}),
		saidAgain:     one(readyNode("n1")),
		"a node goes": one(ledger.NodeDriversGone{Node: "n2"}),
	}
}

func TestNoiseWakesNobody(t *testing.T) {
	for _, l := range lifts() {
		for name, events := range noise() {
			t.Run(string(l.code)+" "+name, func(t *testing.T) {
				r := newStillRig(t, l.world...)
				close(r.synced)
				pod := podWith("p", "data")
				r.known(pod)
				if r.plugin.PreEnqueue(t.Context(), pod).IsSuccess() {
					r.refused(pod, l.code)
				}
				r.plugin.core.requeuer.Look(t.Context())
				r.queue.reset()
				if said := r.Snapshot().Node("n1"); name == saidAgain && said != nil && said.Exists {
					events = one(said.NodeState)
				}
				for _, e := range events {
					r.apply(e)
					r.plugin.core.requeuer.Look(t.Context())
				}
				if got := r.queue.names(); len(got) != 0 {
					t.Errorf("woken are %v", got)
				}
				r.apply(l.event...)
				r.plugin.core.requeuer.Look(t.Context())
				if got := r.queue.names(); name != "a node goes" && len(got) != 1 {
					t.Errorf("and what lifts it wakes %v", got)
				}
			})
		}
	}
}
