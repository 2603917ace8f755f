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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

// withPod is a rig with a pod db and its volume data.
func withPod(t *testing.T) (*rig, *corev1.Pod) {
	t.Helper()
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.Put("pods", pod)
	})
	return r, pod
}

const (
	createTicket = "create volumetickets shop/uid-db"
	deleteTicket = "delete volumetickets shop/uid-db"
	createBind   = "create pods/binding shop/db"
	fencePod     = "patch pods/status shop/db"
)

func TestBindIsGrantedFirst(t *testing.T) {
	r, pod := withPod(t)
	if against := r.bind(pod, "n1"); against != "" {
		t.Fatal(against)
	}
	r.wantWrites(createTicket, createBind)
	if got := r.nodeOf(pod); got != "n1" {
		t.Errorf("the pod is at %q", got)
	}
	ticket := r.ticket(pod)
	if ticket == nil || ticket.Spec.Scheduler != v1alpha1.ExtenderName || ticket.Spec.NodeName != "n1" || ticket.Spec.Type != v1alpha1.TicketPod {
		t.Fatalf("the ticket is %+v", ticket)
	}
	// It is the controller's to end, once the bound pod counts by itself.
	r.eventually("the bound pod to leave the book", func() bool { return r.x.book.Of(string(pod.UID)) == nil })
	if r.x.Facts.Snapshot().Ticket(ticketID(pod)) == nil {
		t.Error("the reservation no longer counts")
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

// All or nothing: what doesn't end in a bound pod leaves nothing behind.
func TestBindThatComesToNothing(t *testing.T) {
	never := func(*v1alpha1.VolumeTicket) *metav1.Condition { return nil }
	unknown := func(*v1alpha1.VolumeTicket) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.TicketGranted, Status: metav1.ConditionUnknown, Reason: "Waits", Message: "volume data is being detached from n2"}
	}
	tests := map[string]struct {
		controller func(*v1alpha1.VolumeTicket) *metav1.Condition
		deadline   time.Duration
		api        func(apitest.Request, func()) error
		want       string
		writes     []string
	}{
		"refused": {controller: refuse, want: "node(s) refused: no free slot of driver disk.example.com (2 of 2 used)",
			writes: []string{createTicket, deleteTicket}},
		"the controller does not answer": {controller: never, deadline: time.Second,
			want: "moorage-controller did not answer within 1s; does it run, and lead? It will be tried again", writes: []string{createTicket, deleteTicket}},
		"the controller waits, too": {controller: unknown, deadline: 3 * time.Second,
			want: "not granted within 3s, and will be tried again: volume data is being detached from n2", writes: []string{createTicket, deleteTicket}},
		"the binding fails": {controller: grant, api: func(request apitest.Request, serve func()) error {
			if request.Resource == "pods/binding" {
				return errors.New("cut off before it arrives")
			}
			serve()
			return nil
		}, want: "bind the pod: ", writes: []string{createTicket, createBind, fencePod, deleteTicket}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, pod := withPod(t)
			r.controller(test.controller)
			r.api(test.api)
			if test.deadline > 0 {
				r.x.GrantDeadline = test.deadline
			}
			if against := r.bind(pod, "n1"); !strings.HasPrefix(against, test.want) {
				t.Errorf("got %q, want %q", against, test.want)
			}
			r.api(nil)
			r.withdrawn(pod)
			if got := r.nodeOf(pod); got != "" {
				t.Errorf("the pod is bound to %s", got)
			}
			r.wantWrites(test.writes...)
			r.controller(grant)
			r.x.GrantDeadline = patience
			if against := r.bind(pod, "n2"); against != "" || r.nodeOf(pod) != "n2" {
				t.Errorf("the next attempt: the pod is at %q (%s)", r.nodeOf(pod), against)
			}
		})
	}
}

// The answer to a binding is lost, and the pod is bound.
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
	if r.ticket(pod) == nil {
		t.Error("the ticket of a bound pod is withdrawn")
	}
}

// kube-scheduler gives up after 5 s and may ask again, for the same node or
// another.
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
	release := make(chan struct{})
	asked := make(chan struct{}, 2)
	r.controller(func(v *v1alpha1.VolumeTicket) *metav1.Condition {
		asked <- struct{}{}
		<-release
		return grant(v)
	})
	var binding sync.WaitGroup
	for range 2 {
		binding.Go(func() {
			if against := r.bind(pod, "n1"); against != "" {
				t.Error(against)
			}
		})
	}
	<-asked
	r.eventually("both to be under way", func() bool {
		r.x.podLocks.mu.Lock()
		defer r.x.podLocks.mu.Unlock()
		own := r.x.podLocks.all[string(pod.UID)]
		return own != nil && own.wanted == 2
	})
	close(release)
	binding.Wait()
	r.wantWrites(createTicket, createBind)
	if len(r.x.podLocks.all) != 0 {
		t.Error("turns that are over are remembered")
	}
}

// A scheduler that goes away, or is killed, takes its bind with it.
func TestBindEndsWithItsClient(t *testing.T) {
	r, pod := withPod(t)
	r.controller(nil)
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
	r.eventually("the ticket to be written", func() bool { return r.ticket(pod) != nil })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the client hears %v", err)
	}
	r.withdrawn(pod)
	if got := r.nodeOf(pod); got != "" {
		t.Errorf("the pod is bound to %s", got)
	}
}

// What an unbound claim becomes is granted, too, before the bind.
func TestBindWaitsForTheVolumeThatTheClaimBecame(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.claim("data", false)
		r.Put("pods", pod)
	})
	r.seen(pod)
	done := make(chan string, 1)
	go func() { done <- r.bind(pod, "n1") }()
	r.eventually("the grant to be seen", func() bool {
		ticket := r.x.Facts.Snapshot().Ticket(ticketID(pod))
		return ticket != nil && ticket.Phase.String() == "granted"
	})
	if got := r.nodeOf(pod); got != "" {
		t.Errorf("bound to %s before the claim was", got)
	}
	r.disk("data")
	r.Put("volumeholds", &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName(driver, "data")},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: driver, Handle: "data"},
		Status:     v1alpha1.VolumeHoldStatus{Holder: &v1alpha1.Holder{Node: "n1"}},
	})
	if against := <-done; against != "" || r.nodeOf(pod) != "n1" {
		t.Errorf("the pod is at %q (%s)", r.nodeOf(pod), against)
	}
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

// Two pods were sent to one slot, since a filter reserves nothing. One is bound.
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
