// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// ErrLost says that another process leads now, or may lead soon. Whoever led has
// stopped, and must start over with nothing remembered.
var ErrLost = errors.New("the leader's lease is lost")

// Config says for which Lease processes compete, and how.
type Config struct {
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Duration, RenewDeadline and RetryPeriod are those of the election.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// WriteTimeout is how long a write of a leader takes at most.
	WriteTimeout time.Duration
	// Labels are put on the Lease by whoever takes it; nil: none.
	Labels map[string]string
	// Untouched says whether no leader has written anything yet: asked where there
	// is no Lease. Without it, one is always taken for deleted.
	Untouched func(context.Context) (bool, error)
}

// Term is one time of leading.
type Term struct {
	Epoch int64            // rises from leader to leader
	Until func() time.Time // the end of the lease, by this process's clock
	Clean bool             // the leader before has handed the lease over, or there was none
	Lost  <-chan struct{}  // closed when the lease is lost: then it is not handed over
}

// lock is the Lease, and what its writes tell about the term.
type lock struct {
	resourcelock.Interface
	duration time.Duration

	mu      sync.Mutex
	tried   bool      // a write that takes the Lease was sent, whatever came of it
	renewed time.Time // when the last successful write began
	epoch   int64
	before  string // who held the lease before this process
	absent  bool   // there was no Lease when it was last read
}

// Get reads the Lease and notes who holds it.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
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
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Create(ctx, record))
}

// Update takes or renews the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Update(ctx, record))
}

// try notes that a write begins, and when.
func (l *lock) try() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = true
	return time.Now()
}

// wrote notes a write: the lease counts from before it was sent.
func (l *lock) wrote(began time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil && record.HolderIdentity == l.Identity() {
		l.mu.Lock()
		l.renewed, l.epoch = began, int64(record.LeaderTransitions)
		l.mu.Unlock()
	}
	return err
}

func (l *lock) hasTried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

func (l *lock) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed.Add(l.duration)
}

// term is the one that ends with leading.
func (l *lock) term(leading context.Context) Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Term{Epoch: l.epoch, Until: l.until, Clean: l.before == "" && !l.absent, Lost: leading.Done()}
}

func (l *lock) wasAbsent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.absent
}

// release gives the Lease up, if this process has it. A write that the elector
// gave up may still be carried out by the API server: then it is read again. Who
// never tried to take the Lease asks nobody.
func (l *lock) release(ctx context.Context, timeout time.Duration) error {
	if !l.hasTried() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
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
}

// Lead waits until this process leads, and runs work until ctx is done or the
// lease is lost, which is ErrLost. client-go would give the Lease up before work
// has stopped, so that is done here: the next leader then need not wait for
// anything.
func Lead(ctx context.Context, config Config, kube kubernetes.Interface, work func(context.Context, Term) error) error {
	lock, err := newLock(config, kube)
	if err != nil {
		return err
	}
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: config.Name,
		LeaseDuration: config.Duration, RenewDeadline: config.RenewDeadline, RetryPeriod: config.RetryPeriod,
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
	var leading context.Context
	select {
	case <-ctx.Done():
		stopElecting()
		<-elected // it may have taken the Lease at this very moment
		return lock.release(ctx, config.WriteTimeout)
	case leading = <-started:
	}
	working, stop := context.WithCancel(leading)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	term := lock.term(leading)
	if term.Clean, err = waitOut(working, config, lock, term.Clean); err == nil {
		err = work(working, term)
	}
	lost := leading.Err() != nil
	stopElecting()
	<-elected // it shares the lock's memory of the Lease
	switch {
	case lost:
		return ErrLost
	case ctx.Err() != nil:
		err = nil
	}
	return errors.Join(err, lock.release(ctx, config.WriteTimeout))
}

func newLock(config Config, kube kubernetes.Interface) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find out this host's name: %w", err)
	}
	return &lock{duration: config.Duration, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
		Client:     kube.CoordinationV1(),
		Labels:     config.Labels,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// waitOut lets the last writes of a leader that was not heard of any more run
// out: its deadlines lay inside the lease, but the API server may still be at
// one of its requests. It returns whether the term begins clean.
//
// Where there was no Lease, somebody may have deleted it: a leader that does not
// know of that yet writes for as long as its lease lasts by its own clock.
func waitOut(ctx context.Context, config Config, l *lock, clean bool) (bool, error) {
	if clean {
		return true, nil
	}
	why, limit := "The leader before did not hand over", config.WriteTimeout
	if l.wasAbsent() {
		untouched, err := config.untouched(ctx)
		if err != nil || untouched {
			return untouched, err
		}
		why, limit = "There was no Lease, and an earlier leader has left its traces", config.Duration+config.WriteTimeout
	}
	klog.FromContext(ctx).Info(why+"; waiting until its last write must be over", "for", limit)
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(limit):
		return false, nil
	}
}

// untouched asks until there is an answer.
func (c Config) untouched(ctx context.Context) (bool, error) {
	for c.Untouched != nil {
		untouched, err := c.Untouched(ctx)
		if err == nil {
			return untouched, nil
		}
		klog.FromContext(ctx).Error(err, "It can't be found out whether there was a leader before; asking again")
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(c.RetryPeriod):
		}
	}
	return false, nil
}
