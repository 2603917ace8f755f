// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// errLeaseLost says that another attacher works for the driver now, or may soon.
var errLeaseLost = errors.New("the lease is lost: another attacher works for the driver now")

// lockPrefix and the driver's name make the name of the Lease, the same as
// external-attacher's: of both, one works at a time.
const lockPrefix = "external-attacher-leader-"

// lease is the Lease, and when it was renewed last by this process's clock.
type lease struct {
	resourcelock.Interface
	duration time.Duration

	mu      sync.Mutex
	tried   bool // a write that takes the lease was sent, whatever came of it
	renewed time.Time
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Create(ctx, record))
}

func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.try()
	return l.wrote(began, record, l.Interface.Update(ctx, record))
}

// try notes that a write begins, and when.
func (l *lease) try() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = true
	return time.Now()
}

func (l *lease) hasTried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

// wrote notes a write: the lease counts from before it was sent.
func (l *lease) wrote(began time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
	case record.HolderIdentity == l.Identity():
		l.renewed = began
	default:
		l.renewed = time.Time{} // given up
	}
	return err
}

// held says whether the lease has not run out. A process that was stopped for a
// while finds here that it does not lead any more.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.renewed) < l.duration
}

// lead runs work while this process has the driver's lease, and gives it up
// when work has ended. The context of work is canceled when the lease is lost;
// that ctx is done is for work to see.
func lead(ctx context.Context, c Election, client kubernetes.Interface, driver string, health *leaderelection.HealthzAdaptor,
	work func(leading context.Context, held func() bool) error,
) error {
	lock, err := newLease(c, client, driver)
	if err != nil {
		return err
	}
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: clientName, WatchDog: health,
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
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
	case <-ctx.Done(): // it may be elected at this very moment
	case leading = <-started:
		err = work(leading, lock.held)
		if leading.Err() != nil {
			return errors.Join(errLeaseLost, err)
		}
	}
	stopElecting()
	<-elected
	// Client-go would give the lease up before work has ended.
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.RenewDeadline)
	defer cancel()
	return errors.Join(err, lock.release(releasing))
}

// release gives the lease up, if this process has it, so that the next attacher need
// not wait until it runs out. The last renewal, which nobody waits for any more, may
// come in between. Who never tried to take the lease asks nobody.
func (l *lease) release(ctx context.Context) error {
	if !l.hasTried() {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := l.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil || record.HolderIdentity != l.Identity():
			return err
		}
		now := metav1.Now()
		return l.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
		})
	})
	if err != nil {
		return fmt.Errorf("give the lease up: %w", err)
	}
	return nil
}

func newLease(c Election, client kubernetes.Interface, driver string) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for this process: %w", err)
	}
	// A container that starts again in its pod has both as before, and its lease
	// at once; two processes of one host have not.
	identity := lockName(host + "-" + strconv.Itoa(os.Getpid()))
	lock, err := resourcelock.NewWithLabels(resourcelock.LeasesResourceLock, namespace(c.Namespace), lockName(lockPrefix+driver),
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity}, c.Labels)
	if err != nil {
		return nil, fmt.Errorf("make the lock: %w", err)
	}
	return &lease{Interface: lock, duration: c.LeaseDuration}, nil
}

// lockName spells a name as csi-lib-utils does: letters, digits and "-", and an
// X after a "-" at the end.
func lockName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, name)
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return name
}

// namespace is where the Lease is: as told, or where the pod is, as
// csi-lib-utils looks for it.
func namespace(told string) string {
	mounted, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		mounted = nil // not in a pod
	}
	return cmp.Or(told, os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(mounted)), "default")
}
