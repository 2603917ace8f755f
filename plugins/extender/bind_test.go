// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func withPod(t *testing.T) (*rig, *corev1.Pod) {
	t.Helper()
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.Put("pods", pod)
	})
	return r, pod
}

const createBind = "create pods/binding shop/db"

func TestBindIsOneWrite(t *testing.T) {
	for name, stamped := range map[string]bool{"stamped": true, "as it comes": false} {
		t.Run(name, func(t *testing.T) {
			r, pod := withPod(t)
			if stamped {
				pod.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: "{}"}
				r.Put("pods", pod)
				r.eventually("the stamp to be seen", func() bool {
					seen, ok := r.x.Facts.Pod(pod.Namespace, pod.Name)
					return ok && seen.Annotations != nil
				})
			}
			r.Forget()
			if against := r.bind(pod, "n1"); against != "" {
				t.Fatal(against)
			}
			r.wantWrites(createBind)
			if got := r.nodeOf(pod); got != "n1" {
				t.Errorf("the pod is at %q", got)
			}
			for _, request := range r.Requests() {
				if request.Resource == "pods/binding" && strings.Contains(request.Body, v1alpha1.VolumeReserved) != stamped {
					t.Errorf("the binding is %s", request.Body)
				}
			}
			r.eventually("the bound pod to count by itself", func() bool {
				known := r.x.Facts.Snapshot().Pod(string(pod.UID))
				return known.Node == "n1" && !known.Reserved
			})
		})
	}
}

func TestBindOfAPodThatNeedsNoVolume(t *testing.T) {
	r := newRig(t, nil)
	pod := podWith("db")
	r.Put("pods", pod)
	if against := r.bind(pod, "n2"); against != "" || r.nodeOf(pod) != "n2" {
		t.Errorf("the pod is at %q (%s)", r.nodeOf(pod), against)
	}
	r.wantWrites(createBind)
}

// A bind that fails leaves nothing behind.
func TestBindThatComesToNothing(t *testing.T) {
	tests := map[string]struct {
		node   string
		answer error
		want   string
		writes []string
	}{
		"the slots are taken":       {node: "n3", want: "node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 2 used)"},
		"the API server refuses it": {node: "n1", answer: apierrors.NewForbidden(corev1.Resource("pods"), "db", errors.New("says a policy")), want: "bind the pod: ", writes: []string{createBind}},
		"the pod is gone":           {node: "n1", answer: apierrors.NewNotFound(corev1.Resource("pods"), "db"), want: "the pod is being deleted", writes: []string{createBind}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith("db", "data")
			r := newRig(t, func(r *rig) {
				r.disk("data")
				r.fill("n3")
				r.Put("pods", pod)
			})
			r.api(func(request apitest.Request, serve func()) error {
				if request.Resource == "pods/binding" && test.answer != nil {
					return test.answer
				}
				serve()
				return nil
			})
			if against := r.bind(pod, test.node); !strings.HasPrefix(against, test.want) {
				t.Errorf("got %q, want %q", against, test.want)
			}
			r.api(nil)
			r.unreserved(pod)
			if got := r.nodeOf(pod); got != "" {
				t.Errorf("the pod is bound to %s", got)
			}
			r.wantWrites(test.writes...)
			if against := r.bind(pod, "n2"); against != "" || r.nodeOf(pod) != "n2" {
				t.Errorf("the next attempt: the pod is at %q (%s)", r.nodeOf(pod), against)
			}
		})
	}
}

func TestSlotOfABindUnderWayIsTaken(t *testing.T) {
	one, two := podWith("one", "c1"), podWith("two", "c2")
	r := newRig(t, func(r *rig) {
		r.disk("taken", "c1", "c2")
		r.attach("taken", "n1")
		r.Put("pods", one)
		r.Put("pods", two)
	})
	r.seen(one, two)
	arrived, goOn := r.hangs()
	first := make(chan string, 1)
	go func() { first <- r.bind(one, "n1") }()
	<-arrived
	if against := r.bind(two, "n1"); !strings.Contains(against, "no free slot") {
		t.Errorf("the second hears %q", against)
	}
	if result := r.filter(two); slices.Contains(*result.NodeNames, "n1") {
		t.Errorf("its filter has %+v", result)
	}
	goOn()
	if against := <-first; against != "" || r.nodeOf(one) != "n1" {
		t.Errorf("the first is at %q (%s)", r.nodeOf(one), against)
	}
}

// The request is repeated until its outcome is known; the slot counts meanwhile.
func TestBindWithoutAnAnswerIsSettled(t *testing.T) {
	r, pod := withPod(t)
	sent, late := 0, func() {}
	r.api(func(request apitest.Request, serve func()) error {
		if request.Resource != "pods/binding" {
			serve()
			return nil
		}
		if sent++; sent == 1 {
			late = serve
			return errors.New("the connection breaks")
		}
		if known := r.x.Facts.Snapshot().Pod(string(pod.UID)); known.Node != "n1" || !known.Reserved {
			t.Errorf("meanwhile the ledger has %+v", known)
		}
		serve()
		return nil
	})
	if against := r.bind(pod, "n1"); against != "" || r.nodeOf(pod) != "n1" {
		t.Errorf("the pod is at %q (%s)", r.nodeOf(pod), against)
	}
	late()
	r.wantWrites(createBind, createBind)
}

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
	r.wantWrites(createBind, createBind)
}

