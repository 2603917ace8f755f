// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// ManualName is the name of the ticket by which a PersistentVolume is attached
// to a node by hand: the same command finds it again.
func ManualName(persistentVolume, node string) string {
	digest := sha256.Sum256([]byte(persistentVolume + "\x00" + node))
	return "manual-" + hex.EncodeToString(digest[:10])
}

// ManualTicket is the ticket that asks for a PersistentVolume at a node. A
// claimed one is asked for by its claim, in the claim's namespace; one without
// a claim, or whose claim is gone, by an administrator, in Moorage's own.
func (w *World) ManualTicket(persistentVolume, node, ownNamespace string, ttlSeconds int64) (*v1alpha1.VolumeTicket, error) {
	if w.PersistentVolume(persistentVolume) == nil {
		return nil, fmt.Errorf("persistentvolumes %q not found", persistentVolume)
	}
	if w.Node(node) == nil && !w.unseen("nodes") {
		return nil, fmt.Errorf("nodes %q not found", node)
	}
	fact := w.Snapshot.PersistentVolume(persistentVolume)
	if fact == nil || fact.Volume.IsZero() || !w.Snapshot.AttachRequired(fact.Volume.Driver) {
		return nil, fmt.Errorf("persistentvolumes %q needs no attachment: any node may mount it", persistentVolume)
	}
	namespace, volume := ownNamespace, v1alpha1.TicketVolume{PersistentVolume: persistentVolume}
	if key, uid, ok := w.claimedBy(fact); ok {
		namespace, volume = key.Namespace, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: key.Name, UID: types.UID(uid)}}
	}
	return manualTicket(namespace, persistentVolume, node, volume, ttlSeconds), nil
}

// ManualTicketOf is ManualTicket for who may read a claim, and not its PersistentVolume.
func ManualTicketOf(c *corev1.PersistentVolumeClaim, node string, ttlSeconds int64) *v1alpha1.VolumeTicket {
	return manualTicket(c.Namespace, c.Spec.VolumeName, node, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: c.Name, UID: c.UID}}, ttlSeconds)
}

func manualTicket(namespace, persistentVolume, node string, volume v1alpha1.TicketVolume, ttlSeconds int64) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ManualName(persistentVolume, node)},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketType(ledger.TypeManual), NodeName: node, TTLSeconds: &ttlSeconds,
			Volumes: []v1alpha1.TicketVolume{volume}},
	}
}

// ManualOf are the tickets of type Manual that ask for a claim's volume at a node, and the pods there that use it: of the
// claim's own namespace, for who may read nothing else.
func (w *World) ManualOf(c *corev1.PersistentVolumeClaim, node string) (tickets, pods []Requester) {
	for _, t := range w.Tickets {
		names := func(v v1alpha1.TicketVolume) bool { return v.Claim != nil && v.Claim.Name == c.Name }
		if t.Namespace == c.Namespace && t.Spec.Type == v1alpha1.TicketManual && t.Node() == node && slices.ContainsFunc(t.Spec.Volumes, names) {
			tickets = append(tickets, Requester{Kind: string(v1alpha1.TicketKindVolumeTicket), Namespace: t.Namespace, Name: t.Name})
		}
	}
	for _, p := range w.UsersOf(c) {
		if p.Spec.NodeName == node && w.PodFact(p).Phase != ledger.PodFinished {
			pods = append(pods, Requester{Kind: string(v1alpha1.TicketKindPod), Namespace: p.Namespace, Name: p.Name})
		}
	}
	return tickets, pods
}

// claimedBy is the claim by which a ticket may name a PersistentVolume, and the claim's UID: one that
// exists and that the volume is bound to. The claimRef of a Released volume names a claim that is gone,
// or is another one by now. Where claims may not be listed, it is the claim that the volume names.
func (w *World) claimedBy(pv *ledger.PersistentVolume) (ledger.ClaimKey, string, bool) {
	if w.partUnseen("persistentvolumeclaims") {
		return pv.Claim, pv.ClaimUID, pv.Claim != (ledger.ClaimKey{})
	}
	c := w.Snapshot.Claim(pv.Claim)
	if c == nil || !c.Bound || c.Lost || c.PersistentVolume != pv.Name || pv.IsAnothers(*c) {
		return ledger.ClaimKey{}, "", false
	}
	return c.Key, c.UID, true
}

// Refuses says what keeps a ticket that is not written yet from its node; none
// when it would be granted.
func (w *World) Refuses(t *v1alpha1.VolumeTicket) []Reason {
	fact := translate.Ticket(t)
	fact.Created = w.Now.Unix()
	verdict := w.Arbiter.Fit(w.Snapshot, arbiter.TicketRequest(w.Snapshot, &fact), fact.Node, w.Now)
	return w.reasonsIn(t.Namespace, verdict, nil)
}

// TicketNow finds a ticket as it is now.
func (w *World) TicketNow(namespace, name string) (Ticket, bool) {
	for _, t := range w.Tickets {
		if t.Namespace == namespace && t.Name == name {
			return w.ticket(t, map[ledger.NodeName]*arbiter.Queue{}), true
		}
	}
	return Ticket{}, false
}

// At is a PersistentVolume at a node, and the manual tickets that hold
// it there.
type At struct {
	// There: anything binds the volume to the node.
	There      bool
	NodeVolume NodeVolume
	// OnlyWanted: somebody wants it there, and it is not there yet.
	OnlyWanted bool
	// Manual are the tickets made by hand; Others is everybody else who uses it
	// there.
	Manual []Requester
	Others []User
	// Reason is why it does not leave though nobody wants it, if it is known.
	Reason *Reason
}

// At says who has a PersistentVolume at a node.
func (w *World) At(persistentVolume, node string) (At, error) {
	if w.PersistentVolume(persistentVolume) == nil {
		return At{}, fmt.Errorf("persistentvolumes %q not found", persistentVolume)
	}
	var out At
	fact := w.Snapshot.PersistentVolume(persistentVolume)
	if fact == nil {
		return out, nil
	}
	volume := w.Volume(fact.Volume)
	for _, p := range volume.Nodes {
		if p.Node != node {
			continue
		}
		out.There, out.NodeVolume, out.OnlyWanted = true, p, p.State == stateAsked
		for _, u := range p.Users {
			if t := w.Snapshot.Ticket(ledger.TicketID{Namespace: u.Namespace, Name: u.Name}); t != nil && t.Type == ledger.TypeManual {
				out.Manual = append(out.Manual, u.Requester)
			} else {
				out.Others = append(out.Others, u)
			}
		}
		if volume.Reason != nil && volume.Reason.Node == node {
			out.Reason = volume.Reason
		}
	}
	return out, nil
}
