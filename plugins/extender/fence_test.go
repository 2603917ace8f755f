// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/observe"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
	"github.com/moorage-dev/moorage/test/apitest"
)

// hangs has binds hang at the API server until the returned function is called;
// arrived is closed when one does.
func (r *rig) hangs() (arrived <-chan struct{}, goOn func()) {
	there, release := make(chan struct{}), make(chan struct{})
	var once, end sync.Once
	r.api(func(request apitest.Request, serve func()) error {
		if request.Resource == "pods/binding" {
			once.Do(func() { close(there) })
			<-release
		}
		serve()
		return nil
	})
	goOn = func() { end.Do(func() { close(release) }) }
	r.t.Cleanup(goOn)
	return there, goOn
}

// takesOver has another process lead, until the test ends.
func (r *rig) takesOver() {
	r.t.Helper()
	observer, err := observe.New(observe.Config{Kube: r.Kube, Moorage: r.Moorage})
	if err != nil {
		r.t.Fatal(err)
	}
	config := r.config()
	x := newExtender(options{
		Facts: observer, Tickets: r.Moorage, Kube: r.Kube, Name: config.Name,
		GrantDeadline: config.GrantDeadline, WriteTimeout: config.WriteTimeout, MaxBodyBytes: config.MaxBodyBytes,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	r.t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() { observer.Run(ctx) })
	running.Go(func() { x.run(ctx) })
	running.Go(func() { _ = x.lead(ctx, func() time.Time { return time.Now().Add(time.Hour) }) })
}

// A bind that a leader before has under way fails once its reservation is withdrawn:
// the slot is somebody else's then.
func TestBindOfALeaderBeforeFails(t *testing.T) {
	r, pod := withPod(t)
	arrived, goOn := r.hangs()
	against := make(chan string, 1)
	go func() { against <- r.bind(pod, "n1") }()
	<-arrived
	r.takesOver()
	r.eventually("the reservation to be withdrawn", func() bool { return r.ticket(pod) == nil })
	goOn()
	if got := <-against; !strings.Contains(got, reservation.ErrFenced.Error()) {
		t.Errorf("the scheduler hears %q", got)
	}
	if node := r.nodeOf(pod); node != "" {
		t.Errorf("the pod is bound to %s, and its slot is free", node)
	}
}

// A bind without an answer may arrive after its reservation is withdrawn.
func TestBindWithoutAnAnswerFailsLater(t *testing.T) {
	r, pod := withPod(t)
	var late func()
	r.api(func(request apitest.Request, serve func()) error {
		if request.Resource == "pods/binding" {
			late = serve
			return errors.New("the connection breaks")
		}
		serve()
		return nil
	})
	if against := r.bind(pod, "n1"); against == "" {
		t.Fatal("the bind is answered")
	}
	r.withdrawn(pod)
	late()
	if node := r.nodeOf(pod); node != "" {
		t.Errorf("the pod is bound to %s, and its slot is free", node)
	}
}

// A pod that merely changes between its reservation and its bind is bound all the same.
func TestBindOfAPodThatChanges(t *testing.T) {
	r, pod := withPod(t)
	changed := false
	r.api(func(request apitest.Request, serve func()) error {
		if request.Resource == "pods/binding" && !changed {
			changed = true
			var now corev1.Pod
			r.Get("pods", pod.Namespace, pod.Name, &now)
			now.Labels = map[string]string{"a": "b"}
			r.Put("pods", &now)
		}
		serve()
		return nil
	})
	if against := r.bind(pod, "n1"); against != "" || r.nodeOf(pod) != "n1" {
		t.Errorf("it is at %q: %s", r.nodeOf(pod), against)
	}
	r.wantWrites(createTicket, createBind, createBind)
}

// One pod that can't be fenced keeps its reservation; a pod that is bound, too.
func TestTicketGoesAfterTheFence(t *testing.T) {
	pod, fixed := podWith("db", "data"), podWith("fixed", "data")
	r := newIdleRig(t, func(r *rig) {
		r.disk("data")
		for _, p := range []*corev1.Pod{pod, fixed} {
			r.Put("pods", p)
			r.Put("volumetickets", ticketFor(p, "n1", v1alpha1.ExtenderName, "data"))
		}
	})
	fenced := make(chan struct{})
	r.api(func(request apitest.Request, serve func()) error {
		switch {
		case request.Resource == "pods/status" && strings.HasSuffix(request.Name, "/fixed"):
			// It is bound at the same moment.
			now := boundTo(fixed, "n1")
			r.Put("pods", now)
			serve()
		case request.Resource == "pods/status":
			serve()
			close(fenced)
		case request.Verb == "delete":
			select {
			case <-fenced:
			default:
				t.Errorf("%s before the fence", request)
			}
			serve()
		default:
			serve()
		}
		return nil
	})
	r.lead(time.Hour)
	if r.ticket(pod) != nil {
		t.Error("the reservation of the pod without a node is there")
	}
	if r.ticket(fixed) == nil {
		t.Error("the reservation of the bound pod is withdrawn")
	}
	var now corev1.Pod
	if r.Get("pods", fixed.Namespace, fixed.Name, &now); now.Annotations[v1alpha1.AnnotationBindFence] != "" {
		t.Error("a bound pod is fenced")
	}
}
