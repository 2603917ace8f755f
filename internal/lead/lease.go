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

// Lease is contested by processes. Safe for parallel use.
type Lease struct {
	resourcelock.Interface
	times Times
	clock clock

	mu      sync.Mutex
	tried   bool      // a taking write was sent, with any outcome
	renewed time.Time // start of the last successful write
	epoch   int64
	before  string // the former holder
	absent  bool   // missing at the last read
}

// NewLease wraps a lock; it holds nothing yet.
func NewLease(lock resourcelock.Interface, times Times) *Lease {
	return &Lease{Interface: lock, times: times, clock: realClock()}
}

// Get reads the Lease and notes its holder.
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

// Create writes a new Lease.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Create(ctx, record))
}

// Update takes or renews the Lease.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Update(ctx, record))
}

func (l *Lease) try() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = true
	return l.clock.now()
}

// wrote notes a write: the lease counts from before its sending.
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

// Held says whether the Lease still runs by this process's clock, even after a pause.
func (l *Lease) Held() bool { return l.clock.now().Before(l.until()) }

func (l *Lease) wasAbsent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.absent
}

// release gives the own Lease up, and reads it again if the API server may still carry out an abandoned
// write. Without an attempt it asks nothing.
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

// Hold waits for the Lease and runs work. A loss (ErrLost) cancels work's context; work must watch ctx.
// Then Hold gives the Lease up within a timeout, later than client-go would, unless work returns
// ErrUnsettled.
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
	case <-ctx.Done(): // it may just take the Lease
	case leading := <-started:
		err = work(leading)
		lost = leading.Err() != nil
	}
	stopElecting()
	<-elected // it shares the Lease's memory
	if lost {
		return errors.Join(ErrLost, err)
	}
	if errors.Is(err, ErrUnsettled) {
		return err
	}
	return errors.Join(err, l.release(ctx, timeout))
}
