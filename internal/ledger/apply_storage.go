// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
	"time"
)

func (p PersistentVolume) apply(l *Ledger, now time.Time, t *Touched) {
	rec := l.pv(p.Name)
	if rec.exists && !Newer(p.Version, rec.Version) {
		return
	}
	was, known := rec.Volume, rec.exists
	claimed := rec.Claim != p.Claim || rec.ClaimUID != p.ClaimUID
	rec.PersistentVolume, rec.exists = p, true
	if was != p.Volume {
		l.unlistPV(t, was, p.Name)
		l.outlived(t, rec, was)
	}
	if !p.Volume.IsZero() {
		v := l.volume(p.Volume)
		if i, found := slices.BinarySearch(v.PVs(), p.Name); !found {
			v.setPVs(insertAt(v.PVs(), i, p.Name))
		}
		v.named, v.Access = true, l.access(v)
		t.volume(p.Volume)
	}
	if was != p.Volume || !known || claimed {
		l.resolveAgain(now, t, rec)
	}
	if was != p.Volume || !known {
		l.matchEverywhere(now, t, p.Volume)
		l.resolveUnreadAgain(now, t, func(u *Unread) bool { return u.PersistentVolume == p.Name })
	}
}

func (e PersistentVolumeGone) apply(l *Ledger, now time.Time, t *Touched) {
	if old := l.facts.pvs.get(e.Name); old == nil || !old.exists {
		return
	}
	rec := l.pv(e.Name)
	was := rec.Volume
	rec.PersistentVolume, rec.exists = PersistentVolume{Name: e.Name}, false
	l.unlistPV(t, was, e.Name)
	l.outlived(t, rec, was)
	// Attachments stay with the volume they were made for.
	l.referChanged(now, t, rec)
	l.sweepPV(rec)
}

// outlived keeps a PersistentVolume's former volumes with attachments; was is the last. All are checked
// again, since their detach depends on the present volume.
func (l *Ledger) outlived(t *Touched, rec *pvRecord, was VolumeID) {
	var list []VolumeID
	for _, v := range add(rec.outlived, was) {
		if v.IsReal() && v != rec.Volume && l.facts.volumes.get(v).attachedFor(rec.Name) {
			list = append(list, v)
			t.volume(v)
		}
	}
	rec.outlived = list
	for _, name := range rec.attachments {
		t.volume(l.facts.attachments.get(name).at())
	}
}

// unlistPV removes a PersistentVolume's name from its former volume.
func (l *Ledger) unlistPV(t *Touched, v VolumeID, name string) {
	if v.IsZero() {
		return
	}
	rec := l.volume(v)
	rec.setPVs(drop(rec.PVs(), name))
	rec.Access = l.access(rec)
	t.volume(v)
	l.sweep(rec)
}

// access is the most restrictive of the PersistentVolumes'. Inline volumes count only if there never was a
// PersistentVolume: any tenant may name another's disk. Without references a volume keeps its access.
func (l *Ledger) access(v *Volume) Access {
	most := AccessUnknown
	for _, name := range v.PVs() {
		if pv := l.facts.pvs.get(name); pv != nil && pv.exists {
			most = max(most, pv.Access)
		}
	}
	switch {
	case v.pvs != nil:
		return most
	case v.named:
		return v.Access
	}
	return cmp.Or(l.inlineAccess(v), v.Access)
}

// inlineChanged updates a volume's access after a pod that may name it inline has come or gone.
func (l *Ledger) inlineChanged(t *Touched, v VolumeID) {
	old := l.facts.volumes.get(v)
	if old == nil || old.named {
		return
	}
	if access := l.access(old); access != old.Access {
		l.volume(v).Access = access
		t.volume(v)
	}
}

// inlineAccess is the most restrictive of the bound pods' inline volumes.
func (l *Ledger) inlineAccess(v *Volume) Access {
	most := AccessUnknown
	for i := range v.OnNodes {
		for _, u := range v.OnNodes[i].Users {
			if p := l.facts.pods.get(u.Pod); p != nil {
				most = max(most, p.inline[v.ID])
			}
		}
	}
	return most
}

func inlineOf(volumes []PodVolume) map[VolumeID]Access {
	var inline map[VolumeID]Access
	for _, v := range volumes {
		if v.Claim != "" || v.Inline.IsZero() {
			continue
		}
		if inline == nil {
			inline = map[VolumeID]Access{}
		}
		inline[v.Inline] = max(inline[v.Inline], v.Access)
	}
	return inline
}

func (l *Ledger) resolveAgain(now time.Time, t *Touched, rec *pvRecord) {
	l.referChanged(now, t, rec)
	for _, name := range rec.attachments {
		l.resolveAttachment(now, t, name)
	}
}

// referChanged tells claims and tickets even without another volume: their wait has changed.
func (l *Ledger) referChanged(now time.Time, t *Touched, rec *pvRecord) {
	for _, key := range rec.claims {
		l.claimChanged(now, t, key)
	}
	for _, id := range rec.tickets {
		l.updateTicketVolumes(now, t, id)
		t.ticket(id)
	}
}

func (c Claim) apply(l *Ledger, now time.Time, t *Touched) {
	rec := l.claim(c.Key)
	if rec.exists && !Newer(c.Version, rec.Version) {
		return
	}
	old := rec.Claim
	rec.Claim, rec.exists = c, true
	l.relinkClaim(c.Key, old.PersistentVolume, c.PersistentVolume)
	l.claimChanged(now, t, c.Key)
}

