// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// binds records the binds that are sent; answer, when set, decides on each.
type binds struct {
	mu     sync.Mutex
	sent   []corev1.Binding
	answer func(corev1.Binding) error
}

func (r *rig) binds() *binds {
	b := &binds{}
	r.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
		if !ok {
			return false, nil, nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent = append(b.sent, *binding)
		if b.answer == nil {
			return true, binding, nil
		}
		return true, binding, b.answer(*binding)
	})
	return b
}

// grantedVersion is a pod at n1 whose reservation is granted, and that was seen at version 41.
func (r *rig) grantedVersion() *cycle {
	r.t.Helper()
	pod := podWith("p", "data")
	pod.ResourceVersion = "41"
	r.known(pod)
	return r.granted(pod, "n1")
}

// changes has the API server's pod be at another version, with these annotations.
func (r *rig) changes(pod *corev1.Pod, version string, annotations map[string]string) {
	next := pod.DeepCopy()
	next.ResourceVersion, next.Annotations = version, annotations
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[string(pod.UID)] = next
}

// A reserved pod is bound by the version that it was reserved by; another as always.
func TestBindCarriesTheVersion(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	b := r.binds()
	c := r.grantedVersion()
	if status := r.RunBindPlugins(t.Context(), c.state, c.pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	plain := podWith("plain")
	plain.ResourceVersion = "43"
	if status := r.RunBindPlugins(t.Context(), c.state, plain, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(b.sent) != 2 || b.sent[0].ResourceVersion != "41" || b.sent[0].UID != c.pod.UID || b.sent[0].Target.Name != "n1" ||
		b.sent[1].ResourceVersion != "" || b.sent[1].Target.Name != "n2" {
		t.Errorf("sent: %+v", b.sent)
	}
}

// A bind that finds another version goes on with that one, unless another process has
// fenced the pod.
func TestBindAfterAChange(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods/binding"), "p", errors.New("another version"))
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"somebody's change": {map[string]string{"a": "b"}, ""},
		"a fence":           {map[string]string{v1alpha1.AnnotationBindFence: "other/1"}, reservation.ErrFenced.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, disk("data", ledger.AccessNode)...)
			b := r.binds()
			c := r.grantedVersion()
			b.answer = func(binding corev1.Binding) error {
				if binding.ResourceVersion != "42" {
					return conflict
				}
				return nil
			}
			r.changes(c.pod, "42", test.annotations)
			status := r.RunBindPlugins(t.Context(), c.state, c.pod, "n1")
			if test.want == "" && (!status.IsSuccess() || len(b.sent) != 2) || test.want != "" && (!strings.Contains(status.Message(), test.want) || len(b.sent) != 1) {
				t.Errorf("%v after %d binds", status, len(b.sent))
			}
		})
	}
}

// What an earlier leader left behind goes only after a fence is in the pod.
func TestLeftoverGoesAfterTheFence(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessMany)...)
	pod := podWith("unbound", "data")
	r.known(pod)
	var fenced sync.Once
	ready := make(chan struct{})
	r.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch := action.(clienttesting.PatchAction); strings.Contains(string(patch.GetPatch()), v1alpha1.AnnotationBindFence) {
			fenced.Do(func() { close(ready) })
		}
		return false, nil, nil
	})
	r.failWith(func(verb string, _ *v1alpha1.VolumeTicket) error {
		select {
		case <-ready:
		default:
			if verb == "delete" {
				t.Error("the ticket is deleted before the pod is fenced")
			}
		}
		return nil
	})
	r.leftBehind(pod, "n1", profile)
	r.prefilter(podWith("first"))
	eventually(t, "the leftover to be withdrawn", func() bool {
		_, exists := r.Ticket(ticketID(pod))
		return !exists
	})
	<-ready
}
