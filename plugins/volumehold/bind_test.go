// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

type bindings struct {
	mu     sync.Mutex
	sent   []corev1.Binding
	answer func(corev1.Binding) error
}

func (b *bindings) take(binding corev1.Binding) error {
	b.mu.Lock()
	b.sent = append(b.sent, binding)
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(binding)
}

func (r *rig) bindings() *bindings {
	b := &bindings{}
	r.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
		if !ok {
			return false, nil, nil
		}
		return true, binding, b.take(*binding)
	})
	return b
}

// A pod with volumes is bound by its scheduled version, with its reservation.
func TestBindCarriesVersionAndReservation(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	b := r.bindings()
	pod, plain, unstamped := podWith("p", "data"), podWith("plain"), podWith("unstamped", "data")
	pod.ResourceVersion, plain.ResourceVersion = "41", "43"
	pod.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: `{"volumes":[]}`}
	r.known(pod, unstamped)
	c := r.reserve(pod, "n1")
	for _, p := range []*corev1.Pod{pod, plain} {
		if status := r.RunBindPlugins(t.Context(), c.state, p, "n1"); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	c.unreserve()
	c = r.reserve(unstamped, "n2")
	if status := r.RunBindPlugins(t.Context(), c.state, unstamped, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(b.sent) != 3 {
		t.Fatalf("sent: %+v", b.sent)
	}
	if first := b.sent[0]; first.ResourceVersion != "41" || first.UID != pod.UID || first.Target.Name != "n1" {
		t.Errorf("the pod with volumes: %+v", first)
	}
	reserved := pod.DeepCopy()
	reserved.Annotations = b.sent[0].Annotations
	status, ok := v1alpha1.VolumeStatusOf(reserved)
	if !ok || len(status.Volumes) != 1 || status.Volumes[0].Node != "n1" || status.Volumes[0].SafeToMount || status.Volumes[0].Reason != v1alpha1.VolumeReserved {
		t.Errorf("the reservation is %+v", b.sent[0].Annotations)
	}
	if b.sent[1].ResourceVersion != "" || b.sent[2].Annotations != nil {
		t.Errorf("the pod without volumes: %+v, the pod without a stamp: %+v", b.sent[1], b.sent[2])
	}
}

// Another scheduler may bind a pod to the slot, or with the volume, after the node was chosen.
func TestBindJudgesTheNodeOnceMore(t *testing.T) {
	for name, other := range map[string]*corev1.Pod{
		"slot":   boundTo(podWith("other", "more"), "n1"),
		"volume": boundTo(podWith("other", "data"), "n2"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), disk("more", ledger.AccessNode), one(slotsAt("n1", 1)))...)
			b := r.bindings()
			pod := podWith("p", "data")
			r.known(pod)
			c := r.reserve(pod, "n1")
			r.apply(factOf(other))
			if status := r.RunBindPlugins(t.Context(), c.state, pod, "n1"); status.IsSuccess() || len(b.sent) > 0 {
				t.Errorf("got %v after %d requests", status, len(b.sent))
			}
			c.unreserve()
			eventually(t, "the pod to be tried again", func() bool { return len(r.queue.names()) == 1 })
		})
	}
}

func TestPodCountsUntilItsBindingIsSettled(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), disk("other", ledger.AccessNode), one(slotsAt("n1", 1)))...)
	b := r.bindings()
	pod, other := podWith("p", "data"), podWith("other", "other")
	pod.ResourceVersion = "41"
	r.known(pod, other)
	c := r.reserve(pod, "n1")
	asked, answer := make(chan struct{}, 100), make(chan error, 100)
	b.answer = func(corev1.Binding) error {
		asked <- struct{}{}
		return <-answer
	}
	done := make(chan *fwk.Status)
	go func() { done <- r.RunBindPlugins(t.Context(), c.state, pod, "n1") }()
	<-asked
	answer <- errors.New("connection lost")
	<-asked // a second request: the pod is unchanged
	if r.filter(other, "n1").IsSuccess() {
		t.Error("the slot is given away while the pod may be bound")
	}
	changed := pod.DeepCopy()
	changed.ResourceVersion, changed.DeletionTimestamp = "42", terminating(pod).DeletionTimestamp
	r.mu.Lock()
	r.pods[string(pod.UID)] = changed
	r.mu.Unlock()
	answer <- errors.New("connection lost")
	if status := <-done; status.IsSuccess() {
		t.Fatal("a pod that is being deleted is bound")
	}
	c.unreserve()
	if status := r.filter(other, "n1"); !status.IsSuccess() {
		t.Errorf("the pod is not bound, and its slot is kept: %v", status)
	}
	for _, binding := range b.sent {
		if binding.ResourceVersion != "41" || binding.Target.Name != "n1" {
			t.Errorf("sent: %+v", binding)
		}
	}
}
