// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/watch"
)

// ErrNoLease says that a write was not begun: its deadline would lie outside the lease.
var ErrNoLease = errors.New("the leader's lease is over")

// Config is an Executor's environment.
type Config struct {
	// Kube and Moorage write. Their timeout should be Timeout. They should not limit their rate: a request
	// that waits its turn would use up its time.
	Kube    kubernetes.Interface
	Moorage client.Interface
	// Observer knows the objects, and takes in answers.
	Observer *watch.Observer
	// Events reports writes to holds, claims and tickets; may be nil.
	Events *report.Events
	// Timeout bounds each request.
	Timeout time.Duration
	// Turn waits until another request may be made; nil: at once.
	Turn func(context.Context) error
	// Background is Turn for each page of a list. Nil: as Turn.
	Background func(context.Context) error
	// Lease says until when this process may write; nil: for ever.
	Lease func() time.Time
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Epoch is this term's number, written with every decision on a ticket. It rises from leader to leader.
	Epoch int64
	// Token makes confirmation marks for attachments, unequal across all processes.
	Token func() string
}

// Validate names missing fields.
func (c Config) Validate() error {
	var errs []error
	if c.Kube == nil || c.Moorage == nil {
		errs = append(errs, errors.New("Kube and Moorage, the clients to write with, are needed"))
	}
	if c.Observer == nil {
		errs = append(errs, errors.New("Observer is missing"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("Timeout must be above 0, and is %s", c.Timeout))
	}
	if c.Token == nil {
		errs = append(errs, errors.New("Token is missing"))
	}
	return errors.Join(errs...)
}

// Executor executes steps. It remembers requests under way, and until when those without an answer may have
// an effect.
type Executor struct {
	config    Config
	unsettled unanswered
	mu        sync.Mutex // memory
	memory    protocol.Memory
	nodes     batcher[*shared] // patches of a Node's status
	lists     batcher[*shared] // of its pods
	scans     batcher[*shared] // of all objects of a kind
	looks     batcher[*shared] // at a Node
	holds     holdTurns
	lines     lineages
	// reported once
	droppedBoot sync.Once
}

// nodeRest is a Node patch's wait for others of its cause.
const nodeRest = 2 * time.Millisecond

// New returns an Executor for one term of leadership, without memories.
func New(config Config) (*Executor, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("execute: %w", err)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Turn == nil {
		config.Turn = func(context.Context) error { return nil }
	}
	if config.Background == nil {
		config.Background = config.Turn
	}
	if config.Lease == nil {
		config.Lease = func() time.Time { return time.Time{} }
	}
	e := &Executor{config: config, nodes: batcher[*shared]{rest: nodeRest}}
	e.memory.Epoch, e.memory.Outlast = config.Epoch, e.outlast()
	return e, nil
}

// Do executes a step and returns when the ledger knows its effect.
func (e *Executor) Do(ctx context.Context, step rules.Step) error {
	if err := e.run(ctx, running{Task: protocol.Do(step)}); err != nil {
		return fmt.Errorf("%s of %s: %w", step.Kind, step.Volume, err)
	}
	return nil
}

func (e *Executor) snapshot() ledger.Snapshot { return e.config.Observer.Snapshot() }
