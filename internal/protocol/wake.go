// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Users are the users that a change of a volume concerns: tickets that may now be granted or satisfied, and
// pods to tell, by UID, perhaps twice. nodes are where tickets only wait for a grant, each once: perhaps
// thousands.
func Users(s ledger.Snapshot, id ledger.VolumeID) (tickets []ledger.TicketID, pods []string, nodes []ledger.NodeName) {
	volume := s.Volume(id)
	if volume == nil {
		return nil, nil, nil
	}
	for i := range volume.OnNodes {
		waits := false
		for _, u := range volume.OnNodes[i].Users {
			if u.Pod == "" {
				t := s.Ticket(u.Ticket)
				if t != nil && t.Phase == ledger.TicketPending && !t.InDoubt {
					waits = true
					if t.Wherever {
						tickets = append(tickets, u.Ticket)
					}
					continue
				}
				tickets = append(tickets, u.Ticket)
				continue
			}
			pods = append(pods, u.Pod)
		}
		if waits {
			nodes = append(nodes, volume.OnNodes[i].Node)
		}
	}
	return tickets, pods, nodes
}

// Rivals are the nodes with waiting tickets that rank before a request and may keep it from a node.
func Rivals(s ledger.Snapshot, r rules.Request, n ledger.NodeName) []ledger.NodeName {
	var nodes []ledger.NodeName
	rival := func(id ledger.TicketID) bool {
		t := s.Ticket(id)
		return t != nil && t.Phase == ledger.TicketPending && rules.RanksBefore(t, r)
	}
	if node := s.Node(n); node != nil && slices.ContainsFunc(node.Tickets, rival) {
		nodes = append(nodes, n)
	}
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil {
			continue
		}
		for i := range v.OnNodes {
			at := &v.OnNodes[i]
			if !slices.Contains(nodes, at.Node) && slices.ContainsFunc(at.Users, func(u ledger.User) bool { return rival(u.Ticket) }) {
				nodes = append(nodes, at.Node)
			}
		}
	}
	return nodes
}

// Pending says whether a change of a node requires new decisions on its tickets.
func Pending(s ledger.Snapshot, n ledger.NodeName) bool {
	node := s.Node(n)
	return node != nil && len(node.Tickets) > 0
}

// EmptiedWith are the waiting tickets of a drained node that end or move for that.
func EmptiedWith(s ledger.Snapshot, n ledger.NodeName) []ledger.TicketID {
	node := s.Node(n)
	if node == nil || !node.Exists || !node.Draining {
		return nil
	}
	var list []ledger.TicketID
	for _, id := range node.Tickets {
		if t := s.Ticket(id); t != nil && t.OnDrain != ledger.StayOnDrain {
			list = append(list, id)
		}
	}
	return list
}

// Look lists the keys to check again.
type Look struct {
	Volumes []ledger.VolumeID // plan them
	Nodes   []ledger.NodeName // decide on their pending tickets
	Tickets []ledger.TicketID // their end, grant, satisfaction
	Pods    []string          // to tell, by UID
}

// Wake returns the keys to check after an event's touches.
func Wake(t ledger.Touched, s ledger.Snapshot) Look {
	look := Look{Volumes: slices.Clip(t.Volumes), Tickets: slices.Clip(t.Tickets), Pods: slices.Clip(t.Pods)}
	for _, v := range t.Volumes {
		tickets, pods, nodes := Users(s, v)
		look.Tickets = append(look.Tickets, tickets...)
		look.Pods = append(look.Pods, pods...)
		look.Nodes = append(look.Nodes, nodes...)
	}
	for _, n := range t.Nodes {
		if Pending(s, n) && !slices.Contains(look.Nodes, n) {
			look.Nodes = append(look.Nodes, n)
		}
		look.Volumes = append(look.Volumes, rules.Spare(s, n)...)
		for _, v := range rules.AwaitSlots(s, n) {
			if !slices.Contains(look.Volumes, v) {
				look.Volumes = append(look.Volumes, v)
			}
		}
		look.Tickets = append(look.Tickets, EmptiedWith(s, n)...)
	}
	return look
}
