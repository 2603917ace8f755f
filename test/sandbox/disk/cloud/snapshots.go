// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	SnapshotPrefix = "snap-"
	GroupPrefix    = "group-"
)

func SnapshotHandle(name, volume string, id uint64) string {
	return SnapshotPrefix + hash(strconv.FormatUint(id, 10)+"/"+volume+"/"+name)
}

func GroupHandle(name string, id uint64) string {
	return GroupPrefix + hash(strconv.FormatUint(id, 10)+"/"+name)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func compare(a, b string) int { return cmp.Compare(a, b) }

type snapshot struct {
	diskapi.Snapshot
	id uint64
}

func (s *State) Snapshots() []diskapi.Snapshot {
	out := make([]diskapi.Snapshot, 0, len(s.snapshots))
	for _, x := range s.snapshots {
		out = append(out, x.Snapshot)
	}
	slices.SortFunc(out, func(a, b diskapi.Snapshot) int { return compare(a.Handle, b.Handle) })
	return out
}

func (s *State) Snapshot(handle string) (diskapi.Snapshot, bool) {
	x, ok := s.snapshots[handle]
	if !ok {
		return diskapi.Snapshot{}, false
	}
	return x.Snapshot, true
}

func (s *State) Unready() []uint64 {
	var ids []uint64
	for _, x := range s.snapshots {
		if !x.Ready && !slices.Contains(ids, x.id) {
			ids = append(ids, x.id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *State) unready(id uint64) []string {
	var handles []string
	for handle, x := range s.snapshots {
		if x.id == id && !x.Ready {
			handles = append(handles, handle)
		}
	}
	return handles
}

func (s *State) createSnapshot(id uint64, r diskapi.Request) Decision {
	if r.Name == "" {
		return refuse(codes.InvalidArgument, "name is empty: a snapshot is made under a name")
	}
	for _, x := range s.snapshots {
		if x.Name != r.Name || x.Group != "" {
			continue
		}
		if x.Volume != r.Volume {
			return refuse(codes.AlreadyExists, "snapshot %q exists, of volume %s", r.Name, x.Volume)
		}
		e := effect(r)
		e.Snapshot, e.SizeBytes, e.Unready = x.Handle, x.SizeBytes, !x.Ready
		return settled(e, "existed already")
	}
	d, ok := s.disks[r.Volume]
	if !ok {
		return refuse(codes.NotFound, "volume %q does not exist", r.Volume)
	}
	if refusal, ok := s.allows(diskapi.SnapshotVolume, d); !ok {
		return refusal
	}
	e := effect(r)
	e.Snapshot, e.SizeBytes, e.Unready = SnapshotHandle(r.Name, r.Volume, id), d.SizeBytes, s.background
	return Decision{Do: Start, Effect: e, Begins: []diskapi.Entry{s.begins(id, diskapi.SnapshotVolume, r.Volume)}}
}

func (s *State) createGroup(id uint64, r diskapi.Request) Decision {
	if r.Name == "" || len(r.Parts) == 0 {
		return refuse(codes.InvalidArgument, "name or source volumes are missing: a group of snapshots is made under a name, of at least one volume")
	}
	if handle, parts, ok := s.groupNamed(r.Name); ok {
		if volumesOf(parts) != volumesOf(r.Parts) {
			return refuse(codes.AlreadyExists, "group %q exists, of the volumes %s", r.Name, volumesOf(parts))
		}
		e := effect(r)
		e.Group, e.Parts = handle, parts
		return settled(e, "existed already")
	}
	e := effect(r)
	e.Group, e.Parts, e.Unready = GroupHandle(r.Name, id), nil, s.background
	decision := Decision{Do: Start}
	for _, part := range r.Parts {
		d, ok := s.disks[part.Volume]
		if !ok {
			return refuse(codes.NotFound, "volume %q does not exist", part.Volume)
		}
		if refusal, ok := s.allows(diskapi.SnapshotVolume, d); !ok {
			return refusal
		}
		e.Parts = append(e.Parts, diskapi.Part{Volume: part.Volume, Handle: SnapshotHandle(r.Name, part.Volume, id)})
		decision.Begins = append(decision.Begins, s.begins(id, diskapi.SnapshotVolume, part.Volume))
	}
	decision.Effect = e
	return decision
}

func (s *State) groupNamed(name string) (handle string, parts []diskapi.Part, ok bool) {
	for _, x := range s.snapshots {
		if x.Group != "" && x.Name == name {
			return x.Group, s.group(x.Group), true
		}
	}
	return "", nil, false
}

func (s *State) group(handle string) []diskapi.Part {
	var parts []diskapi.Part
	for _, x := range s.Snapshots() {
		if x.Group == handle && handle != "" {
			parts = append(parts, diskapi.Part{Volume: x.Volume, Handle: x.Handle})
		}
	}
	return parts
}

func volumesOf(parts []diskapi.Part) string {
	var volumes []string
	for _, p := range parts {
		volumes = append(volumes, p.Volume)
	}
	slices.Sort(volumes)
	return strings.Join(volumes, ", ")
}

func (s *State) deleteSnapshot(r diskapi.Request) Decision {
	x, ok := s.snapshots[r.Snapshot]
	switch {
	case !ok:
		return settled(effect(r), "did not exist")
	case x.Group != "":
		return refuse(codes.InvalidArgument, "snapshot %s belongs to group %s: delete the group", r.Snapshot, x.Group)
	case s.copiedFrom(r.Snapshot):
		return refuse(codes.FailedPrecondition, "a disk is being made from snapshot %s, delete it when that is over", r.Snapshot)
	}
	return Decision{Do: Start, Effect: effect(r)}
}

func (s *State) deleteGroup(r diskapi.Request) Decision {
	parts := s.group(r.Group)
	if len(parts) == 0 {
		return settled(effect(r), "did not exist")
	}
	for _, p := range parts {
		if s.copiedFrom(p.Handle) {
			return refuse(codes.FailedPrecondition, "a disk is being made from snapshot %s, delete its group when that is over", p.Handle)
		}
	}
	return Decision{Do: Start, Effect: effect(r)}
}

func (s *State) getGroup(r diskapi.Request) Decision {
	e := effect(r)
	if e.Parts = s.group(r.Group); len(e.Parts) == 0 {
		return refuse(codes.NotFound, "group %q does not exist", r.Group)
	}
	return settled(e, "")
}

func (s *State) copiedFrom(handle string) bool {
	for _, p := range s.pending {
		if p.call == diskapi.CreateVolume && p.snapshot == handle {
			return true
		}
	}
	return false
}

// The refusal counts if ok is false. begins are the notes for the beginning.
func (s *State) source(id uint64, r diskapi.Request) (size int64, begins []diskapi.Entry, refusal Decision, ok bool) {
	switch {
	case r.Snapshot != "":
		x, known := s.snapshots[r.Snapshot]
		if !known {
			return 0, nil, refuse(codes.NotFound, "snapshot %q does not exist", r.Snapshot), false
		}
		if !x.Ready {
			return 0, nil, refuse(codes.Unavailable, "snapshot %s is not complete yet", r.Snapshot), false
		}
		return x.SizeBytes, nil, Decision{}, true
	case r.Source != "":
		d, known := s.disks[r.Source]
		if !known {
			return 0, nil, refuse(codes.NotFound, "volume %q, of which a clone was asked for, does not exist", r.Source), false
		}
		if refusal, ok := s.allows(diskapi.CloneVolume, d); !ok {
			return 0, nil, refusal, false
		}
		return d.SizeBytes, []diskapi.Entry{s.begins(id, diskapi.CloneVolume, r.Source)}, Decision{}, true
	}
	return 0, nil, Decision{}, true
}

// Copied returns the last write on a new disk, if the entry makes a copy.
func (s *State) Copied(e diskapi.Entry) (flushed uint64, copied bool) {
	if e.Call != diskapi.CreateVolume {
		return 0, false
	}
	if x, ok := s.snapshots[e.Snapshot]; ok {
		return x.Flushed, true
	}
	if w, ok := s.works[workKey{e.ID, e.Source}]; ok {
		return w.flushed, true
	}
	return 0, false
}

func (s *State) keep(e diskapi.Entry, handle, volume string, size int64) {
	x := &snapshot{id: e.ID, Snapshot: diskapi.Snapshot{
		Handle: handle, Name: e.Name, Volume: volume, SizeBytes: size, Group: e.Group, Created: e.Time, Ready: !e.Unready,
	}}
	if w, ok := s.works[workKey{e.ID, volume}]; ok {
		x.Created, x.Flushed = w.began, w.flushed
	}
	s.snapshots[handle] = x
}

func (s *State) drop(handle string) {
	if x, ok := s.snapshots[handle]; ok {
		if !x.Ready {
			delete(s.works, workKey{x.id, x.Volume})
		}
		delete(s.snapshots, handle)
	}
}
