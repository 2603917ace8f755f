// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

type fakes struct {
	handlers, caches time.Duration               // until they are complete
	failures         int                         // of CatchUp
	settle           func(context.Context) error // nil: there is nothing to settle
	until            func() time.Time

	began time.Time
	mu    sync.Mutex
	calls []string
	times map[string]time.Duration // of each call, since the beginning
}

func (f *fakes) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	f.times[call] = time.Since(f.began)
}

func (f *fakes) WaitForHandlersSync(ctx context.Context) error { return pause(ctx, f.handlers) }

func (f *fakes) WaitForSync(ctx context.Context) error {
	defer f.note("synced")
	return pause(ctx, f.caches)
}

func (f *fakes) DecideTickets(context.Context, lead.Term) (func(), error) { return func() {}, nil }

func (f *fakes) CatchUp(_ context.Context, until func() time.Time) error {
	f.note("catch up")
	if f.failures--; f.failures >= 0 {
		return errors.New("the API server is away")
	}
	f.until = until
	return nil
}

func (f *fakes) Run(ctx context.Context) {
	f.note("run")
	<-ctx.Done()
	f.note("stop")
}

type answering struct{ *fakes }

func (a answering) Run(ctx context.Context) error {
	a.note("answer")
	<-ctx.Done()
	a.note("answer no more")
	return nil
}

func (a answering) Lead(ctx context.Context, until func() time.Time) {
	if until().IsZero() {
		a.note("lead for ever")
	}
	<-ctx.Done()
	time.Sleep(time.Second) // until the Service leads here no more
	a.note("lead no more")
}

func (f *fakes) Settle(ctx context.Context) error {
	f.note("settle")
	defer f.note("settled")
	if f.settle == nil {
		return nil
	}
	return f.settle(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const me = "me"

type memory struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
	seen   *resourcelock.LeaderElectionRecord // by this process
}

func leaseOf(holder string) *resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	return &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now, LeaderTransitions: 3}
}

func (m *memory) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return nil, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "scheduler")
	}
	m.seen = m.record
	read := *m.record
	return &read, []byte(fmt.Sprint(read)), nil
}

func (m *memory) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return m.Update(ctx, r)
}

// Update fails if another process has written since the last read.
func (m *memory) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record != m.seen {
		return apierrors.NewConflict(coordinationv1.Resource("leases"), "scheduler", errors.New("another version"))
	}
	m.record, m.seen = &r, &r
	return nil
}

func (m *memory) put(r *resourcelock.LeaderElectionRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = r
}

func (m *memory) RecordEvent(string) {}
func (m *memory) Identity() string   { return me }
func (m *memory) Describe() string   { return "a Lease in memory" }

// It returns false if there is no Lease.
func (m *memory) holder() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return "", false
	}
	return m.record.HolderIdentity, true
}

// A nil Lease elects no leader.
func (f *fakes) prepare(lease *memory) *process {
	config := schedulerconfig.Config{InformerFactory: informers.NewSharedInformerFactory(nil, 0)}
	if lease != nil {
		config.LeaderElection = &leaderelection.LeaderElectionConfig{
			Lock: lease, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			WatchDog: leaderelection.NewLeaderHealthzAdaptor(20 * time.Second), Name: "scheduler",
		}
	}
	complete := config.Complete()
	f.began, f.times = time.Now(), map[string]time.Duration{}
	return &process{config: &complete, scheduler: f, hold: f}
}

func (f *fakes) begin(t *testing.T, lease *memory) (p *process, stop context.CancelFunc, result chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	p, result = f.prepare(lease), make(chan error, 1)
	go func() { result <- p.answer(ctx, t.Context()) }()
	return p, stop, result
}

