// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
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

// A leader begins by withdrawing what an earlier one reserved for pods that it
// didn't bind, and nothing else.
func TestLeaderFirstWithdrawsWhatIsLeft(t *testing.T) {
	unbound, bound, foreign := podWith("unbound", "data"), boundTo(podWith("bound", "data"), "n1"), podWith("foreign", "data")
	gone := podWith("gone", "data")
	r := newIdleRig(t, func(r *rig) {
		r.disk("data")
		for _, pod := range []*corev1.Pod{unbound, bound, foreign} {
			r.Put("pods", pod)
		}
		for _, pod := range []*corev1.Pod{unbound, bound, gone} {
			r.Put("volumetickets", ticketFor(pod, "n1", v1alpha1.ExtenderName, "data"))
		}
		r.Put("volumetickets", ticketFor(foreign, "n1", v1alpha1.SchedulerName, "data"))
	})
	r.api(func(request apitest.Request, serve func()) error {
		if request.Verb == "delete" && len(r.writes()) < 4 {
			if _, err := r.x.leading(); !errors.Is(err, errTakingOver) && !errors.Is(err, errReading) {
				t.Errorf("meanwhile schedulers hear %v", err)
			}
			return errors.New("the server is shutting down")
		}
		serve()
		return nil
	})
	r.lead(time.Hour)
	r.api(nil)
	if r.ticket(unbound) != nil {
		t.Error("it leads, and the ticket of a pod without a node is there")
	}
	for _, pod := range []*corev1.Pod{bound, foreign, gone} {
		if r.ticket(pod) == nil {
			t.Errorf("the ticket of pod %s is withdrawn", pod.Name)
		}
	}
}

// A term that ends takes its binds with it, and is over only after them.
func TestTermEndsItsBinds(t *testing.T) {
	r, pod := withPod(t)
	r.controller(nil)
	against := make(chan string, 1)
	go func() { against <- r.bind(pod, "n1") }()
	r.eventually("the ticket to be written", func() bool { return r.ticket(pod) != nil })
	r.endTerm()
	if got := <-against; !strings.Contains(got, errTermOver.Error()) {
		t.Errorf("the scheduler hears %q", got)
	}
	r.withdrawn(pod)
	if got := r.bind(pod, "n1"); got != errNotLeading.Error() {
		t.Errorf("the next one hears %q", got)
	}
	if r.nodeOf(pod) != "" {
		t.Error("the pod is bound")
	}
}

// A process that was paused past its lease binds nothing any more.
func TestBindStaysInsideTheLease(t *testing.T) {
	r, pod := withPod(t)
	r.endTerm()
	r.lead(-time.Minute)
	if against := r.bind(pod, "n1"); !strings.Contains(against, context.DeadlineExceeded.Error()) {
		t.Errorf("the scheduler hears %q", against)
	}
	if r.nodeOf(pod) != "" {
		t.Error("the pod is bound after the lease")
	}
	r.withdrawn(pod)
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
