// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// All tests of the patch hold, or nothing happens.
func (w *World) patchNode(r Request) Answer {
	now, exists := w.Node(r.Read.Name)
	p := r.Patch
	switch {
	case !exists:
		return Answer{Code: NotFound}
	case now.UID != p.UID, !slices.Equal(now.Reported, r.Read.Reported),
		p.InUse && !slices.Equal(now.InUse, r.Read.InUse), p.Version != "" && now.Version != p.Version:
		return Answer{Code: Invalid}
	}
	was := now.Reported
	now.Reported = append(slices.DeleteFunc(slices.Clone(was), func(v ledger.VolumeID) bool { return !lacks(p.Out, v) }), p.In...)
	w.Judge.forcesUnnamed(w, now.Name, was, p.Changes)
	if slices.Equal(was, now.Reported) {
		return answer(now)
	}
	w.Judge.reports(w, now, was, p.Changes)
	return answer(w.Put(now))
}
