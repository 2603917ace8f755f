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

// ErrLost: another process may lead. The former leader must forget all and start over.
var ErrLost = errors.New("the leader's lease is lost")

// ErrUnsettled: a write of the work may be under way. The Lease is not handed over, so that the next leader
// waits.
var ErrUnsettled = errors.New("a write may still be under way")

// Config names the Lease, and its times.
type Config struct {
	Namespace, Name string
	Times
	// WriteTimeout is a leader's longest write.
	WriteTimeout time.Duration
	// Labels are put on the Lease by its new holder, or nil.
	Labels map[string]string
}

// Term is one time of leading.
type Term struct {
	Epoch int64            // rises by leader
	Until func() time.Time // end of the lease by this process's clock: see clock
	Clean bool             // the former leader handed over
	Lost  <-chan struct{}  // closed at the loss of the lease: no hand-over then
}

func (l *Lease) term(leading context.Context) Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Term{Epoch: l.epoch, Until: l.until, Clean: l.before == "" && !l.absent, Lost: leading.Done()}
}

// Lead waits for the lead, and runs work until ctx is done or the lease is lost (ErrLost). It gives the
// Lease up after work.
func Lead(ctx context.Context, config Config, kube kubernetes.Interface, work func(context.Context, Term) error) error {
	lock, err := newLock(config, kube)
	if err != nil {
		return err
	}
	return LeadBy(ctx, config, lock, nil, work)
}

// LeadBy is Lead with the caller's lock, without config's Namespace and Labels. health, if set, reports the
// renewals.
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
			return nil // so its requests failed
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

// waitOut waits for a silent leader's last writes: the API server may still carry these out. It returns
// whether the term begins clean.
//
// The leader of a deleted Lease may write until its lease ends by its own clock.
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