// A new leader waits until no write of the former can come, except after a hand-over.
func TestLeaderWaitsForTheLeaderBefore(t *testing.T) {
	for name, test := range map[string]*struct {
		fakes
		lease    string        // "of " its holder
		from, to time.Duration // when it schedules
	}{
		"a dead leader":       {lease: "of dead", from: 15*time.Second + binding.RequestTimeout, to: 20*time.Second + binding.RequestTimeout},
		"handed over":         {lease: "of ", to: 5 * time.Second},
		"there was no Lease":  {from: 15*time.Second + binding.RequestTimeout, to: 20*time.Second + binding.RequestTimeout},
		"catches up at last":  {lease: "of ", fakes: fakes{failures: 3}, from: 3 * time.Second, to: 5 * time.Second},
		"its caches are slow": {fakes: fakes{handlers: time.Minute, caches: time.Minute}, from: 2*time.Minute + 15*time.Second + binding.RequestTimeout, to: 2*time.Minute + 20*time.Second + binding.RequestTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, lease := &test.fakes, &memory{}
				if test.lease != "" {
					lease.record = leaseOf(strings.TrimPrefix(test.lease, "of "))
				}
				p, stop, result := f.begin(t, lease)
				if f.caches > 0 {
					time.Sleep(f.handlers + f.caches - time.Second)
					if _, exists := lease.holder(); exists || p.synced.Load() {
						t.Error("it competes for the Lease before its caches are complete")
					}
				}
				time.Sleep(test.to + time.Minute)
				f.mu.Lock()
				calls := slices.Compact(slices.Clone(f.calls))
				if at := f.times["run"]; !slices.Equal(calls, []string{"synced", "catch up", "run"}) || at < test.from || at > test.to {
					t.Errorf("it schedules after %s: %v", at, calls)
				}
				f.mu.Unlock()
				if left := time.Until(f.until()); left <= 0 || left > 15*time.Second {
					t.Errorf("the lease lasts for %s", left)
				}
				if err := p.config.LeaderElection.WatchDog.Check(nil); err != nil || !p.leading.Load() {
					t.Errorf("it leads: %t; its probe: %v", p.leading.Load(), err)
				}
				stop()
				if err := <-result; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// It takes no new pod, settles its Bindings, and hands the Lease over.
func TestStopSettlesThenHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &memory{}
		f := fakes{settle: func(ctx context.Context) error { return pause(ctx, binding.RequestTimeout-time.Second) }}
		p, stop, result := f.begin(t, lease)
		time.Sleep(time.Minute)
		stop()
		time.Sleep(binding.RequestTimeout - 2*time.Second)
		if got, _ := lease.holder(); got != me {
			t.Errorf("the Lease is %q's while a Binding is under way", got)
		}
		if p.leading.Load() {
			t.Error("it is still scheduling")
		}
		if left := time.Until(f.until()); left < 10*time.Second {
			t.Errorf("the Lease is renewed no more: it lasts for %s", left)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got, _ := lease.holder(); got != "" {
			t.Errorf("the Lease is %q's in the end", got)
		}
		if want := []string{"synced", "catch up", "run", "stop", "settle", "settled"}; !slices.Equal(f.calls, want) {
			t.Errorf("the calls are %v", f.calls)
		}
	})
}

func TestUnsettledKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &memory{}
		f := fakes{settle: func(ctx context.Context) error { <-ctx.Done(); return binding.ErrUnsettled }}
		_, stop, result := f.begin(t, lease)
		time.Sleep(time.Minute)
		stop()
		began := time.Now()
		if err := <-result; !errors.Is(err, lead.ErrUnsettled) || time.Since(began) != binding.RequestTimeout {
			t.Errorf("it ends after %s with %v", time.Since(began), err)
		}
		if got, _ := lease.holder(); got != me {
			t.Errorf("the Lease is %q's", got)
		}
	})
}

// The Service leads elsewhere before the Lease is handed over.
func TestOthersAreAnsweredUntilItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &memory{}
		f := fakes{}
		p := f.prepare(lease)
		p.extender = answering{&f}
		ctx, stop := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- p.answer(ctx, t.Context()) }()
		time.Sleep(time.Minute)
		stop()
		time.Sleep(time.Second / 2)
		if got, _ := lease.holder(); got != me {
			t.Errorf("the Lease is %q's while the Service leads here", got)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got, _ := lease.holder(); got != "" {
			t.Errorf("the Lease is %q's in the end", got)
		}
		if want := []string{"stop", "settle", "settled", "lead no more", "answer no more"}; !slices.Equal(f.calls[len(f.calls)-len(want):], want) {
			t.Errorf("the calls are %v", f.calls)
		}
	})
}

func TestWithoutAnswersItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fakes{}
		p := f.prepare(&memory{})
		p.extender = deaf{answering{&f}}
		if err := p.answer(t.Context(), t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it ends with %v", err)
		}
	})
}

type deaf struct{ answering }

func (deaf) Run(context.Context) error { return net.ErrClosed }

func TestLostLeaseEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &memory{}
		f := fakes{settle: func(ctx context.Context) error { <-ctx.Done(); return binding.ErrUnsettled }}
		_, _, result := f.begin(t, lease)
		time.Sleep(time.Minute)
		lease.put(leaseOf("another"))
		err := <-result
		if !errors.Is(err, lead.ErrLost) || f.times["settled"] != f.times["stop"] {
			t.Errorf("it ends with %v, %s after it has stopped", err, f.times["settled"]-f.times["stop"])
		}
		if got, _ := lease.holder(); got != "another" {
			t.Errorf("the Lease is %q's", got)
		}
	})
}

func TestWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fakes{settle: func(ctx context.Context) error { return pause(ctx, 3*time.Second) }}
		_, stop, result := f.begin(t, nil)
		synctest.Wait()
		if f.times["run"] != 0 || !f.until().IsZero() {
			t.Errorf("it schedules after %s, until %s", f.times["run"], f.until())
		}
		stop()
		began := time.Now()
		if err := <-result; err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("it ends after %s with %v", time.Since(began), err)
		}
	})
}

func TestStopWhileCachesFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &memory{}
		f := fakes{caches: time.Hour}
		_, stop, result := f.begin(t, lease)
		time.Sleep(time.Minute)
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if _, exists := lease.holder(); exists || slices.Contains(f.calls, "run") {
			t.Errorf("there is a Lease: %t; the calls are %v", exists, f.calls)
		}
	})
}
