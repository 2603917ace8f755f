// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Request asks for volumes, all at one node.
type Request struct {
	Who     ledger.Requester
	Type    ledger.TicketType // empty: a pod's request
	Created int64             // the order among equals
	// Pod is the requesting pod's UID, or Ticket is set.
	Pod    string
	Ticket ledger.TicketID
	// Parameters are attach parameters; empty: as for pods.
	Parameters string
	Needs      []Need // one per volume, even if named twice
}

// Need is one volume of a request.
type Need struct {
	Name   string // for messages
	Volume ledger.VolumeID
	Link   ledger.Link
	Claim  *ledger.Claim // nil for inline volumes and unclaimed PersistentVolumes
	Bound  bool          // only pods wait for a first consumer
	Access ledger.Access // until the volume is known
	// SELinux is the kubelet's mount label; unknown for a ticket.
	SELinux ledger.SELinux
}

// PodRequest makes the request of a pod, perhaps missing in the snapshot.
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

// podAsks is the request of a pod without its needs.
func podAsks(p *ledger.Pod) Request {
	return Request{
		Who:     ledger.Requester{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Created: p.Created,
		Pod:     p.UID,
	}
}

// ticketAsks is the request of a ticket without its needs.
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

// MaxVolumes limits one request, like a VolumeTicket's spec.volumes. A pod may have thousands inline, and
// each node's check would cost as much.
const MaxVolumes = 256

// tooMany says whether a request has more volumes than permitted.
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

// Attachable says whether a need may require an attachment, as a claim without a driver yet may. Otherwise
// a pod reserves nothing.
func (r Request) Attachable(s ledger.Snapshot) bool {
	for _, n := range r.Needs {
		if s.AttachRequired(n.Volume.Driver) {
			return true
		}
	}
	return false
}

func (r Request) only(need Need) Request {
	r.Needs = []Need{need}
	return r
}

func (r Request) ofPod() bool { return r.Type == "" }

// priority orders requests: higher first.
func (r Request) priority() int {
	if r.ofPod() {
		return ledger.PodPriority
	}
	return r.Type.Priority()
}

func (r Request) owns(u ledger.User) bool {
	if u.Pod != "" {
		return u.Pod == r.Pod
	}
	return u.Ticket == r.Ticket
}

// CompareRequests is the order of service: higher priority first, then older, then by namespace, name and
// UID. It is 0 only for one requester. All decisions use it, since two orders could refuse each request for
// the other. Bound pods have their own order (compareBound).
func CompareRequests(a, b Request) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.Created, b.Created), compareRequesters(a.Who, b.Who))
}

// RanksBefore says whether a ticket ranks before a request.
func RanksBefore(t *ledger.Ticket, r Request) bool { return CompareRequests(ticketAsks(t), r) < 0 }
