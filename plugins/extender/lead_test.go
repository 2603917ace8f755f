// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/test/apitest"
)

// Who does not lead says so, in words where the protocol has room for them.
func TestNobodyIsAnsweredWithoutALease(t *testing.T) {
	pod := podWith("db", "data")
	r := newIdleRig(t, func(r *rig) {
		r.disk("data")
		r.Put("pods", pod)
	})
	if result := r.filter(pod); result.Error != errNotLeading.Error() || result.NodeNames != nil {
		t.Errorf("filter: %+v", result)
	}
	if against := r.bind(pod, "n1"); against != errNotLeading.Error() {
		t.Errorf("bind: %q", against)
	}
	code, answer := r.post(verbPrioritize, []byte(`{"Pod":`+rawPod+`,"NodeNames":[]}`))
	checkStatus(t, code, answer, http.StatusServiceUnavailable, "leads")
	code, answer = r.post(verbPreempt, []byte(`{"Pod":`+rawPod+`}`))
	checkStatus(t, code, answer, http.StatusServiceUnavailable, "leads")
	r.lead(time.Hour)
	if against := r.bind(pod, "n1"); against != "" {
		t.Errorf("once it leads: %s", against)
	}
}

// A new leader reads what is bound before it answers, whatever its informers know by then, and
// reads again when that fails.
func TestLeaderFirstReadsWhatIsBound(t *testing.T) {
	pod, other := podWith("db", "data"), podWith("other", "c")
	r := newIdleRig(t, func(r *rig) {
		r.disk("taken", "data", "c")
		r.attach("taken", "n1")
		r.Put("pods", pod)
		r.Put("pods", other)
	})
	r.seen(pod, other)
	r.Lag(true)
	r.Put("pods", boundTo(other, "n1")) // by the leader before
	var failed atomic.Bool
	r.api(func(request apitest.Request, serve func()) error {
		if request.Verb == "list" && request.Resource == "volumeattachments" && failed.CompareAndSwap(false, true) {
			if _, err := r.x.leading(); !errors.Is(err, errNotLeading) {
				t.Errorf("meanwhile schedulers hear %v", err)
			}
			return errors.New("the server is shutting down")
		}
		serve()
		return nil
	})
	r.lead(time.Hour)
	if !failed.Load() {
		t.Error("it has read nothing")
	}
	if result := r.filter(pod); !slices.Equal(*result.NodeNames, []string{"n2", "n3"}) {
		t.Errorf("result %+v", result)
	}
	if against := r.bind(pod, "n1"); !strings.Contains(against, "no free slot") {
		t.Errorf("bind: %q", against)
	}
	r.wantWrites()
}

// A term is over only after its binds, which still hear how they ended.
func TestTermEndsAfterItsBinds(t *testing.T) {
	r, pod := withPod(t)
	arrived, goOn := r.hangs()
	against := make(chan string, 1)
	go func() { against <- r.bind(pod, "n1") }()
	<-arrived
	over := make(chan struct{})
	go func() { r.endTerm(); close(over) }()
	r.eventually("the term to end", func() bool { _, err := r.x.leading(); return err != nil })
	if got := r.bind(pod, "n1"); got != errNotLeading.Error() {
		t.Errorf("the next one hears %q", got)
	}
	select {
	case <-over:
		t.Error("the term is over before its bind")
	default:
	}
	goOn()
	if got := <-against; got != "" || r.nodeOf(pod) != "n1" {
		t.Errorf("the pod is at %q (%s)", r.nodeOf(pod), got)
	}
	<-over
}

// A term whose lease is lost waits for nothing, and says so.
func TestTermDoesNotSettleWithoutALease(t *testing.T) {
	r, pod := withPod(t)
	r.endTerm()
	ctx, cancel := context.WithCancel(t.Context())
	lost, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.x.lead(ctx, lead.Term{Until: func() time.Time { return time.Now().Add(time.Hour) }, Lost: lost})
	}()
	r.eventually("the extender to lead", func() bool { _, err := r.x.leading(); return err == nil })
	arrived, goOn := r.hangs()
	against := make(chan string, 1)
	go func() { against <- r.bind(pod, "n1") }()
	<-arrived
	close(lost)
	cancel()
	if err := <-ended; !errors.Is(err, lead.ErrUnsettled) {
		t.Errorf("the term ended with %v", err)
	}
	goOn()
	<-against
}

// A process that was paused past its lease binds nothing any more.
func TestBindStaysInsideTheLease(t *testing.T) {
	r, pod := withPod(t)
	r.endTerm()
	r.lead(-time.Minute)
	if against := r.bind(pod, "n1"); !strings.Contains(against, binding.ErrStopped.Error()) {
		t.Errorf("the scheduler hears %q", against)
	}
	if r.nodeOf(pod) != "" {
		t.Error("the pod is bound after the lease")
	}
	r.unreserved(pod)
	r.wantWrites()
}

// process runs the whole process, but for its flags and its clients.
func process(t *testing.T, server *apitest.Server, x *extender, config Config) (stop context.CancelFunc, result chan error, probe func(string) int) {
	t.Helper()
	doors, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	result = make(chan error, 1)
	go func() {
		result <- x.serve(ctx, life, config, doors, &connect.Clients{Lease: server.Kube})
	}()
	return stop, result, func(path string) int {
		response, err := http.Get("http://" + doors.probing.Addr().String() + path)
		if err != nil {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode
	}
}

func TestProcessLeadsServesAndHandsOver(t *testing.T) {
	r := newIdleRig(t, nil)
	config := r.config()
	config.HealthListen = "127.0.0.1:0"
	config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = time.Second, 600*time.Millisecond, 20*time.Millisecond
	stop, result, probe := process(t, r.Server, r.x, config)
	r.eventually("the process to be ready", func() bool { return probe("/readyz") == http.StatusOK })
	if got := probe("/healthz"); got != http.StatusOK {
		t.Errorf("healthz is %d", got)
	}
	if got := probe("/metrics"); got != http.StatusOK {
		t.Errorf("metrics are %d", got)
	}
	var lease coordinationv1.Lease
	if !r.Get("leases", config.Namespace, v1alpha1.ExtenderName, &lease) || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Errorf("the Lease is %+v", lease.Spec)
	}
	stop()
	if err := <-result; err != nil {
		t.Errorf("the process ended with %v", err)
	}
	r.Get("leases", config.Namespace, v1alpha1.ExtenderName, &lease)
	if got := ptr.Deref(lease.Spec.HolderIdentity, ""); got != "" {
		t.Errorf("the Lease is still %s's", got)
	}
}

func TestProcessEndsWithItsLease(t *testing.T) {
	r := newIdleRig(t, nil)
	config := r.config()
	config.HealthListen = "127.0.0.1:0"
	config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = time.Second, 600*time.Millisecond, 20*time.Millisecond
	_, result, probe := process(t, r.Server, r.x, config)
	r.eventually("the process to be ready", func() bool { return probe("/readyz") == http.StatusOK })
	now := metav1.NowMicro()
	r.Put("leases", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: v1alpha1.ExtenderName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](600),
			AcquireTime: &now, RenewTime: &now, LeaseTransitions: ptr.To[int32](9)},
	})
	if err := <-result; !errors.Is(err, lead.ErrLost) {
		t.Errorf("the process ended with %v", err)
	}
}
