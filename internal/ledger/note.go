// SPDX-License-Identifier: Apache-2.0

package ledger

// noted: it has Moorage's name and a note.
func (r *attachmentRecord) noted() bool { return r != nil && r.own && r.to.note != (Note{}) }

// Written is the VolumeHold in the API; zero: none, or just deleted by this process.
func (v *Volume) Written() Hold {
	if v == nil || !v.HasHold() {
		return Hold{}
	}
	return *v.Hold
}

// HasHold says whether the volume has a VolumeHold, written or not.
func (v *Volume) HasHold() bool {
	return v.Hold != nil && (v.Hold.Version == "" || v.Hold.Version != v.dropped || v.HoldUnanswered > 0)
}

// Record is an exclusive volume's VolumeHold, or its newest note as a hold without a version.
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

// madeFor says whether a node's attachment was made for a pod, by its note.
func (v *Volume) madeFor(pod string, n NodeName) bool {
	p := v.OnNode(n)
	return p != nil && p.first.noted() && p.first.pod == pod
}

// Note is the own attachment's note, or zero.
func (p *VolumeOnNode) Note() Note {
	if p == nil || !p.first.noted() {
		return Note{}
	}
	return p.first.note()
}
