// SPDX-License-Identifier: Apache-2.0

package cloud

import "github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"

// Apply folds a log entry into the state and ends its operation. Entries without an effect on the cloud are
// passed over.
func (s *State) Apply(e diskapi.Entry) {
	switch e.Phase {
	case diskapi.Applied:
		s.end(keyOf(diskapi.Request{Call: e.Call, Volume: e.Volume, Node: e.Node, Args: e.Args}))
		s.applyCall(e)
		s.applyOperation(e)
	case diskapi.Noted:
		s.applyNote(e)
	}
}

func (s *State) applyCall(e diskapi.Entry) {
	switch e.Call {
	case diskapi.CreateVolume:
		s.disks[e.Volume] = &disk{
			Disk: diskapi.Disk{Volume: e.Volume, Name: e.Name, SizeBytes: e.SizeBytes, Zone: e.Zone},
			at:   map[string]diskapi.Attachment{},
		}
		s.byName[e.Name] = e.Volume
	case diskapi.DeleteVolume:
		if d, ok := s.disks[e.Volume]; ok {
			delete(s.byName, d.Name)
			delete(s.disks, e.Volume)
		}
	case diskapi.ControllerPublish:
		s.attach(e)
	case diskapi.ControllerUnpublish:
		s.detach(e.Volume, e.Node)
		s.tear()
	case diskapi.NodeGetInfo:
		s.nodes[e.Node] = &diskapi.Node{ID: e.Node, Name: e.Name, Slots: e.Slots, Zone: e.Zone, Address: e.Address}
	case diskapi.FenceNetwork:
		s.cutOff(e.CIDRs)
		s.tear()
	case diskapi.UnfenceNetwork:
		s.letIn(e.CIDRs)
	}
}

func (s *State) attach(e diskapi.Entry) {
	d, ok := s.disks[e.Volume]
	if !ok {
		return
	}
	if _, ok := d.at[e.Node]; !ok {
		s.attached[e.Node]++
	}
	d.at[e.Node] = diskapi.Attachment{
		Volume: e.Volume, Node: e.Node, AccessMode: e.AccessMode, ReadOnly: e.ReadOnly, Context: e.Context,
	}
}

func (s *State) detach(volume, node string) {
	d, ok := s.disks[volume]
	if !ok {
		return
	}
	if _, ok := d.at[node]; ok {
		delete(d.at, node)
		s.attached[node]--
	}
}

func (s *State) applyNote(e diskapi.Entry) {
	s.applyWork(e)
	if d, ok := s.disks[e.Volume]; ok && e.Call == diskapi.SetHealth {
		d.Health = e.Health
	}
	n, ok := s.nodes[e.Node]
	if !ok {
		return
	}
	switch e.Call {
	case diskapi.SetSlots:
		n.Slots = e.Slots
	case diskapi.FenceNode:
		n.Fenced = true
		n.Boot++
		s.tear()
	case diskapi.UnfenceNode:
		n.Fenced = false
	}
}

func (s *State) applyOperation(e diskapi.Entry) {
	switch e.Call {
	case diskapi.CreateSnapshot:
		s.keep(e, e.Snapshot, e.Volume, e.SizeBytes)
	case diskapi.CreateGroupSnapshot:
		for _, p := range e.Parts {
			if d, ok := s.disks[p.Volume]; ok {
				s.keep(e, p.Handle, p.Volume, d.SizeBytes)
			}
		}
	case diskapi.DeleteSnapshot:
		s.drop(e.Snapshot)
	case diskapi.DeleteGroupSnapshot:
		for _, p := range s.group(e.Group) {
			s.drop(p.Handle)
		}
	case diskapi.ControllerExpand:
		if d, ok := s.disks[e.Volume]; ok {
			d.SizeBytes = max(d.SizeBytes, e.SizeBytes)
		}
	}
	if !e.Unready {
		s.endWorks(e.ID)
	}
}

func (s *State) applyWork(e diskapi.Entry) {
	switch e.Call {
	case diskapi.WorkBegan:
		w := &work{operation: e.Operation, whileAttached: e.WhileAttached, began: e.Time}
		if e.Write != nil {
			w.flushed = e.Write.Flushed
		}
		s.works[workKey{e.ID, e.Volume}] = w
	case diskapi.WorkTorn:
		for _, handle := range s.unready(e.ID) {
			s.drop(handle)
		}
		s.endWorks(e.ID)
	case diskapi.SnapshotReady:
		for _, handle := range s.unready(e.ID) {
			s.snapshots[handle].Ready = true
		}
		s.endWorks(e.ID)
	case diskapi.ServiceStarted:
		s.dropWorks()
	}
}
