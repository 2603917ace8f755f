// SPDX-License-Identifier: Apache-2.0

// Package view has the content of the page of kubectl moorage web: nodes with slots, volumes, waiters and
// reasons.
//
// Reads: facts. Decides and writes nothing.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// View is a cluster at an instant, read-only, with lists sorted by name.
type View struct {
	Taken   time.Time    `json:"taken"`
	Nodes   []Node       `json:"nodes"`
	Volumes []Volume     `json:"volumes"`
	Waits   []facts.Wait `json:"waits"`
	Links   []Link       `json:"links"`
	// Unseen is hidden from the viewer: dependent facts are missing.
	Unseen []facts.Unseen `json:"unseen"`
	Totals Totals         `json:"totals"`
}

// Totals count a view's parts.
type Totals struct {
	Nodes    int `json:"nodes"`
	NotReady int `json:"notReady"`
	// Full counts ready nodes with a full driver.
	Full int `json:"full"`
	// Taken are ready nodes' taken slots, of the known Limit. Stuck are at other nodes.
	Taken int `json:"taken"`
	Limit int `json:"limit"`
	Stuck int `json:"stuck"`
	// Waiting are pods and tickets. Moving volumes are neither in place nor free.
	Waiting int `json:"waiting"`
	Moving  int `json:"moving"`
}

// Count counts the parts of the view.
func (v *View) Count() Totals {
	t := Totals{Nodes: len(v.Nodes), Waiting: len(v.Waits)}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		full := func(d facts.Slots) bool { return d.Exhausted || d.Free != nil && *d.Free == 0 }
		if !n.Ready {
			t.NotReady++
		} else if slices.ContainsFunc(n.Drivers, full) {
			t.Full++
		}
		for j := range n.Drivers {
			d := &n.Drivers[j]
			if !n.Ready {
				t.Stuck += len(d.Volumes)
				continue
			}
			t.Taken += len(d.Volumes)
			if d.Limit != nil {
				t.Limit += int(*d.Limit)
			}
		}
	}
	for i := range v.Volumes {
		if Moves(v.Volumes[i].State, v.Volumes[i].Reason != "") {
			t.Moving++
		}
	}
	return t
}

// Moves says whether a volume is neither in place nor free, or is kept.
func Moves(state string, kept bool) bool {
	return kept || !slices.Contains([]string{"Attached", "InUse", "Free", "Kept", "NotProvisioned"}, state)
}

// In keeps only a namespace's waiters and volumes; empty: all.
func (v *View) In(namespace string) *View {
	if namespace == "" {
		return v
	}
	out := *v
	out.Waits = slices.DeleteFunc(slices.Clone(v.Waits), func(w facts.Wait) bool { return w.Who.Namespace != namespace })
	out.Volumes = slices.DeleteFunc(slices.Clone(v.Volumes), func(x Volume) bool { return !strings.HasPrefix(x.Claim, namespace+"/") })
	return &out
}

// Node is a node and its drivers' slots.
type Node struct {
	facts.NodeState
	Drivers []facts.Slots `json:"drivers,omitempty"`
}

