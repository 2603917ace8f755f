// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/test/apitest"
)

const name = "moorage-controller"

func quick() Config {
	return Config{
		Namespace: "moorage-system", Name: name,
		Times:        Times{Duration: time.Second, RenewDeadline: 600 * time.Millisecond, RetryPeriod: 20 * time.Millisecond},
		WriteTimeout: 100 * time.Millisecond,
	}
}

type candidate struct {
	cancel context.CancelFunc
	terms  chan Term
	end    chan struct{} // closed: work may return
	result chan error
}

func run(t *testing.T, server *apitest.Server, config Config) *candidate {
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{cancel, make(chan Term, 1), make(chan struct{}), make(chan error, 1)}
	go func() {
		c.result <- Lead(ctx, config, server.Kube, func(ctx context.Context, term Term) error {
			c.terms <- term
			<-ctx.Done()
			<-c.end
			return nil
		})
	}()
	return c
}

func holder(t *testing.T, server *apitest.Server) string {
	t.Helper()
	var lease coordinationv1.Lease
	if !server.Get("leases", "moorage-system", name, &lease) {
		t.Fatal("there is no Lease")
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestHandingOver(t *testing.T) {
	server := apitest.Start(t)
	server.Put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: name}})
	first := run(t, server, quick())
	one := <-first.terms
	if !one.Clean || !one.Until().After(time.Now()) {
		t.Errorf("the first term is %+v", one)
	}
	second := run(t, server, quick())
	first.cancel()
	if holder(t, server) == "" {
		t.Error("the Lease is given up while the work goes on")
	}
	select {
	case <-one.Lost:
		t.Error("the Lease is called lost, and is to be handed over")
	default:
	}
	close(first.end)
	if err := <-first.result; err != nil {
		t.Errorf("being told to stop is no error: %v", err)
	}
	two := <-second.terms
	if !two.Clean || two.Epoch <= one.Epoch {
		t.Errorf("the second term is %+v, after %+v", two, one)
	}
	second.cancel()
	close(second.end)
	<-second.result
	if holder(t, server) != "" {
		t.Error("the Lease is not given up")
	}
}

// A suspended machine's monotonic clock stands still. A wall clock put back makes no lease longer.
func TestLeaseEndsByEitherClock(t *testing.T) {
	server := apitest.Start(t)
	kept, err := newLock(quick(), server.Kube)
	if err != nil {
		t.Fatal(err)
	}
	lock := NewLease(kept, quick().Times)
	start := time.Now()
	var monotonic, wall time.Duration // since the start
	lock.clock = clock{func() time.Time { return start.Add(monotonic) }, func() time.Time { return start.Round(0).Add(wall) }}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 1}
	if err := lock.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what            string
		monotonic, wall time.Duration
		want            time.Duration
	}{
		{"at once", 0, 0, time.Second},
		{"later", 400 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond},
		{"after a suspension", 400 * time.Millisecond, time.Hour, time.Second - time.Hour},
		{"after the wall clock was put back", time.Second, -time.Hour, 0},
	} {
		monotonic, wall = test.monotonic, test.wall
		if got := lock.until().Sub(lock.clock.now()); got != test.want {
			t.Errorf("%s the lease lasts for %s, not %s", test.what, got, test.want)
		}
	}
	monotonic, wall = time.Hour, time.Hour
	if err := lock.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if got := lock.until().Sub(lock.clock.now()); got != time.Second {
		t.Errorf("after it was renewed the lease lasts for %s", got)
	}
}

// The Lease may have another holder by then.
func TestLosingTheLease(t *testing.T) {
	server := apitest.Start(t)
	c := run(t, server, quick())
	term := <-c.terms
	now := metav1.NowMicro()
	server.Put("leases", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](600),
			AcquireTime: &now, RenewTime: &now, LeaseTransitions: ptr.To[int32](9)},
	})
	<-term.Lost
	close(c.end)
	if err := <-c.result; !errors.Is(err, ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
	if got := holder(t, server); got != "somebody" {
		t.Errorf("the Lease is %q's now", got)
	}
}

func TestUnsettledWritesKeepTheLease(t *testing.T) {
	server := apitest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	err := Lead(ctx, quick(), server.Kube, func(ctx context.Context, _ Term) error {
		stop()
		<-ctx.Done()
		return ErrUnsettled
	})
	if got := holder(t, server); !errors.Is(err, ErrUnsettled) || got == "" {
		t.Errorf("error %v, and the Lease is %q's", err, got)
	}
	second := run(t, server, quick())
	if term := <-second.terms; term.Clean {
		t.Errorf("the next term is %+v", term)
	}
	second.cancel()
	close(second.end)
	<-second.result
}

// A dead leader's writes may still be under way.
func TestFollowingADeadLeader(t *testing.T) {
	server := apitest.Start(t)
	old := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	server.Put("leases", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead"), LeaseDurationSeconds: ptr.To[int32](1),
			AcquireTime: &old, RenewTime: &old, LeaseTransitions: ptr.To[int32](4)},
	})
	acquired := make(chan time.Time, 1)
	server.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb == "update" && len(acquired) == 0 {
			acquired <- time.Now()
		}
		return nil
	})
	config := quick()
	c := run(t, server, config)
	term := <-c.terms
	if waited := time.Since(<-acquired); waited < config.WriteTimeout {
		t.Errorf("work began %s after the Lease was taken, want %s or more", waited, config.WriteTimeout)
	}
	if term.Clean || term.Epoch != 5 {
		t.Errorf("the term is %+v", term)
	}
	c.cancel()
	close(c.end)
	<-c.result
}

// Its leader may still write until its lease ends by its own clock.
func TestDeletedLease(t *testing.T) {
	server := apitest.Start(t)
	created := make(chan time.Time, 1)
	server.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb == "create" {
			created <- time.Now()
		}
		return nil
	})
	config := quick()
	c := run(t, server, config)
	term := <-c.terms
	if waited, want := time.Since(<-created), config.Duration+config.WriteTimeout; waited < want {
		t.Errorf("work began %s after the Lease was made, want %s or more", waited, want)
	}
	if term.Clean {
		t.Errorf("the term is %+v", term)
	}
	c.cancel()
	close(c.end)
	<-c.result
}

func TestBeingToldToStopWhileElected(t *testing.T) {
	for name, answer := range map[string]error{"answered": nil, "not answered": errors.New("the connection breaks")} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			ctx, stop := context.WithCancel(t.Context())
			server.Intercept(func(r apitest.Request, serve func()) error {
				serve()
				if r.Verb != "create" {
					return nil
				}
				stop()
				return answer
			})
			err := Lead(ctx, quick(), server.Kube, func(ctx context.Context, _ Term) error { <-ctx.Done(); return nil })
			if left := holder(t, server); err != nil || left != "" {
				t.Errorf("the Lease is left with %q (%v)", left, err)
			}
		})
	}
}

func TestBeingToldToStopBeforeLeading(t *testing.T) {
	server := apitest.Start(t)
	first := run(t, server, quick())
	<-first.terms
	second := run(t, server, quick())
	second.cancel()
	if err := <-second.result; err != nil {
		t.Error(err)
	}
	if slices.Contains(server.Writes(), "delete leases moorage-system/moorage-controller") || holder(t, server) == "" {
		t.Error("the Lease of another is gone")
	}
	first.cancel()
	close(first.end)
	<-first.result
}
