// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/work"
)

// pauses is flow.Pauses for parallel use.
type pauses struct {
	mu    sync.Mutex
	steps *flow.Pauses
}

func newPauses() *pauses { return &pauses{steps: flow.NewPauses(work.Spread)} }

func (p *pauses) news(id ledger.VolumeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps.News(id)
}

func (p *pauses) decide(id ledger.VolumeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps.Decide(id)
}

func (p *pauses) due(id ledger.VolumeID, planned []arbiter.Step, now time.Time) ([]arbiter.Step, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps.Due(id, planned, now)
}

func (p *pauses) begin(step arbiter.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps.Begin(step)
}

func (p *pauses) end(step arbiter.Step, err error, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps.End(step, flow.AttemptEnd(err), now)
}
