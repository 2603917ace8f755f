// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// State is the cloud. It is for serial use.
//
// Invariant: pending holds only operations that were decided Start and are
// neither applied nor cancelled. It is not part of the log: a killed service
// forgets them, as if the cloud had dropped them.
type State struct {
	lenient  bool
	slots    int
	disks    map[string]*disk
	byName   map[string]string
	nodes    map[string]*diskapi.Node
	attached map[string]int // node -> attached and being attached
	pending  map[key]pending
	cut      []netip.Prefix // clients that are refused, in the order of the requests

	attachFor, detachFor []diskapi.Operation
	background           bool
	snapshots            map[string]*snapshot // by handle
	works                map[workKey]*work
}

type disk struct {
	diskapi.Disk
	at map[string]diskapi.Attachment // by node
}

// key names the object of an exclusive operation: a disk at a node, a disk (node empty), or the name of
// a new disk.
type key struct{ volume, node, name string }

type pending struct {
	id   uint64
	call diskapi.Call
	mode string // access mode, of a publish
	// snapshot is a disk's source.
	snapshot string
}

// Config sets up a cloud.
type Config struct {
	// Slots is how many disks an instance can have attached unless it says
	// otherwise itself.
	Slots int
	// Lenient attaches exclusive disks twice and fills nodes past their limit
	// instead of refusing, so that nothing but the judge is in the way.
	Lenient bool
	// AttachFor are operations that are refused unless the volume is attached to a running node, and
	// that fail when it is detached in the middle. DetachFor are operations that are refused unless it
	// is attached nowhere; until they are over, attaching it is refused.
	AttachFor, DetachFor []diskapi.Operation
	// Background has the cloud answer CreateSnapshot at once, with a snapshot that is not ready,
	// and copy then.
	Background bool
}

// New returns an empty cloud.
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

// Disks lists the disks by handle, each with its attachments by node.
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

// Nodes lists the instances by ID.
func (s *State) Nodes() []diskapi.Node {
	out := make([]diskapi.Node, 0, len(s.nodes))
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		n, _ := s.Node(id)
		out = append(out, n)
	}
	return out
}

// Node returns one instance.
func (s *State) Node(id string) (diskapi.Node, bool) {
	n, ok := s.nodes[id]
	if !ok {
		return diskapi.Node{}, false
	}
	view := *n
	view.CutOff = s.isCut(id)
	return view, true
}

// InFlight counts the operations that were started and not finished.
func (s *State) InFlight() int { return len(s.pending) }

// Attachments counts the disks that are attached, each once per node.
func (s *State) Attachments() int {
	n := 0
	for _, d := range s.disks {
		n += len(d.at)
	}
	return n
}
