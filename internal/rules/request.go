// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Request is what somebody asks for: volumes, all at one node.
type Request struct {
	Who     ledger.Requester
	Type    ledger.TicketType // of the ticket; empty: a pod asks
	Created int64             // for order among equals
	// Pod is the UID of the pod that asks, or Ticket the ticket.
	Pod    string
	Ticket ledger.TicketID
	// Parameters say how the volumes are to be attached; empty: as pods have them.
	Parameters string
	Needs      []Need // one for each volume, however often it is named
}

// Need is one volume of a request.
type Need struct {
	Name   string // the claim's or the pod volume's, for people
	Volume ledger.VolumeID
	Link   ledger.Link
	Claim  *ledger.Claim // nil for inline volumes and unclaimed PersistentVolumes
	Bound  bool          // only a bound claim will do: nobody but a pod waits for its first consumer
	Access ledger.Access // the claim's or the inline volume's own, which counts until the volume is known
	// SELinux is the label with which a kubelet mounts the volume for the pod that asks; unknown
	// where a ticket does.
	SELinux ledger.SELinux
}

// PodRequest makes the request of a pod, which need not be in the snapshot.
func PodRequest(s ledger.Snapshot, p *ledger.Pod) Request {
	r := podAsks(p)
	for _, v := range p.Volumes {
		id, link := s.ResolvePod(p, v)
		need := Need{Name: v.Name, Volume: id, Link: link, Access: v.Access, SELinux: v.SELinux}
		if v.Claim != "" {
			need.Name = v.Claim
			need.Claim = s.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim})
		}
		r.need(need)
	}
	r.Needs = distinct(r.Needs)
	return r
}

// podAsks is the request of a pod without what it needs.
func podAsks(p *ledger.Pod) Request {
	return Request{
		Who:     ledger.Requester{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Created: p.Created,
		Pod:     p.UID,
	}
}

// ticketAsks is the request of a ticket without what it needs.
func ticketAsks(t *ledger.Ticket) Request {
	return Request{Who: ticketRequester(t), Type: t.Type, Created: t.Created, Ticket: t.ID, Parameters: t.Parameters}
}

// TicketRequest makes the request of a ticket.
func TicketRequest(s ledger.Snapshot, t *ledger.Ticket) Request {
	r := ticketAsks(t)
	for _, v := range t.Volumes {
		id, link := s.ResolveTicket(t, v)
		need := Need{Name: v.Claim + v.PersistentVolume, Volume: id, Link: link, Bound: true, SELinux: ledger.SELinuxUnknown}
		if v.Claim != "" {
			need.Claim = s.Claim(ledger.ClaimKey{Namespace: t.ID.Namespace, Name: v.Claim})
		}
		r.need(need)
	}
	r.Needs = distinct(r.Needs)
	return r
}

func (r *Request) need(n Need) {
	if n.Link.NeedsNone() {
		return
	}
	if n.Claim != nil {
		n.Access = n.Claim.Access
	}
	r.Needs = append(r.Needs, n)
}

// distinct drops the needs of a volume but the first.
func distinct(needs []Need) []Need {
	if len(needs) < 2 {
		return needs
	}
	first := make(map[ledger.VolumeID]struct{}, len(needs))
	return slices.DeleteFunc(needs, func(n Need) bool {
		_, known := first[n.Volume]
		first[n.Volume] = struct{}{}
		return known && !n.Volume.IsZero()
	})
}

// MaxVolumes is how many volumes one request may ask for: as many as a VolumeTicket lists
// (spec.volumes of its definition). A pod may have thousands inline, and each node that is
// looked at for it would cost as much.
const MaxVolumes = 256

// tooMany says whether a request asks for more volumes than it may.
func (r Request) tooMany(s ledger.Snapshot) []Reason {
	if len(r.Needs) <= MaxVolumes {
		return nil
	}
	asked := int32(0)
	for _, n := range r.Needs {
		if s.AttachRequired(n.Volume.Driver) {
			asked++
		}
	}
	if asked <= MaxVolumes {
		return nil
	}
	return []Reason{{Code: TooManyVolumes, Needed: asked, Limit: MaxVolumes}}
}

// Attachable says whether any need of the request may need an attachment, as one that
// leads to no driver yet may. A pod without one reserves nothing.
func (r Request) Attachable(s ledger.Snapshot) bool {
	for _, n := range r.Needs {
		if s.AttachRequired(n.Volume.Driver) {
			return true
		}
	}
	return false
}

// only is the request for one of its volumes.
func (r Request) only(need Need) Request {
	r.Needs = []Need{need}
	return r
}

// ofPod says whether a pod asks, and no ticket.
func (r Request) ofPod() bool { return r.Type == "" }

// priority orders requests: higher first.
func (r Request) priority() int {
	if r.ofPod() {
		return ledger.PodPriority
	}
	return r.Type.Priority()
}

// owns says whether u is the requester itself.
func (r Request) owns(u ledger.User) bool {
	if u.Pod != "" {
		return u.Pod == r.Pod
	}
	return u.Ticket == r.Ticket
}

// CompareRequests is the order in which requests are served: the higher priority
// first, then the older, then by namespace, name and UID. It is negative when a
// comes before b, and 0 only for two requests of one requester: no two others are
// alike. Each decision on requests uses this order, since decisions in two orders can
// refuse each for the sake of the other. Bound pods have an order of their own (compareBound).
func CompareRequests(a, b Request) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.Created, b.Created), compareRequesters(a.Who, b.Who))
}

// RanksBefore says whether a ticket ranks before a request.
func RanksBefore(t *ledger.Ticket, r Request) bool { return CompareRequests(ticketAsks(t), r) < 0 }
