// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type Disks struct {
	At   map[ledger.VolumeID][]string // machine IDs, sorted
	Lied map[ledger.VolumeID]bool     // reported a false outcome: no controller can keep this volume safe
}

func newDisks() Disks {
	return Disks{At: map[ledger.VolumeID][]string{}, Lied: map[ledger.VolumeID]bool{}}
}

func (d *Disks) clone() Disks { return Disks{d.At, maps.Clone(d.Lied)} } // At is replaced, never changed

func (w *World) Publish(v ledger.VolumeID, machine string) {
	if slices.Contains(w.Disks.At[v], machine) {
		return
	}
	w.Judge.publishes(w, v, machine)
	w.Disks.At = withList(w.Disks.At, v, include(w.Disks.At[v], machine, cmp.Compare[string]))
}

func (w *World) Unpublish(v ledger.VolumeID, machine string) {
	if !slices.Contains(w.Disks.At[v], machine) {
		return
	}
	w.Judge.unpublishes(w, v, machine)
	list := exclude(w.Disks.At[v], machine)
	w.Disks.At = withList(w.Disks.At, v, list)
	if len(list) == 0 {
		delete(w.Disks.At, v)
	}
}
