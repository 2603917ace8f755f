// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// graph gathers who waits for what.
type graph struct {
	view *View
	// linked are the pairs that an edge exists of: a pod names its volume, and the volume
	// names who waits for it.
	linked map[[2]string]bool
	// nodes are the view's, by reference. A ticket may name one that there is not.
	nodes map[string]bool
}

// mostNodeReasons bounds the edges of a pod that no node can take: nodes that say the same
// are one, and the first ones say what matters.
const mostNodeReasons = 3

func (g *graph) link(l Link) {
	if strings.HasPrefix(l.To, kindNode) && !g.nodes[l.To] {
		l.To = ""
	}
	if pair := [2]string{l.From, l.To}; l.To == "" || !g.linked[pair] {
		g.linked[pair] = true
		g.view.Links = append(g.view.Links, l)
	}
}

// because is an edge for a reason.
func (g *graph) because(from, to, how string, r *facts.Reason) {
	g.link(Link{From: from, To: to, How: how, Code: r.Code, Message: r.Message, Since: r.Since, Until: r.Until, Do: r.Do})
}

// pod adds a pod that waits: for its own node, which is dead, for its volumes, or for nodes
// that could take them.
func (g *graph) pod(p *facts.PodWait) {
	from := reference(p.Who)
	g.view.Waits = append(g.view.Waits, Wait{Ref: from, Node: p.Node, State: p.State, Code: p.Code, Answer: p.Answer, Since: p.Since})
	if p.State == facts.PodAtDeadNode {
		g.link(Link{From: from, To: nodeRef(p.Node), How: WaitsFor, Code: p.Code, Message: p.Explained.Cause.Message, Since: p.Since, Do: p.Explained.Cause.Do})
		return
	}
	named := false
	for i := range p.Explained.Volumes {
		v := &p.Explained.Volumes[i]
		for j := range v.Reasons {
			named = true
			g.because(from, volumeRef(&v.Volume), WaitsFor, &v.Reasons[j])
		}
	}
	if named {
		return
	}
	if p.State == facts.PodNotStarting {
		c := p.Explained.Cause
		g.link(Link{From: from, How: WaitsFor, Code: c.Code, Message: c.Message, Since: c.Since, Do: c.Do})
		return
	}
	added := 0
	for _, n := range p.Explained.Nodes {
		if n.Barred != "" || len(n.Reasons) == 0 || added == mostNodeReasons {
			continue
		}
		added++
		r := n.Reasons[0]
		to := ""
		if len(n.Nodes) == 1 {
			to = nodeRef(n.Nodes[0])
		} else {
			r.Message = fmt.Sprintf("at %d nodes: %s", len(n.Nodes), r.Message)
		}
		g.because(from, to, WaitsFor, &r)
	}
	if added == 0 { // no node is a choice for it, whatever its volumes
		g.link(Link{From: from, How: WaitsFor, Code: p.Code, Message: p.Answer, Since: p.Since})
	}
}

// ticket adds a VolumeTicket that is not satisfied.
func (g *graph) ticket(t *facts.Ticket) {
	if t.For != "" || len(t.Reasons) == 0 {
		return
	}
	from, r := kindTicket+t.Namespace+"/"+t.Name, &t.Reasons[0]
	g.view.Waits = append(g.view.Waits, Wait{Ref: from, Node: t.Node, State: t.State, Code: r.Code, Answer: "waits: " + strings.TrimSuffix(r.Message, ".") + ".", Since: t.Since})
	g.because(from, nodeRef(r.Node), WaitsFor, r)
}

// volume adds who waits for a volume, where it is meanwhile, and who uses it there.
func (g *graph) volume(v *facts.Volume) {
	self := volumeRef(v)
	if v.Next != nil {
		g.link(Link{From: reference(v.Next.Who), To: self, How: IsNext, Since: v.Next.Since})
	}
	for i := range v.Waiting {
		g.link(Link{From: reference(v.Waiting[i].Who), To: self, How: WaitsFor, Since: v.Waiting[i].Since})
	}
	if v.Reason == nil && v.Next == nil && len(v.Waiting) == 0 {
		return
	}
	at := ""
	if v.Holder != nil {
		at = v.Holder.Node
	}
	if v.Holder != nil && v.Holder.Detached() {
		for _, r := range v.Holder.For {
			g.link(Link{From: self, To: reference(r), How: DetachedFor})
		}
		at = ""
	}
	switch {
	case v.Reason != nil:
		g.because(self, nodeRef(v.Reason.Node), LeavesAt, v.Reason)
		at = cmp.Or(v.Reason.Node, at)
	case at != "":
		g.link(Link{From: self, To: nodeRef(at), How: IsAt, Since: v.Holder.Since})
	}
	for i := range v.Nodes {
		if v.Nodes[i].Node != at {
			continue
		}
		for _, u := range v.Nodes[i].Users {
			g.link(Link{From: self, To: reference(u.Requester), How: UsedBy, Code: u.State})
		}
	}
}

// nodeRef is the reference of a node; empty for none.
func nodeRef(name string) string {
	if name == "" {
		return ""
	}
	return kindNode + name
}

// volumeRef is the reference of a volume; of its claim where there is no volume yet.
func volumeRef(v *facts.Volume) string {
	switch {
	case v.Key() != "":
		return kindVolume + v.Key()
	case v.Claim != "":
		return kindClaim + v.Claim
	}
	return ""
}

func (v *View) sort() {
	slices.SortFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Volumes, func(a, b Volume) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(v.Waits, func(a, b Wait) int { return cmp.Compare(a.Ref, b.Ref) })
	slices.SortFunc(v.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.How, b.How), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
}
