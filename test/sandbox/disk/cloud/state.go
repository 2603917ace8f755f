// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// State is the cloud, for serial use.
//
// Invariant: pending holds the operations with the decision Start that are neither applied nor cancelled.
// It is not in the log: a killed service forgets them, as if the cloud had dropped them.
type State struct {
	lenient  bool
	slots    int
	disks    map[string]*disk
	byName   map[string]string
	nodes    map[string]*diskapi.Node
	attached map[string]int // node -> attached and being attached
	pending  map[key]pending
	cut      []netip.Prefix // refused clients, in the order of the requests

	attachFor, detachFor []diskapi.Operation
	background           bool
	snapshots            map[string]*snapshot // by handle
	works                map[workKey]*work
}

type disk struct {
	diskapi.Disk
	at map[string]diskapi.Attachment // by node
}

// key names an exclusive operation's object: a disk at a node, a disk (node empty), or a new disk's name.
type key struct{ volume, node, name string }

type pending struct {
	id       uint64
	call     diskapi.Call
	mode     string // access mode, of a publish
	snapshot string
}

type Config struct {
	Slots int
	// Lenient attaches exclusive disks twice and exceeds limits, so that only the judge is in the way.
	Lenient bool
	// AttachFor operations need a volume attached to a running node, and fail when it is detached in the
	// middle. DetachFor operations need a detached volume, and refuse attaches until they are over.
	AttachFor, DetachFor []diskapi.Operation
	// Background answers CreateSnapshot at once, with a snapshot that is not ready, and then copies.
	Background bool
}

func New(c Config) *State {
	return &State{
		lenient: c.Lenient, slots: c.Slots,
		disks: map[string]*disk{}, byName: map[string]string{},
		nodes: map[string]*diskapi.Node{}, attached: map[string]int{},
		pending:   map[key]pending{},
		attachFor: c.AttachFor, detachFor: c.DetachFor, background: c.Background,
		snapshots: map[string]*snapshot{}, works: map[workKey]*work{},
	}
}

func (s *State) Disks() []diskapi.Disk {
	out := make([]diskapi.Disk, 0, len(s.disks))
	for _, d := range s.disks {
		out = append(out, d.view())
	}
	slices.SortFunc(out, func(a, b diskapi.Disk) int { return cmp.Compare(a.Volume, b.Volume) })
	return out
}

func (s *State) Disk(volume string) (diskapi.Disk, bool) {
	d, ok := s.disks[volume]
	if !ok {
		return diskapi.Disk{}, false
	}
	return d.view(), true
}

func (d *disk) view() diskapi.Disk {
	v := d.Disk
	for _, node := range slices.Sorted(maps.Keys(d.at)) {
		v.Attached = append(v.Attached, d.at[node])
	}
	return v
}

func (s *State) Nodes() []diskapi.Node {
	out := make([]diskapi.Node, 0, len(s.nodes))
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		n, _ := s.Node(id)
		out = append(out, n)
	}
	return out
}

func (s *State) Node(id string) (diskapi.Node, bool) {
	n, ok := s.nodes[id]
	if !ok {
		return diskapi.Node{}, false
	}
	view := *n
	view.CutOff = s.isCut(id)
	return view, true
}

func (s *State) InFlight() int { return len(s.pending) }

// Attachments counts a disk once per node.
func (s *State) Attachments() int {
	n := 0
	for _, d := range s.disks {
		n += len(d.at)
	}
	return n
}
