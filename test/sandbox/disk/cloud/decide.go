// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type Do int

const (
	Refuse Do = iota
	// Answer: nothing changes; answer success with the Answer's fields.
	Answer
	// Start: carry the operation out, then apply Effect and answer.
	Start
	// Join: wait for the operation Joined to end, then decide again.
	Join
)

type Decision struct {
	Do      Do
	Code    codes.Code
	Message string
	// Effect is the entry that a finished operation applies, without number and time. For Answer it is the
	// answer.
	Effect diskapi.Entry
	Begins []diskapi.Entry
	Joined uint64
}

func refuse(code codes.Code, format string, args ...any) Decision {
	return Decision{Do: Refuse, Code: code, Message: fmt.Sprintf(format, args...)}
}

func settled(e diskapi.Entry, detail string) Decision {
	e.Detail = detail
	return Decision{Do: Answer, Effect: e}
}

// Decide marks a started call as pending: the caller must end it with Apply or Cancel.
func (s *State) Decide(id uint64, r diskapi.Request) Decision {
	if p, busy := s.pending[keyOf(r)]; busy {
		if p.call == r.Call {
			return Decision{Do: Join, Joined: p.id}
		}
		return refuse(codes.Aborted, "%s (call %d) is going on for volume %q at node %q, try again when it is over", p.call, p.id, r.Volume, r.Node)
	}
	d := s.rule(id, r)
	if d.Do == Start {
		s.begin(keyOf(r), pending{id: id, call: r.Call, mode: r.AccessMode, snapshot: r.Snapshot})
	}
	return d
}

func (s *State) rule(id uint64, r diskapi.Request) Decision {
	switch r.Call {
	case diskapi.CreateVolume:
		return s.create(id, r)
	case diskapi.DeleteVolume:
		return s.delete(r)
	case diskapi.ControllerPublish:
		return s.publish(id, r)
	case diskapi.ControllerUnpublish:
		return s.unpublish(r)
	case diskapi.NodeStage, diskapi.NodePublish, diskapi.NodeExpand:
		return s.use(r)
	case diskapi.NodeUnstage, diskapi.NodeUnpublish:
		return Decision{Do: Start, Effect: effect(r)}
	case diskapi.NodeGetInfo:
		return s.register(r)
	case diskapi.ValidateVolumeCapabilities, diskapi.ControllerGetVolume, diskapi.ControllerGetVolumeHealth:
		return s.lookup(r)
	case diskapi.FenceNetwork, diskapi.UnfenceNetwork:
		return s.changeAccess(r)
	case diskapi.ListVolumes, diskapi.ListSnapshots, diskapi.ControllerListVolumeHealth:
		return settled(effect(r), "")
	}
	return s.operation(id, r)
}

func (s *State) operation(id uint64, r diskapi.Request) Decision {
	switch r.Call {
	case diskapi.CreateSnapshot:
		return s.createSnapshot(id, r)
	case diskapi.DeleteSnapshot:
		return s.deleteSnapshot(r)
	case diskapi.CreateGroupSnapshot:
		return s.createGroup(id, r)
	case diskapi.DeleteGroupSnapshot:
		return s.deleteGroup(r)
	case diskapi.GetGroupSnapshot:
		return s.getGroup(r)
	case diskapi.ControllerExpand:
		return s.expand(id, r)
	}
	return refuse(codes.Unimplemented, "%s is not a call of this service", r.Call)
}

func (s *State) Cancel(r diskapi.Request) { s.end(keyOf(r)) }

func (s *State) begin(k key, p pending) {
	s.pending[k] = p
	if p.call == diskapi.ControllerPublish {
		s.attached[k.node]++
	}
}

func (s *State) end(k key) {
	p, ok := s.pending[k]
	if !ok {
		return
	}
	delete(s.pending, k)
	if p.call == diskapi.ControllerPublish {
		s.attached[k.node]--
	}
}

// Node calls have keys of their own: they do not exclude what the cloud does.
func keyOf(r diskapi.Request) key {
	switch r.Call {
	case diskapi.CreateVolume:
		return key{name: r.Name}
	case diskapi.NodeGetInfo:
		return key{node: r.Node}
	case diskapi.FenceNetwork, diskapi.UnfenceNetwork:
		return key{name: "access:" + strings.Join(r.CIDRs, ",")}
	case diskapi.CreateSnapshot:
		return key{name: "snapshot:" + r.Name}
	case diskapi.DeleteSnapshot:
		return key{name: "snapshot:" + r.Snapshot}
	case diskapi.CreateGroupSnapshot:
		return key{name: "group:" + r.Name}
	case diskapi.DeleteGroupSnapshot, diskapi.GetGroupSnapshot:
		return key{name: "group:" + r.Group}
	case diskapi.ControllerExpand:
		return key{volume: r.Volume, name: "size"}
	case diskapi.NodeExpand:
		return key{volume: r.Volume, node: r.Node, name: "node-size:" + r.Path}
	case diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish:
		return key{volume: r.Volume, node: r.Node, name: "node:" + r.Path}
	}
	return key{volume: r.Volume, node: r.Node}
}

func effect(r diskapi.Request) diskapi.Entry {
	return diskapi.Entry{Phase: diskapi.Applied, Call: r.Call, Volume: r.Volume, Node: r.Node, Args: r.Args}
}
