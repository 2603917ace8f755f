// SPDX-License-Identifier: Apache-2.0

// Package view is what the page of kubectl moorage web draws: nodes with their slots,
// volumes, who waits, and for what.
//
// Reads: facts, whose every statement is taken over as it is. Decides: nothing. Writes:
// nothing.
package view

import (
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// View is a cluster at one instant. Lists are sorted by the names of what they hold. It is
// not changed once made.
type View struct {
	// Taken is the cluster's own time.
	Taken   time.Time `json:"taken"`
	Nodes   []Node    `json:"nodes"`
	Volumes []Volume  `json:"volumes"`
	// Waits are the pods that wait, and VolumeTickets that nothing is done for yet.
	Waits []Wait `json:"waits"`
	// Links are the edges of the graph of waits.
	Links []Link `json:"links"`
	// Unseen is what the viewer may not read: what follows from it is missing.
	Unseen []facts.Unseen `json:"unseen"`
}

// Node is a node, and the slots of each driver there.
type Node struct {
	Name         string    `json:"name"`
	Ready        bool      `json:"ready"`
	Since        time.Time `json:"since,omitzero"` // when it became not ready
	Cordoned     bool      `json:"cordoned,omitempty"`
	OutOfService bool      `json:"outOfService,omitempty"`
	Missing      bool      `json:"missing,omitempty"`
	Drivers      []Driver  `json:"drivers"`
}

// Driver is one driver's slots at a node.
type Driver struct {
	Name       string `json:"name"`
	Registered bool   `json:"registered"`
	Exhausted  bool   `json:"exhausted,omitempty"`
	// Limit and Free are those of facts.Slots.
	Limit *int32 `json:"limit,omitempty"`
	Free  *int32 `json:"free,omitempty"`
	// Slots are those that are taken.
	Slots []Slot `json:"slots"`
}

// The states of a slot that is taken. Those that nobody has taken are free.
const (
	Used     = "used"
	Kept     = "kept"
	Leaving  = "leaving"
	Reserved = "reserved"
	Unknown  = "unknown"
)

// Slot is a slot that a volume takes.
type Slot struct {
	// Volume is the key of a Volume, or the name of one that is not provisioned yet.
	Volume string `json:"volume"`
	Slot   string `json:"slot"`
	// State is that of the volume at the node.
	State string `json:"state"`
	// Users are references.
	Users []string `json:"users,omitempty"`
}

// Volume is a volume that may need an attachment.
type Volume struct {
	Key    string `json:"key"` // of a reference: its PersistentVolume, or driver^handle
	Claim  string `json:"claim,omitempty"`
	Driver string `json:"driver"`
	Handle string `json:"handle"`
	Access string `json:"access"`
	State  string `json:"state"`
	// Holder is the node that has it, Next who gets it then, Reason the code of what keeps it.
	Holder string `json:"holder,omitempty"`
	Next   string `json:"next,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Waiting is how many more want it.
	Waiting int `json:"waiting,omitempty"`
}

// Wait is who waits.
type Wait struct {
	Ref    string    `json:"ref"`
	Node   string    `json:"node,omitempty"`
	State  string    `json:"state"`
	Code   string    `json:"code,omitempty"`
	Answer string    `json:"answer"`
	Since  time.Time `json:"since,omitzero"`
}

// Link says that one waits for the other, or can't leave because of it.
type Link struct {
	From string `json:"from"` // a reference
	// To is a reference; empty where no single object is waited for.
	To string `json:"to,omitempty"`
	// How is one of the constants below.
	How     string    `json:"how"`
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // at the latest
	Do      string    `json:"do,omitempty"`
}

// How one thing is linked to another.
const (
	WaitsFor = "waits for"
	IsNext   = "is next for"
	LeavesAt = "can't leave" // a volume, at a node
	IsAt     = "is at"       // a volume, at a node
	UsedBy   = "is used by"  // a volume, by a pod or a ticket

	DetachedFor = "stays detached for" // a volume, for a ticket
)

// References of objects: what follows the first slash is the name.
const (
	kindPod    = "pod/"
	kindTicket = "ticket/"
	kindVolume = "volume/"
	kindNode   = "node/"
	kindClaim  = "claim/"
)

// Of makes the view of a cluster.
func Of(w *facts.World) *View {
	volumes := w.ListVolumes("")
	v := &View{Taken: w.Now, Nodes: nodes(w), Volumes: []Volume{}, Waits: []Wait{}, Links: []Link{}, Unseen: w.Unseen}
	if v.Unseen == nil {
		v.Unseen = []facts.Unseen{}
	}
	for i := range volumes {
		v.Volumes = append(v.Volumes, volume(&volumes[i]))
	}
	g := &graph{view: v, linked: map[[2]string]bool{}, nodes: map[string]bool{}}
	for i := range v.Nodes {
		g.nodes[nodeRef(v.Nodes[i].Name)] = true
	}
	for _, p := range w.ListWaits() {
		g.pod(&p)
	}
	for _, t := range w.ListTickets("", false) {
		g.ticket(&t)
	}
	for i := range volumes {
		g.volume(&volumes[i])
	}
	v.sort()
	return v
}

func nodes(w *facts.World) []Node {
	slots := map[string][]Driver{}
	for _, s := range w.ListSlots() {
		slots[s.Node] = append(slots[s.Node], driver(&s))
	}
	list := []Node{}
	for _, n := range w.ListNodes() {
		out := Node{Name: n.Node, Ready: n.Ready, Since: n.Since, Cordoned: n.Cordoned, OutOfService: n.OutOfService, Missing: n.Missing, Drivers: slots[n.Node]}
		if out.Drivers == nil {
			out.Drivers = []Driver{}
		}
		list = append(list, out)
	}
	return list
}

func driver(s *facts.Slots) Driver {
	out := Driver{Name: s.Driver, Registered: s.Registered, Exhausted: s.Exhausted, Limit: s.Limit, Free: s.Free, Slots: []Slot{}}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		slot := Slot{Volume: v.Volume, Slot: strings.ToLower(v.Slot), State: v.State}
		for _, u := range v.Users {
			slot.Users = append(slot.Users, reference(u.Requester))
		}
		out.Slots = append(out.Slots, slot)
	}
	return out
}

func volume(v *facts.Volume) Volume {
	out := Volume{Key: v.Key(), Claim: v.Claim, Driver: v.Driver, Handle: v.Handle, Access: v.Access, State: v.State, Waiting: len(v.Waiting)}
	if v.Holder != nil {
		out.Holder = v.Holder.Node
	}
	if v.Next != nil {
		out.Next = reference(v.Next.Who)
	}
	if v.Reason != nil {
		out.Reason = v.Reason.Code
	}
	return out
}

func reference(r facts.Requester) string {
	if r.Kind == "Pod" {
		return kindPod + r.Namespace + "/" + r.Name
	}
	return kindTicket + r.Namespace + "/" + r.Name
}

// Refs are the references of all objects, those that somebody waits for or that are not
// well before others.
func (v *View) Refs() []string {
	var list []string
	known := map[string]bool{"": true}
	add := func(ref string) {
		if !known[ref] {
			known[ref] = true
			list = append(list, ref)
		}
	}
	for i := range v.Waits {
		add(v.Waits[i].Ref)
	}
	for i := range v.Links {
		add(v.Links[i].From)
		add(v.Links[i].To)
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; !n.Ready || n.OutOfService || n.Missing {
			add(kindNode + n.Name)
		}
	}
	for i := range v.Nodes {
		add(kindNode + v.Nodes[i].Name)
	}
	for i := range v.Volumes {
		add(kindVolume + v.Volumes[i].Key)
	}
	for i := range v.Nodes {
		for _, d := range v.Nodes[i].Drivers {
			for j := range d.Slots {
				for _, u := range d.Slots[j].Users {
					add(u)
				}
			}
		}
	}
	return list
}
