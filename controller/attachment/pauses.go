// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
)

// pauses is for parallel use.
type pauses struct {
	mu    sync.Mutex
	steps *protocol.Pauses
}

func newPauses() *pauses { return &pauses{steps: protocol.NewPauses(work.Spread)} }

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

func (p *pauses) due(id ledger.VolumeID, planned []rules.Step, now time.Time) ([]rules.Step, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps.Due(id, planned, now)
}

func (p *pauses) begin(step rules.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps.Begin(step)
}

func (p *pauses) end(step rules.Step, err error, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps.End(step, protocol.AttemptEnd(err), now)
}
