// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Vanish removes a PersistentVolume with stripped finalizers. Its claim is then lost, as the binder says.
func (w *World) Vanish(name string) bool {
	pv, exists := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, name)
	if !exists {
		return false
	}
	w.vanished = with(w.vanished, name, pv)
	w.Drop(PersistentVolumes, name)
	if c, bound := typed[ledger.Claim](&w.Objects, Claims, pv.Claim.String()); bound {
		c.Bound, c.Lost = false, true
		w.Put(c)
	}
	return true
}

func (w *World) Import(vanished, name string, claim ledger.ClaimKey) bool {
	pv, known := w.vanished[vanished]
	if !known || w.Get(PersistentVolumes, name) != nil {
		return false
	}
	w.Put(ledger.PersistentVolume{Name: name, UID: name, Volume: pv.Volume, Access: pv.Access, Claim: claim})
	w.Put(ledger.Claim{Key: claim, UID: claim.Name, PersistentVolume: name, Bound: true, Access: pv.Access})
	return true
}

func (w *World) Vanished(name string) (ledger.VolumeID, bool) {
	pv, vanished := w.vanished[name]
	return pv.Volume, vanished
}

// A process that has not seen the loss takes LostBy for the claim's volume.
func (w *World) LostBy(key ledger.ClaimKey) (ledger.VolumeID, bool) {
	c, exists := typed[ledger.Claim](&w.Objects, Claims, key.String())
	if !exists || !c.Lost {
		return ledger.VolumeID{}, false
	}
	return w.Vanished(c.PersistentVolume)
}

func (w *World) hasPV(v ledger.VolumeID, version int64) bool {
	for _, e := range w.all[PersistentVolumes] {
		if e.(ledger.PersistentVolume).Volume == v && VersionOf(e) <= version {
			return true
		}
	}
	return false
}

// Existed: a disk is attached, or has a PersistentVolume no newer than version. It does not know a detach's
// lie, nor a late attach at a machine whose node has another machine since.
func (w *World) Existed(v ledger.VolumeID, version int64) bool {
	known := func(id string) bool { return !w.Machines[id].Replaced }
	return !w.Disks.Lied[v] && slices.ContainsFunc(w.Disks.At[v], known) || w.hasPV(v, version)
}

// Attaches knows the volume also after its PersistentVolume is gone; there says whether that exists.
func (w *World) Attaches(a ledger.Attachment) (v ledger.VolumeID, there bool) {
	if v, there = w.Source(a); !there {
		v, _ = w.Vanished(a.PersistentVolume)
	}
	return v, there
}
