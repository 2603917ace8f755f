// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strconv"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// bindRequest is a scheduler's request to whoever leads: bind this pod to this node. It
// may be lost on its way, and its answer, too.
type bindRequest struct {
	from        *scheduler
	incarnation int
	number      int
	pod         string
	node        ledger.NodeName
	version     string
	taken       bool // somebody who leads has got it
	lost        bool // on its way there, or its answer
	deaf        bool // its sender does not wait any more
	answer      bindAnswer
}

// bindAnswer is what came of a bindRequest.
type bindAnswer uint8

const (
	unanswered bindAnswer = iota
	isBound
	useTicket // it is not bound, and will not be
)

func (b *bindRequest) id() string { return b.pod + " " + strconv.Itoa(b.number) }

func (s *Sim) bindRequest(id string) *bindRequest {
	i := slices.IndexFunc(s.asked, func(b *bindRequest) bool { return b.id() == id })
	if i < 0 {
		return nil
	}
	return s.asked[i]
}

// sweepRequests forgets those of which nothing more will come.
func (s *Sim) sweepRequests() {
	s.moved++
	s.asked = slices.DeleteFunc(s.asked, func(b *bindRequest) bool {
		return (b.deaf || b.incarnation != b.from.incarnation) && (b.answer != unanswered || b.lost)
	})
}

// ask sends the request to bind a pod that is reserved.
func (k *scheduler) ask(r *reservation, version string) {
	r.stage = asking
	k.requests++
	r.request = &bindRequest{
		from: k, incarnation: k.incarnation, number: k.requests, pod: r.ticket.Pod, node: r.ticket.Node, version: version,
	}
	k.s.asked = append(k.s.asked, r.request)
	k.s.moved++
}

// heard takes in the answer to a request, or that there will be none.
func (k *scheduler) heard(r *reservation) {
	b := r.request
	r.request, b.deaf = nil, true
	k.s.sweepRequests()
	switch b.answer {
	case isBound:
		r.stage = bound
	case useTicket:
		k.create(r)
	default: // it may still be on its way, and be carried out
		r.unsure = true
		k.unheard(r)
	}
}

// unheard reads the pod of a request without an answer: one that is not bound gets a ticket
// for the same node.
func (k *scheduler) unheard(r *reservation) {
	r.stage = writing
	k.readPod(r, func(p *ledger.Pod, known bool) {
		switch {
		case !known:
			k.unheard(r)
		case p == nil:
			k.withdraw(r)
		case p.Node != "":
			r.stage = bound
		default:
			k.create(r)
		}
	})
}

// readPod reads the pod of a reservation; nil: there is none.
func (k *scheduler) readPod(r *reservation, then func(p *ledger.Pod, known bool)) {
	read := world.Request{Do: world.GetObject, Kind: world.Pods, Key: r.ticket.Pod}
	k.send("read "+r.ticket.Pod, read, func(a world.Answer, err error) {
		if err != nil {
			then(nil, false)
			return
		}
		if a.Code == world.NotFound {
			then(nil, true)
			return
		}
		k.observer.saw(a.Facts...)
		p, ok := a.Facts[0].(ledger.Pod)
		then(&p, ok)
	})
}

// fence keeps a bind that nobody has heard of from having its effect, before the ticket of
// its pod is withdrawn.
func (k *scheduler) fence(r *reservation) {
	k.readPod(r, func(p *ledger.Pod, known bool) {
		switch {
		case !known:
			k.fence(r)
		case p == nil:
			r.unsure = false
			k.withdraw(r)
		case p.Node != "":
			r.stage = bound
		default:
			fence := world.Request{Do: world.FencePod, UID: p.UID, Version: p.Version}
			k.send("fence "+p.UID, fence, func(a world.Answer, err error) {
				if err != nil || a.Code != world.OK {
					k.fence(r)
					return
				}
				r.unsure = false
				k.withdraw(r)
			})
		}
	})
}