func TestBindWhoseAnswerIsLost(t *testing.T) {
	r, pod := withPod(t)
	r.api(func(request apitest.Request, serve func()) error {
		serve()
		if request.Resource == "pods/binding" {
			return errors.New("cut off on the way back")
		}
		return nil
	})
	if against := r.bind(pod, "n1"); against != "" {
		t.Error(against)
	}
	if known := r.x.Facts.Snapshot().Pod(string(pod.UID)); known.Node != "n1" {
		t.Errorf("the bound pod does not count: %+v", known)
	}
	r.wantWrites(createBind)
}

// The scheduler gives up after 5 s and may ask again, for any node.
func TestBindAgain(t *testing.T) {
	r, pod := withPod(t)
	if against := r.bind(pod, "n1"); against != "" {
		t.Fatal(against)
	}
	r.Forget()
	if against := r.bind(pod, "n1"); against != "" {
		t.Errorf("the same again: %s", against)
	}
	if against := r.bind(pod, "n2"); against != "the pod is bound to n1 already" {
		t.Errorf("another node: %q", against)
	}
	r.wantWrites()
}

func TestBindTwiceAtOnce(t *testing.T) {
	r, pod := withPod(t)
	arrived, goOn := r.hangs()
	var binding sync.WaitGroup
	for range 2 {
		binding.Go(func() {
			if against := r.bind(pod, "n1"); against != "" {
				t.Error(against)
			}
		})
	}
	<-arrived
	r.eventually("both to be under way", func() bool {
		r.x.podLocks.mu.Lock()
		defer r.x.podLocks.mu.Unlock()
		own := r.x.podLocks.all[string(pod.UID)]
		return own != nil && own.wanted == 2
	})
	goOn()
	binding.Wait()
	r.wantWrites(createBind)
	if len(r.x.podLocks.all) != 0 {
		t.Error("turns that are over are remembered")
	}
}

// A scheduler that goes away ends no request under way.
func TestBindOutlivesItsClient(t *testing.T) {
	r, pod := withPod(t)
	arrived, goOn := r.hangs()
	body, err := json.Marshal(bindingArgs(pod, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.address+"/bind", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() {
		_, err := r.client.Do(request)
		ended <- err
	}()
	<-arrived
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the client hears %v", err)
	}
	if known := r.x.Facts.Snapshot().Pod(string(pod.UID)); known.Node != "n1" || !known.Reserved {
		t.Errorf("the bind is under way, and the ledger has %+v", known)
	}
	goOn()
	r.eventually("the pod to be bound", func() bool { return r.nodeOf(pod) == "n1" })
	r.eventually("its turn to be over", func() bool {
		r.x.podLocks.mu.Lock()
		defer r.x.podLocks.mu.Unlock()
		return len(r.x.podLocks.all) == 0
	})
	if known := r.x.Facts.Snapshot().Pod(string(pod.UID)); known.Node != "n1" {
		t.Errorf("the ledger has %+v", known)
	}
}

func TestBindOfAClientThatHasGone(t *testing.T) {
	r, pod := withPod(t)
	r.seen(pod)
	ctx, cancel := contextDone()
	defer cancel()
	if err := r.x.bind(ctx, bindingArgs(pod, "n1")); err == nil {
		t.Error("it is bound")
	}
	r.unreserved(pod)
	r.wantWrites()
}

func TestBindOfTheWrongPod(t *testing.T) {
	r, pod := withPod(t)
	r.disk("other")
	gone, going, elsewhere := podWith("gone", "other"), podWith("going", "other"), boundTo(podWith("elsewhere", "other"), "n3")
	now := metav1.Now()
	going.DeletionTimestamp, going.Finalizers = &now, []string{"example.com/stays"}
	r.Put("pods", going)
	r.Put("pods", elsewhere)
	r.seen(pod, going, elsewhere)
	for want, bound := range map[string]*corev1.Pod{
		"the pod does not exist any more": gone,
		"the pod is being deleted":        going,
		"the pod is bound to n3 already":  elsewhere,
	} {
		if against := r.bind(bound, "n1"); against != want {
			t.Errorf("pod %s: %q, want %q", bound.Name, against, want)
		}
	}
	args := bindingArgs(pod, "n1")
	args.PodName = "another"
	body, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if code, answer := r.post(verbBind, body); code != http.StatusBadRequest || !strings.Contains(string(answer), "is that of pod shop/db") {
		t.Errorf("another pod's UID: %d %s", code, answer)
	}
	r.wantWrites()
}

// A filter reserves nothing: of two pods for one slot only one is bound.
func TestOneSlotForTwo(t *testing.T) {
	one, two := podWith("one", "c1"), podWith("two", "c2")
	r := newRig(t, func(r *rig) {
		r.disk("taken", "c1", "c2")
		r.attach("taken", "n1")
		r.Put("pods", one)
		r.Put("pods", two)
	})
	for _, pod := range []*corev1.Pod{one, two} {
		if result := r.filter(pod); len(*result.NodeNames) != 3 {
			t.Fatalf("pod %s: %+v", pod.Name, result)
		}
	}
	var binding sync.WaitGroup
	outcomes := make(chan string, 2)
	for _, pod := range []*corev1.Pod{one, two} {
		binding.Go(func() { outcomes <- r.bind(pod, "n1") })
	}
	binding.Wait()
	got := []string{<-outcomes, <-outcomes}
	slices.Sort(got)
	if want := []string{"", "node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 2 used)"}; !slices.Equal(got, want) {
		t.Errorf("outcomes are %q, want %q", got, want)
	}
}
