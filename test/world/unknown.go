// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// MayBeUnknown: evidence says that a volume is at a node, or may have been when a Node of that name was
// deleted or made, and no VolumeAttachment there has ended since.
func (w *World) MayBeUnknown(at At) bool { return w.Judge.unsure[at] || w.mayBeAt(at.Node)[at.Volume] }

func (j *Judge) nodeReplaced(w *World, n ledger.NodeName) {
	for v := range w.mayBeAt(n) {
		j.unsure = with(j.unsure, At{v, n}, true)
	}
}

// The reason goes with the last VolumeAttachment, unless the volume may have been left there.
func (j *Judge) detachedLast(w *World, at At) {
	h, _ := w.Hold(at.Volume)
	if h.Node == at.Node && h.Stays {
		return
	}
	for _, key := range w.Keys(Attachments) {
		a, _ := w.Attachment(key)
		if v, _ := w.Attaches(a); v == at.Volume && a.Node == at.Node {
			return
		}
	}
	if j.unsure[at] {
		j.unsure = without(j.unsure, at)
	}
}

func (w *World) mayBeAt(n ledger.NodeName) map[ledger.VolumeID]bool {
	at := w.bound(n)
	for _, key := range w.Keys(Attachments) {
		a, _ := w.Attachment(key)
		if v, _ := w.Attaches(a); a.Node == n && v.IsReal() {
			at[v] = true
		}
	}
	for _, e := range w.all[Holds] {
		h := e.(ledger.HoldSeen)
		if _, fenced := h.Hold.Fence(n); fenced || h.Hold.Node == n {
			at[h.Volume] = true
		}
	}
	for _, m := range w.machinesOf(n) {
		for _, v := range m.Staged {
			at[v] = true
		}
		for v, machines := range w.Disks.At {
			if slices.Contains(machines, m.ID) {
				at[v] = true
			}
		}
	}
	return at
}
