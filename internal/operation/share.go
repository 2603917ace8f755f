// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// maxVolumes bounds a namespace's volumes in one decision: as many as its tickets can have.
const maxVolumes = MaxPerNamespace * maxMembers

func (w *Work) volumes() int { return max(1, len(w.Handles)) }

// share are the operations to look at now. A namespace with too many has its operations with a ticket, then
// the oldest; the others are reported as waiting. A namespace's requests cost others no time.
func (d *decision) share() []*Work {
	of, volumes := map[string][]*Work{}, map[string]int{}
	for i := range d.Works {
		w := &d.Works[i]
		of[w.Told.Namespace] = append(of[w.Told.Namespace], w)
		volumes[w.Told.Namespace] += w.volumes()
	}
	var all []*Work
	for namespace, works := range of {
		if volumes[namespace] > maxVolumes {
			works = d.oldestWorks(works)
		}
		all = append(all, works...)
	}
	return all
}

func (d *decision) oldestWorks(works []*Work) []*Work {
	has := map[string]bool{} // a ticket, or an unaccounted former one
	for _, t := range d.Tickets {
		has[t.Owner.UID] = true
	}
	for _, owner := range d.Past.Owners() {
		has[owner.UID] = true
	}
	works = slices.DeleteFunc(works, func(w *Work) bool { return !has[w.Object.UID] && !d.mayBeAsked(w) })
	slices.SortFunc(works, func(a, b *Work) int {
		if has[a.Object.UID] != has[b.Object.UID] {
			if has[a.Object.UID] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Object.UID, b.Object.UID))
	})
	left := maxVolumes
	for i, w := range works {
		if left -= w.volumes(); left < 0 && !has[w.Object.UID] {
			for _, waits := range works[i:] {
				d.trouble(waits, ReasonTooMany, fmt.Sprintf("namespace %s asks for operations of more than %d volumes: this one is looked at when older ones are over", w.Told.Namespace, maxVolumes))
			}
			return works[:i]
		}
	}
	return works
}

func (d *decision) mayBeAsked(w *Work) bool {
	if w.Operation != ledger.OperationSnapshot {
		return d.asked.Has(w.Operation)
	}
	return d.snapshots[w.Driver]
}
