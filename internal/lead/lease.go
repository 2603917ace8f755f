// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// Times are those of an election.
type Times struct{ Duration, RenewDeadline, RetryPeriod time.Duration }

// Lease is a Lease that processes compete for, with the results of this process's writes. Safe for
// parallel use.
type Lease struct {
	resourcelock.Interface
	times Times
	clock clock

	mu      sync.Mutex
	tried   bool      // a write that takes the Lease was sent, with any outcome
	renewed time.Time // when the last successful write began
	epoch   int64
	before  string // the holder before this process
	absent  bool   // there was no Lease when it was last read
}

// NewLease is the Lease that a lock keeps. It holds nothing yet.
func NewLease(lock resourcelock.Interface, times Times) *Lease {
	return &Lease{Interface: lock, times: times, clock: realClock()}
}

// Get reads the Lease and notes who holds it.
func (l *Lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		l.absent = true
	case err == nil && record.HolderIdentity != l.Identity():
		l.before, l.absent = record.HolderIdentity, false
	}
	return record, raw, err
}

// Create writes a Lease where there is none.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Create(ctx, record))
}

// Update takes or renews the Lease.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Update(ctx, record))
}

// try notes that a write begins, and when.
func (l *Lease) try() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = true
	return l.clock.now()
}

// wrote notes a write: the lease counts from before it was sent.
func (l *Lease) wrote(began time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil && record.HolderIdentity == l.Identity() {
		l.mu.Lock()
		l.renewed, l.epoch = began, int64(record.LeaderTransitions)
		l.mu.Unlock()
	}
	return err
}

func (l *Lease) hasTried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

func (l *Lease) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.now().Add(l.clock.left(l.renewed.Add(l.times.Duration)))
}

// Held says whether the Lease has not run out, by this process's clock. A process that
// was stopped for a while finds here that it does not lead any more.
func (l *Lease) Held() bool { return l.clock.now().Before(l.until()) }

func (l *Lease) wasAbsent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.absent
}

// release releases the Lease, if this process has it. The API server may still carry out a write that
// the elector gave up: then the Lease is read again. Without a try to take the Lease nothing is asked.
func (l *Lease) release(ctx context.Context, timeout time.Duration) error {
	if !l.hasTried() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		record, _, err := l.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil || record.HolderIdentity != l.Identity():
			return err
		}
		now := metav1.Now()
		return l.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	})
	if err != nil {
		return fmt.Errorf("give the Lease up: %w", err)
	}
	return nil
}

// Hold waits until this process has the Lease, and runs work. The context of work is
// canceled when the Lease is lost, which is ErrLost; that ctx is done is for work to
// see. When work has ended, Hold gives the Lease up, within a timeout: client-go
// would do so before. It keeps the Lease if work returns ErrUnsettled. health, if set, tells whether renewing goes on.
func (l *Lease) Hold(ctx context.Context, name string, health *leaderelection.HealthzAdaptor, timeout time.Duration, work func(leading context.Context) error) error {
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, Name: name, WatchDog: health,
		LeaseDuration: l.times.Duration, RenewDeadline: l.times.RenewDeadline, RetryPeriod: l.times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()
	elected := make(chan struct{})
	go func() {
		defer close(elected)
		elector.Run(electing)
	}()
	lost := false
	select {
	case <-ctx.Done(): // it may take the Lease at this very moment
	case leading := <-started:
		err = work(leading)
		lost = leading.Err() != nil
	}
	stopElecting()
	<-elected // it shares the memory of the Lease
	if lost {
		return errors.Join(ErrLost, err)
	}
	if errors.Is(err, ErrUnsettled) {
		return err
	}
	return errors.Join(err, l.release(ctx, timeout))
}
