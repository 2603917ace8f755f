// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (s *State) publish(id uint64, r diskapi.Request) Decision {
	d, ok := s.disks[r.Volume]
	if !ok {
		return refuse(codes.NotFound, "volume %q does not exist", r.Volume)
	}
	n, ok := s.nodes[r.Node]
	if !ok {
		return refuse(codes.NotFound, "node %q does not exist", r.Node)
	}
	if d.Zone != "" && d.Zone != n.Zone {
		return refuse(codes.InvalidArgument, "volume %s is in zone %q, node %s in zone %q", r.Volume, d.Zone, r.Node, n.Zone)
	}
	if s.isCut(r.Node) {
		return refuse(codes.FailedPrecondition, "node %s is cut off from the storage", r.Node)
	}
	if p, busy := s.pending[key{volume: r.Volume}]; busy {
		return refuse(codes.Aborted, "%s (call %d) is going on for volume %s", p.call, p.id, r.Volume)
	}
	if a, here := d.at[r.Node]; here {
		return attachedHere(a, r)
	}
	if k, w, busy := s.detached(r.Volume); busy {
		return refuse(codes.Aborted, "%s (call %d) is going on for volume %s, attach it when that is over", w.operation, k.id, r.Volume)
	}
	if s.lenient {
		return Decision{Do: Start, Effect: attachEffect(id, r)}
	}
	if node, ok := s.conflict(d, r); ok {
		return refuse(codes.FailedPrecondition, "volume %s is at node %s, unpublish it there first", r.Volume, node)
	}
	if s.attached[r.Node] >= n.Slots {
		return refuse(codes.ResourceExhausted, "node %s has all of its %d slots in use", r.Node, n.Slots)
	}
	return Decision{Do: Start, Effect: attachEffect(id, r)}
}

func attachedHere(a diskapi.Attachment, r diskapi.Request) Decision {
	if a.AccessMode != r.AccessMode || a.ReadOnly != r.ReadOnly {
		return refuse(codes.AlreadyExists, "volume %s is attached to node %s as %s (read-only %t), not as %s (read-only %t)",
			r.Volume, r.Node, a.AccessMode, a.ReadOnly, r.AccessMode, r.ReadOnly)
	}
	e := effect(r)
	e.Context = a.Context
	return settled(e, "was attached already")
}

func (s *State) conflict(d *disk, r diskapi.Request) (node string, ok bool) {
	exclusive := diskapi.Exclusive(r.AccessMode)
	for node, a := range d.at {
		if node != r.Node && (exclusive || diskapi.Exclusive(a.AccessMode)) {
			return node, true
		}
	}
	for k, p := range s.pending {
		if k.volume == d.Volume && k.node != r.Node && p.call == diskapi.ControllerPublish &&
			(exclusive || diskapi.Exclusive(p.mode)) {
			return k.node, true
		}
	}
	return "", false
}

// Each attachment has its own publish context, so that an old context is recognised.
func attachEffect(id uint64, r diskapi.Request) diskapi.Entry {
	e := effect(r)
	e.Context = PublishContext(id, r.Volume)
	return e
}

func PublishContext(id uint64, volume string) map[string]string {
	return map[string]string{
		"attachmentID": fmt.Sprintf("att-%d", id),
		"devicePath":   "/dev/disk/by-id/" + volume,
	}
}

func (s *State) unpublish(r diskapi.Request) Decision {
	d, ok := s.disks[r.Volume]
	if !ok {
		return settled(effect(r), "volume does not exist")
	}
	if _, ok := d.at[r.Node]; !ok {
		return settled(effect(r), "was not attached")
	}
	return Decision{Do: Start, Effect: effect(r)}
}

func (s *State) use(r diskapi.Request) Decision {
	d, ok := s.disks[r.Volume]
	if !ok {
		return refuse(codes.NotFound, "volume %q does not exist", r.Volume)
	}
	if s.isCut(r.Node) {
		return refuse(codes.Internal, "volume %s: the storage refuses node %s", r.Volume, r.Node)
	}
	if _, ok := d.at[r.Node]; !ok {
		return refuse(codes.Internal, "volume %s: no such device at node %s", r.Volume, r.Node)
	}
	if r.NotStaged {
		return refuse(codes.FailedPrecondition, "volume %s is not staged at node %s", r.Volume, r.Node)
	}
	if r.Beside && r.AccessMode == "SINGLE_NODE_SINGLE_WRITER" {
		return refuse(codes.FailedPrecondition, "volume %s has a single writer, and is published at node %s already", r.Volume, r.Node)
	}
	return Decision{Do: Start, Effect: effect(r)}
}

// The proposed slots count if the cloud has none for the node yet.
func (s *State) register(r diskapi.Request) Decision {
	e := effect(r)
	if n, ok := s.nodes[r.Node]; ok {
		e.Slots, e.Zone, e.Address = n.Slots, n.Zone, n.Address
		return settled(e, "")
	}
	e.Address = s.freeAddress()
	if e.Slots == 0 {
		e.Slots = s.slots
	}
	return Decision{Do: Start, Effect: e}
}