func (e ClaimGone) apply(l *Ledger, now time.Time, t *Touched) {
	if old := l.facts.claims.get(e.Key); old == nil || !old.exists {
		return
	}
	rec := l.claim(e.Key)
	if pv := l.facts.pvs.get(rec.PersistentVolume); pv != nil && pv.exists {
		t.volume(pv.Volume) // no pod returns for it
	}
	l.relinkClaim(e.Key, rec.PersistentVolume, "")
	rec.Claim, rec.exists = Claim{Key: e.Key}, false
	l.claimChanged(now, t, e.Key)
	l.sweepClaim(rec)
}

func (l *Ledger) relinkClaim(key ClaimKey, was, is string) {
	if was == is {
		return
	}
	if was != "" {
		rec := l.pv(was)
		rec.claims = drop(rec.claims, key)
		l.sweepPV(rec)
	}
	if is != "" {
		rec := l.pv(is)
		rec.claims = add(rec.claims, key)
	}
}

// claimChanged tells pods and tickets even without a volume: their wait has changed.
func (l *Ledger) claimChanged(now time.Time, t *Touched, key ClaimKey) {
	rec := l.facts.claims.get(key)
	if rec == nil {
		return
	}
	if v, _ := l.resolveClaim(rec); !v.IsZero() {
		t.volume(v)
	}
	for _, uid := range rec.pods {
		l.updatePodVolumes(now, t, uid)
		t.pod(uid)
	}
	for _, id := range rec.tickets {
		l.updateTicketVolumes(now, t, id)
		t.ticket(id)
	}
}

func (c StorageClass) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.classes.get(c.Name)
	if old != nil && !Newer(c.Version, old.Version) {
		return
	}
	l.facts.classes.put(l.gen, c.Name, &c)
	if old == nil || old.Driver != c.Driver {
		l.classChanged(now, t, c.Name)
	}
}

// References to the class's unbound claims stay: see resolveOnce.
func (e StorageClassGone) apply(l *Ledger, _ time.Time, _ *Touched) {
	l.facts.classes.del(l.gen, e.Name)
}

// classChanged checks all claims, since classes change rarely.
func (l *Ledger) classChanged(now time.Time, t *Touched, class string) {
	var keys []ClaimKey
	for rec := range l.facts.claims.all() {
		if rec.exists && rec.Class == class && !rec.Bound {
			keys = append(keys, rec.Key)
		}
	}
	for _, key := range keys {
		l.claimChanged(now, t, key)
	}
}

func (d Driver) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.drivers.get(d.Name)
	if old != nil && !Newer(d.Version, old.Version) {
		return
	}
	l.facts.drivers.put(l.gen, d.Name, &d)
	l.learnDriver(now, t, d.Name)
	was := Driver{AttachRequired: true}
	if old != nil {
		was = *old
	}
	l.driverChanged(t, d.Name, was.AttachRequired == d.AttachRequired && was.NeedsNode == d.NeedsNode && was.SELinuxMount == d.SELinuxMount)
}

func (e DriverGone) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.facts.drivers.get(e.Name)
	if old == nil {
		return
	}
	l.facts.drivers.del(l.gen, e.Name)
	l.driverChanged(t, e.Name, old.AttachRequired && !old.NeedsNode && !old.SELinuxMount)
}

// learnDriver notes a CSI driver, by a CSIDriver or a registration. It stays so: an upgrade may remove
// both. Before, volumes of this provisioner need no attachment.
func (l *Ledger) learnDriver(now time.Time, t *Touched, name string) {
	if l.facts.csi.get(name) != nil {
		return
	}
	l.facts.csi.put(l.gen, name, &name)
	var classes []string
	for class := range l.facts.classes.all() {
		if class.Driver == name {
			classes = append(classes, class.Name)
		}
	}
	for _, class := range classes {
		l.classChanged(now, t, class)
	}
}

func (l *Ledger) driverChanged(t *Touched, driver string, same bool) {
	if same {
		return
	}
	for v := range l.facts.volumes.all() {
		if v.ID.Driver == driver {
			t.Volumes = append(t.Volumes, v.ID)
		}
	}
}

// claim and pv return a record for change, new if needed.
func (l *Ledger) claim(key ClaimKey) *claimRecord {
	old := l.facts.claims.get(key)
	if old != nil && old.gen == l.gen {
		return old
	}
	rec := &claimRecord{Claim: Claim{Key: key}}
	if old != nil {
		*rec = *old
	}
	rec.gen = l.gen
	l.facts.claims.put(l.gen, key, rec)
	return rec
}

func (l *Ledger) pv(name string) *pvRecord {
	old := l.facts.pvs.get(name)
	if old != nil && old.gen == l.gen {
		return old
	}
	rec := &pvRecord{PersistentVolume: PersistentVolume{Name: name}}
	if old != nil {
		*rec = *old
	}
	rec.gen = l.gen
	l.facts.pvs.put(l.gen, name, rec)
	return rec
}

func (l *Ledger) sweepClaim(rec *claimRecord) {
	if rec.idle() {
		l.facts.claims.del(l.gen, rec.Key)
	}
}

func (l *Ledger) sweepPV(rec *pvRecord) {
	if rec.idle() {
		l.facts.pvs.del(l.gen, rec.Name)
	}
}
