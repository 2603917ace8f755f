// SPDX-License-Identifier: Apache-2.0

package ledger

// Link is how far a reference led.
type Link uint8

const (
	// LinkVolume: to a volume.
	LinkVolume Link = iota
	// LinkUnbound: to an unbound claim; the volume stands for it.
	LinkUnbound
	// LinkNone: to storage without attachments, like NFS.
	LinkNone
	// LinkMissing: the claim is missing, or another has its name.
	LinkMissing
	// LinkLost: the claim lost its PersistentVolume, or names another claim's.
	LinkLost
	// LinkUnseen: to an unseen or deleted PersistentVolume.
	LinkUnseen
	// LinkOutside: to an unbound claim whose provisioner is no CSI driver. It never needs an attachment.
	LinkOutside
)

func (k Link) String() string {
	return [...]string{"volume", "unbound", "none", "missing", "lost", "unseen", "outside"}[k]
}

// NeedsNone: it needs no attachment.
func (k Link) NeedsNone() bool { return k == LinkNone || k == LinkOutside }

func (l *Ledger) resolveClaim(rec *claimRecord) (VolumeID, Link) { return l.facts.resolveClaim(rec) }

func (w *facts) resolveClaim(rec *claimRecord) (VolumeID, Link) {
	switch {
	case rec == nil || !rec.exists:
		return VolumeID{}, LinkMissing
	case rec.Lost:
		return VolumeID{}, LinkLost
	case !rec.Bound || rec.PersistentVolume == "":
		driver := ""
		if class := w.classes.get(rec.Class); class != nil {
			driver = class.Driver
		}
		switch {
		case driver == "":
			return VolumeID{}, LinkUnbound
		case w.csi.get(driver) == nil:
			return VolumeID{}, LinkOutside
		}
		return UnboundClaim(driver, rec.UID), LinkUnbound
	}
	if pv := w.pvs.get(rec.PersistentVolume); pv != nil && pv.IsAnothers(rec.Claim) {
		return VolumeID{}, LinkLost
	}
	return w.resolvePV(rec.PersistentVolume)
}

// IsAnothers: the PersistentVolume is bound to another claim. A claim's status does not count, since its
// writer can forge it. kubelet and attach/detach controller use claimRef too
// (pkg/kubelet/volumemanager/populator, pkg/controller/volume/attachdetach/util).
func (p *PersistentVolume) IsAnothers(c Claim) bool {
	return p.Claim != (ClaimKey{}) && (p.Claim != c.Key || p.ClaimUID != "" && c.UID != "" && p.ClaimUID != c.UID)
}

func (w *facts) resolvePV(name string) (VolumeID, Link) {
	pv := w.pvs.get(name)
	switch {
	case pv == nil || !pv.exists:
		return VolumeID{}, LinkUnseen
	case pv.Volume.IsZero():
		return VolumeID{}, LinkNone
	}
	return pv.Volume, LinkVolume
}

func (w *facts) resolvePod(p *Pod, v PodVolume) (VolumeID, Link) {
	if v.Claim == "" {
		if v.Inline.IsZero() {
			return VolumeID{}, LinkNone
		}
		return v.Inline, LinkVolume
	}
	rec := w.claims.get(ClaimKey{p.Namespace, v.Claim})
	if v.Ephemeral && rec != nil && rec.exists && rec.OwnerPod != p.UID {
		return VolumeID{}, LinkMissing
	}
	return w.resolveClaim(rec)
}

func (w *facts) resolveTicket(t *Ticket, v TicketVolume) (VolumeID, Link) {
	switch {
	case v.Claim != "":
		rec := w.claims.get(ClaimKey{t.ID.Namespace, v.Claim})
		if rec != nil && rec.exists && v.ClaimUID != "" && rec.UID != v.ClaimUID {
			return VolumeID{}, LinkMissing
		}
		return w.resolveClaim(rec)
	case v.PersistentVolume != "":
		return w.resolvePV(v.PersistentVolume)
	}
	return VolumeID{}, LinkMissing
}

// resolveOnce: missing evidence frees nothing. A bound pod keeps its volumes if its claim or
// PersistentVolume vanishes, and a newly bound claim keeps its slot until the PersistentVolume is seen.
func resolveOnce(is VolumeID, link Link, was VolumeID) VolumeID {
	switch {
	case link == LinkNone:
		return VolumeID{}
	case link == LinkVolume, was.IsZero():
		return is
	case was.IsReal():
		return was
	case is.IsZero() && (link == LinkUnbound || link == LinkUnseen):
		return was
	}
	return is
}