// Volume is a volume that may need an attachment.
type Volume struct {
	Key    string `json:"key"` // PersistentVolume, or driver^handle
	Claim  string `json:"claim,omitempty"`
	Driver string `json:"driver"`
	Handle string `json:"handle"`
	Access string `json:"access"`
	State  string `json:"state"`
	// Holder is its node, Next the next waiter, Reason its obstacle's code.
	Holder string `json:"holder,omitempty"`
	Next   string `json:"next,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Waiting counts further waiters.
	Waiting int `json:"waiting,omitempty"`
}

// Link is an edge: From waits for To, can't leave because of it, or is used by it.
type Link struct {
	From string `json:"from"` // a reference
	// To is a reference; empty: no single object.
	To      string    `json:"to,omitempty"`
	How     string    `json:"how"`
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // at the latest
	Do      string    `json:"do,omitempty"`
}

const (
	WaitsFor = "waits for"
	IsNext   = "is next for"
	LeavesAt = "can't leave" // a volume, at a node
	IsAt     = "is at"       // a volume, at a node
	UsedBy   = "is used by"  // by a pod or ticket

	DetachedFor = "stays detached for" // for a ticket
)

// References of objects; a name follows the first slash.
const (
	kindVolume = "volume/"
	kindNode   = "node/"
	kindClaim  = "claim/"
)

// Of makes a cluster's view.
func Of(w *facts.World) *View {
	volumes := w.ListVolumes("")
	v := &View{Taken: w.Now, Nodes: nodes(w), Volumes: []Volume{}, Waits: []facts.Wait{}, Links: []Link{}, Unseen: w.Unseen}
	if v.Unseen == nil {
		v.Unseen = []facts.Unseen{}
	}
	for i := range volumes {
		v.Volumes = append(v.Volumes, volume(&volumes[i]))
	}
	g := &graph{view: v, linked: map[[2]string]bool{}, nodes: map[string]bool{}}
	for i := range v.Nodes {
		g.nodes[nodeRef(v.Nodes[i].Node)] = true
	}
	for _, wait := range w.ListWaits() {
		v.Waits = append(v.Waits, wait)
		if wait.Reason != nil {
			g.because(wait.Who.Ref(), nodeRef(wait.Reason.Node), WaitsFor, wait.Reason)
		} else {
			g.pod(&wait)
		}
	}
	for i := range volumes {
		g.volume(&volumes[i])
	}
	v.sort()
	v.Totals = v.Count()
	return v
}

func nodes(w *facts.World) []Node {
	slots := map[string][]facts.Slots{}
	for _, s := range w.ListSlots() {
		slots[s.Node] = append(slots[s.Node], s)
	}
	list := []Node{}
	for _, n := range w.ListNodes() {
		list = append(list, Node{n, slots[n.Node]})
	}
	return list
}

func volume(v *facts.Volume) Volume {
	out := Volume{Key: v.Key(), Claim: v.Claim, Driver: v.Driver, Handle: v.Handle, Access: v.Access, State: v.State, Waiting: len(v.Waiting)}
	if v.Holder != nil {
		out.Holder = v.Holder.Node
	}
	if v.Next != nil {
		out.Next = v.Next.Who.Ref()
	}
	if v.Reason != nil {
		out.Reason = v.Reason.Code
	}
	return out
}

type graph struct {
	view *View
	// linked prevents double edges: pods and volumes name each other.
	linked map[[2]string]bool
	// nodes are the view's; a ticket may name a missing node.
	nodes map[string]bool
}

// mostNodeReasons bounds a pod's edges; nodes with a verdict share an edge.
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

func (g *graph) because(from, to, how string, r *facts.Reason) {
	g.link(Link{From: from, To: to, How: how, Code: r.Code, Message: r.Message, Since: r.Since, Until: r.Until, Do: r.Do})
}

// pod adds a pod that waits for its dead node, its volumes, or suitable nodes.
func (g *graph) pod(p *facts.Wait) {
	from := p.Who.Ref()
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
	c := p.Explained.Cause
	if c != nil && (p.State == facts.PodNotStarting || c.Of == facts.OfComponent) {
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
	if added == 0 { // its rules allow no node
		l := Link{From: from, How: WaitsFor, Code: p.Code, Message: p.Answer, Since: p.Since}
		if c != nil {
			l.Do = c.Do
		}
		g.link(l)
	}
}

// volume adds its waiters, its place, and its users there.
func (g *graph) volume(v *facts.Volume) {
	self := volumeRef(v)
	if v.Next != nil {
		g.link(Link{From: v.Next.Who.Ref(), To: self, How: IsNext, Since: v.Next.Since})
	}
	for i := range v.Waiting {
		g.link(Link{From: v.Waiting[i].Who.Ref(), To: self, How: WaitsFor, Since: v.Waiting[i].Since})
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
			g.link(Link{From: self, To: r.Ref(), How: DetachedFor})
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
			g.link(Link{From: self, To: u.Requester.Ref(), How: UsedBy, Code: u.State})
		}
	}
}

func nodeRef(name string) string {
	if name == "" {
		return ""
	}
	return kindNode + name
}

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
	slices.SortFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(a.Node, b.Node) })
	slices.SortFunc(v.Volumes, func(a, b Volume) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(v.Waits, func(a, b facts.Wait) int { return cmp.Compare(a.Who.Ref(), b.Who.Ref()) })
	slices.SortFunc(v.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.How, b.How), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
}
