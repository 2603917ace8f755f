// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

// stopwatch measures attaches and detaches, for the metrics only.
type stopwatch struct {
	metrics *report.Metrics

	mu     sync.Mutex
	attach map[ledger.VolumeID]map[ledger.NodeName]time.Time
	detach map[ledger.VolumeID]map[ledger.NodeName]time.Time
}

func newStopwatch(metrics *report.Metrics) *stopwatch {
	return &stopwatch{
		metrics: metrics,
		attach:  map[ledger.VolumeID]map[ledger.NodeName]time.Time{},
		detach:  map[ledger.VolumeID]map[ledger.NodeName]time.Time{},
	}
}

// done notes what an executed step began or ended.
func (w *stopwatch) done(step arbiter.Step, began, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch step.Do {
	case arbiter.CreateAttachment:
		start(w.attach, step.Volume, step.Node, began)
	case arbiter.Unreport:
		start(w.detach, step.Volume, step.Node, began)
	case arbiter.Report:
		delete(w.detach, step.Volume)
		if at, ok := w.attach[step.Volume][step.Node]; ok {
			delete(w.attach, step.Volume)
			w.metrics.Attached(step.Volume.Driver, now.Sub(at))
		}
	}
}

// look ends the detaches of a volume that are over.
func (w *stopwatch) look(v *ledger.Volume, id ledger.VolumeID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, at := range w.detach[id] {
		if place := v.Place(node); place.Canonical() == nil {
			delete(w.detach[id], node)
			w.metrics.Detached(id.Driver, now.Sub(at))
		}
	}
	if len(w.detach[id]) == 0 {
		delete(w.detach, id)
	}
	if v == nil {
		delete(w.attach, id)
	}
}

func start(of map[ledger.VolumeID]map[ledger.NodeName]time.Time, v ledger.VolumeID, n ledger.NodeName, at time.Time) {
	if of[v] == nil {
		of[v] = map[ledger.NodeName]time.Time{}
	}
	if _, running := of[v][n]; !running {
		of[v][n] = at
	}
}
