// SPDX-License-Identifier: Apache-2.0

package ledger

// noted says whether the attachment has the name that Moorage gives, and a note.
func (r *attachmentRecord) noted() bool { return r != nil && r.own && r.to.note != (Note{}) }

// Written is the volume's VolumeHold in the API; zero: there is none, or this process has deleted it and only
// the watch is behind.
func (v *Volume) Written() Hold {
	if v == nil || !v.HasHold() {
		return Hold{}
	}
	return *v.Hold
}

// HasHold says whether the volume has a VolumeHold, in the API or still to be written.
func (v *Volume) HasHold() bool {
	return v.Hold != nil && (v.Hold.Version == "" || v.Hold.Version != v.dropped || v.HoldUnanswered > 0)
}

// Record is what the API says about the holder of an exclusive volume: its VolumeHold, or without a
// VolumeHold the note in its VolumeAttachment, in the form of a hold without a version. If several
// VolumeAttachments have notes, the newest one counts.
func (v *Volume) Record() Hold {
	switch {
	case v == nil:
		return Hold{}
	case v.HasHold():
		return *v.Hold
	case !v.noted:
		return Hold{}
	}
	var newest *attachmentRecord
	for i := range v.OnNodes {
		if r := v.OnNodes[i].first; r.noted() && (newest == nil || r.transitions > newest.transitions) {
			newest = r
		}
	}
	if newest == nil {
		return Hold{}
	}
	h := newest.hold()
	h.PVs = v.PVs()
	return h
}

// hold is a note in the form of a hold.
func (r *attachmentRecord) hold() Hold {
	n := r.to.note
	return Hold{
		Node: r.to.node, NodeUID: n.NodeUID, BootID: n.Boot.BootID, SystemUUID: n.Boot.SystemUUID,
		Transitions: r.transitions, State: HoldHeld,
	}
}

// madeFor says whether the attachment at a node was made for a pod, by its note.
func (v *Volume) madeFor(pod string, n NodeName) bool {
	p := v.OnNode(n)
	return p != nil && p.first.noted() && p.first.pod == pod
}

// Note is the note in the own attachment; zero: none.
func (p *VolumeOnNode) Note() Note {
	if p == nil || !p.first.noted() {
		return Note{}
	}
	return p.first.note()
}
