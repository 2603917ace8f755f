// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// limits counts each driver's attaches and detaches that are under way, and
// keeps who waits because there are as many as its policy allows.
//
//	Invariant: total[d] = Σ under[v] over the volumes v of driver d
type limits struct {
	mu      sync.Mutex
	under   map[ledger.VolumeID]int
	total   map[string]int
	waiting map[string]map[ledger.VolumeID]bool
}

func newLimits() *limits {
	return &limits{
		under: map[ledger.VolumeID]int{}, total: map[string]int{}, waiting: map[string]map[ledger.VolumeID]bool{},
	}
}

// look counts one volume's operations anew, none of whose steps is in flight,
// and returns the volumes that need not wait any more.
func (l *limits) look(v *ledger.Volume, id ledger.VolumeID) []ledger.VolumeID {
	count := 0
	if v != nil {
		for i := range v.Places {
			for _, a := range v.Places[i].Attachments() {
				if a.Deleting || !a.Attached && a.AttachError.IsZero() {
					count++
				}
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.total[id.Driver]
	l.set(id, count)
	delete(l.waiting[id.Driver], id)
	if l.total[id.Driver] >= before {
		return nil
	}
	var free []ledger.VolumeID
	for w := range l.waiting[id.Driver] {
		free = append(free, w)
	}
	delete(l.waiting, id.Driver)
	return free
}

// admit returns the steps that may be done now: all but the beginnings of
// attaches and detaches for which the driver has no worker. none limits
// nothing.
func (l *limits) admit(id ledger.VolumeID, workers int, steps []arbiter.Step) []arbiter.Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	admitted := make([]arbiter.Step, 0, len(steps))
	for _, step := range steps {
		begins := step.Do == arbiter.CreateAttachment || step.Do == arbiter.DeleteAttachment
		switch {
		case !begins:
		case workers > 0 && l.total[id.Driver] >= workers:
			if l.waiting[id.Driver] == nil {
				l.waiting[id.Driver] = map[ledger.VolumeID]bool{}
			}
			l.waiting[id.Driver][id] = true
			continue
		default:
			l.set(id, l.under[id]+1)
		}
		admitted = append(admitted, step)
	}
	return admitted
}

// waits says whether a volume waits for a worker of its driver.
func (l *limits) waits(id ledger.VolumeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[id.Driver][id]
}

// set is called with mu held.
func (l *limits) set(id ledger.VolumeID, count int) {
	l.total[id.Driver] += count - l.under[id]
	if count == 0 {
		delete(l.under, id)
		return
	}
	l.under[id] = count
}
