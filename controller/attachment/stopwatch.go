// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

// stopwatch measures attaches and detaches, only for metrics.
type stopwatch struct {
	metrics *report.Metrics

	mu     sync.Mutex
	attach beginnings
	detach beginnings
}

type beginnings map[ledger.VolumeID]map[ledger.NodeName]time.Time

func newStopwatch(metrics *report.Metrics) *stopwatch {
	return &stopwatch{metrics: metrics, attach: beginnings{}, detach: beginnings{}}
}

// done notes a step's begin or end; true: an attach has ended with the volume reported.
func (w *stopwatch) done(step rules.Step, began, now time.Time) (attached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch step.Kind {
	case rules.CreateAttachment:
		w.attach.start(step.Volume, step.Node, began)
	case rules.Unreport:
		w.detach.start(step.Volume, step.Node, began)
	case rules.Report:
		w.detach.end(step.Volume, step.Node)
		if at, ok := w.attach.end(step.Volume, step.Node); ok {
			w.metrics.Attached(step.Volume.Driver, now.Sub(at))
			return true
		}
		return step.Volume.NoAttach()
	default: // begins and ends nothing that is timed
	}
	return false
}

// look ends measurements of detaches without attachments and of abandoned attaches, but none during a step.
func (w *stopwatch) look(v *ledger.Volume, id ledger.VolumeID, busy map[ledger.NodeName]bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node := range w.detach[id] {
		if v.OnNode(node).HasAttachments() || busy[node] {
			continue
		}
		if at, ok := w.detach.end(id, node); ok {
			w.metrics.Detached(id.Driver, now.Sub(at))
		}
	}
	for node := range w.attach[id] {
		if !v.OnNode(node).HasAttachments() && !busy[node] {
			w.attach.end(id, node)
		}
	}
}

// start keeps the first time.
func (b beginnings) start(v ledger.VolumeID, n ledger.NodeName, at time.Time) {
	if b[v] == nil {
		b[v] = map[ledger.NodeName]time.Time{}
	}
	if _, running := b[v][n]; !running {
		b[v][n] = at
	}
}

// end returns the begin; false: there was none.
func (b beginnings) end(v ledger.VolumeID, n ledger.NodeName) (time.Time, bool) {
	at, ok := b[v][n]
	delete(b[v], n)
	if len(b[v]) == 0 {
		delete(b, v)
	}
	return at, ok
}
