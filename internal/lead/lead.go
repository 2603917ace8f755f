// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLost says that another process leads now, or may lead soon. The former leader has stopped, and
// must start over with nothing remembered.
var ErrLost = errors.New("the leader's lease is lost")

// ErrUnsettled is for the work of a leader: a write of it may still be under way. The Lease is then
// not handed over, so that the next leader waits.
var ErrUnsettled = errors.New("a write may still be under way")

// Config names the Lease, and its times.
type Config struct {
	// Namespace and Name of the Lease.
	Namespace, Name string
	Times
	// WriteTimeout is how long a write of a leader takes at most.
	WriteTimeout time.Duration
	// Labels are put on the Lease by its new holder; nil: none.
	Labels map[string]string
}

// Term is one time of leading.
type Term struct {
	Epoch int64            // rises from leader to leader
	Until func() time.Time // the end of the lease, by this process's present clock: see clock
	Clean bool             // the leader before has handed the lease over
	Lost  <-chan struct{}  // closed when the lease is lost: then it is not handed over
}

// term is the term that ends with leading.
func (l *Lease) term(leading context.Context) Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Term{Epoch: l.epoch, Until: l.until, Clean: l.before == "" && !l.absent, Lost: leading.Done()}
}

// Lead waits until this process leads, and runs work until ctx is done or the
// lease is lost, which is ErrLost. The Lease is given up when work has stopped, so
// that the next leader need not wait for anything.
func Lead(ctx context.Context, config Config, kube kubernetes.Interface, work func(context.Context, Term) error) error {
	lock, err := newLock(config, kube)
	if err != nil {
		return err
	}
	return LeadBy(ctx, config, lock, nil, work)
}

// LeadBy is Lead with a lock that the caller has made. It needs neither Namespace nor Labels of config.
// health, if set, says whether renewing goes on.
func LeadBy(ctx context.Context, config Config, lock resourcelock.Interface, health *leaderelection.HealthzAdaptor, work func(context.Context, Term) error) error {
	lease := NewLease(lock, config.Times)
	return lease.Hold(ctx, config.Name, health, config.WriteTimeout, func(leading context.Context) error {
		working, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		term, err := lease.term(leading), error(nil)
		if term.Clean, err = waitOut(working, config, lease, term.Clean); err == nil {
			err = work(working, term)
		}
		if leading.Err() != nil || ctx.Err() != nil && !errors.Is(err, ErrUnsettled) {
			return nil // its requests have failed for that
		}
		return err
	})
}

func newLock(config Config, kube kubernetes.Interface) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find out this host's name: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
		Client:     kube.CoordinationV1(),
		Labels:     config.Labels,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

// waitOut lets the last writes of a leader that was not heard of any more run
// out: its deadlines lay inside the lease, but the API server may still be at
// one of its requests. It returns whether the term begins clean.
//
// A missing Lease may have been deleted: its leader may not know that yet, and writes for as long as
// its lease lasts by its own clock.
func waitOut(ctx context.Context, config Config, l *Lease, clean bool) (bool, error) {
	if clean {
		return true, nil
	}
	why, limit := "The leader before did not hand over", config.WriteTimeout
	if l.wasAbsent() {
		why, limit = "There was no Lease, and a former leader may not know yet that it was deleted", config.Duration+config.WriteTimeout
	}
	klog.FromContext(ctx).Info(why+"; waiting until its last write must be over", "for", limit)
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(limit):
		return false, nil
	}
}
