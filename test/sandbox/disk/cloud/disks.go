// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const DefaultSizeBytes = 1 << 30

const HandlePrefix = "vol-"

// HandleFor derives a handle from name and call: a replay gives the same handle, a reused name another.
func HandleFor(name string, id uint64) string {
	return HandlePrefix + hash(strconv.FormatUint(id, 10)+"/"+name)
}

func ZoneFor(zones []string) string {
	if len(zones) == 0 {
		return ""
	}
	return zones[0]
}

func (s *State) create(id uint64, r diskapi.Request) Decision {
	if r.Name == "" {
		return refuse(codes.InvalidArgument, "name is empty: a disk is created under a name")
	}
	if r.SizeBytes == 0 && r.Source+r.Snapshot == "" {
		r.SizeBytes = DefaultSizeBytes
	}
	if volume, ok := s.byName[r.Name]; ok {
		d := s.disks[volume]
		if d.SizeBytes < r.SizeBytes {
			return refuse(codes.AlreadyExists, "disk %q exists with %d bytes, %d were asked for", r.Name, d.SizeBytes, r.SizeBytes)
		}
		if d.Zone != "" && len(r.Zones) > 0 && !slices.Contains(r.Zones, d.Zone) {
			return refuse(codes.AlreadyExists, "disk %q exists in zone %q, one of %q was asked for", r.Name, d.Zone, r.Zones)
		}
		e := effect(r)
		e.Volume, e.SizeBytes, e.Zone = volume, d.SizeBytes, d.Zone
		return settled(e, "existed already")
	}
	size, begins, refusal, ok := s.source(id, r)
	if !ok {
		return refusal
	}
	if r.SizeBytes == 0 {
		r.SizeBytes = size
	}
	if r.SizeBytes < size {
		return refuse(codes.OutOfRange, "%d bytes were asked for, and what is to be copied has %d", r.SizeBytes, size)
	}
	e := effect(r)
	e.Volume, e.Zone = HandleFor(r.Name, id), ZoneFor(r.Zones)
	return Decision{Do: Start, Effect: e, Begins: begins}
}

func (s *State) delete(r diskapi.Request) Decision {
	d, ok := s.disks[r.Volume]
	if !ok {
		return settled(effect(r), "did not exist")
	}
	for node := range d.at {
		return refuse(codes.FailedPrecondition, "volume %s is attached to node %s, unpublish it first", r.Volume, node)
	}
	for k, p := range s.pending {
		if k.volume == r.Volume && p.call == diskapi.ControllerPublish {
			return refuse(codes.FailedPrecondition, "volume %s is being attached to node %s, unpublish it first", r.Volume, k.node)
		}
	}
	for k, w := range s.works {
		if k.volume == r.Volume {
			return refuse(codes.FailedPrecondition, "%s (call %d) is going on for volume %s, delete it when that is over", w.operation, k.id, r.Volume)
		}
	}
	return Decision{Do: Start, Effect: effect(r)}
}

func (s *State) lookup(r diskapi.Request) Decision {
	if _, ok := s.disks[r.Volume]; !ok {
		return refuse(codes.NotFound, "volume %q does not exist", r.Volume)
	}
	return settled(effect(r), "")
}
