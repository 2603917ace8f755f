// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

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
	r.Put("pods", boundTo(other, "n1")) // by the former leader
	r.lead(time.Hour)
	if result := r.filter(pod); !slices.Equal(*result.NodeNames, []string{"n2", "n3"}) {
		t.Errorf("result %+v", result)
	}
	if against := r.bind(pod, "n1"); !strings.Contains(against, "no free slot") {
		t.Errorf("bind: %q", against)
	}
	r.wantWrites()
}

func TestTermEndsWhileABindIsUnderWay(t *testing.T) {
	r, pod := withPod(t)
	arrived, goOn := r.hangs()
	against := make(chan string, 1)
	go func() { against <- r.bind(pod, "n1") }()
	<-arrived
	r.endTerm()
	if got := r.bind(pod, "n1"); got != errNotLeading.Error() {
		t.Errorf("the next one hears %q", got)
	}
	if result := r.filter(pod); result.Error != errNotLeading.Error() {
		t.Errorf("filter: %+v", result)
	}
	goOn()
	if got := <-against; got != "" || r.nodeOf(pod) != "n1" {
		t.Errorf("the pod is at %q (%s)", r.nodeOf(pod), got)
	}
}

// A process that was paused past its lease binds nothing.
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
