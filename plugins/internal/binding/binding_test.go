// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

type rig struct {
	*Binder
	kube  *fake.Clientset
	pod   *corev1.Pod
	sent  []time.Time
	serve func(n int) error // n counts from 0
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u", ResourceVersion: "7"}}
	r := &rig{kube: fake.NewClientset(pod), pod: pod}
	r.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateAction)
		binding, ok := create.GetObject().(*corev1.Binding)
		if ok {
			r.bound(t, binding.Target.Name)
		}
		return ok, binding, nil
	})
	r.Binder = &Binder{
		Send: func(ctx context.Context, b *corev1.Binding) error {
			n, answer := len(r.sent), make(chan error, 1)
			r.sent = append(r.sent, time.Now())
			go func() { // outside the fake, which serves requests one after the other
				err := r.serve(n)
				if err == nil {
					err = r.kube.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
				}
				answer <- err
			}()
			select {
			case err := <-answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Confirm: func(ctx context.Context, namespace, name, _ string) (*corev1.Pod, error) {
			pod, err := r.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return pod, err
		},
	}
	return r
}

func (r *rig) bound(t *testing.T, node string) {
	pod := r.pod.DeepCopy()
	pod.Spec.NodeName, pod.ResourceVersion = node, "8"
	if err := r.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
		t.Error(err)
	}
}

func (r *rig) gone(t *testing.T) {
	if err := r.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), r.pod.Namespace, r.pod.Name); err != nil {
		t.Error(err)
	}
}

// Settle waits for the answer, and nothing is sent after it.
func TestRequestUnderWayIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.serve = func(int) error { time.Sleep(3 * time.Second); return nil }
		ctx, stop := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- r.Bind(ctx, r.pod, "n1", nil) }()
		synctest.Wait()
		began := time.Now()
		stop()
		if err := r.Settle(t.Context()); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("it is settled after %s: %v", time.Since(began), err)
		}
		if err := <-result; err != nil {
			t.Errorf("the pod is bound, and Bind says %v", err)
		}
		if err := r.Bind(t.Context(), r.pod, "n2", nil); !errors.Is(err, ErrStopped) || len(r.sent) != 1 {
			t.Errorf("after that Bind says %v, and %d requests were sent", err, len(r.sent))
		}
	})
}

// Nothing is sent for a binding cycle that was ended before.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Bind(ctx, r.pod, "n1", nil); !errors.Is(err, ErrStopped) || len(r.sent) != 0 {
		t.Errorf("Bind says %v, and %d requests were sent", err, len(r.sent))
	}
	if err := r.Settle(t.Context()); err != nil {
		t.Error(err)
	}
}

// An unanswered request is repeated also during a stop, until the outcome is known.
func TestUnansweredRequestIsSettled(t *testing.T) {
	for name, test := range map[string]struct {
		second error // the answer to the second request; the first gets none
		read   string
		want   bool // the pod is bound
	}{
		"it failed":    {second: nil, want: true},
		"it succeeded": {read: "n1", want: true},
		"it lost":      {read: "n2"},
		"it is gone":   {second: apierrors.NewNotFound(corev1.Resource("pods"), "p")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.serve = func(n int) error {
					if n > 0 {
						return test.second
					}
					time.Sleep(time.Second)
					if test.read != "" {
						r.bound(t, test.read)
					} else if test.second != nil {
						r.gone(t)
					}
					return errors.New("the connection breaks")
				}
				ctx, stop := context.WithCancel(t.Context())
				result := make(chan error, 1)
				go func() { result <- r.Bind(ctx, r.pod, "n1", nil) }()
				synctest.Wait()
				stop()
				if err := r.Settle(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait() // Bind returns to its caller
				select {
				case err := <-result:
					if (err == nil) != test.want {
						t.Errorf("Bind says %v", err)
					}
				default:
					t.Error("it is called settled while Bind goes on")
				}
			})
		})
	}
}

func TestSettleSaysWhatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		over := false
		r.serve = func(int) error {
			if over {
				return nil
			}
			return errors.New("the connection breaks")
		}
		go func() { _ = r.Bind(t.Context(), r.pod, "n1", nil) }()
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), RequestTimeout)
		defer stop()
		if err := r.Settle(ctx); !errors.Is(err, ErrUnsettled) {
			t.Errorf("Settle says %v", err)
		}
		over = true
		if err := r.Settle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRequestsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		end := time.Now().Add(4 * time.Second)
		r.Until = func() time.Time { return end }
		r.serve = func(int) error { time.Sleep(2 * time.Minute); return errors.New("late") }
		result := make(chan error, 1)
		go func() { result <- r.Bind(t.Context(), r.pod, "n1", nil) }()
		time.Sleep(time.Minute)
		if len(r.sent) != 1 {
			t.Errorf("%d requests were sent, want the first alone", len(r.sent))
		}
		select {
		case err := <-result:
			t.Errorf("nobody knows whether the pod was bound, and Bind says %v", err)
		default:
		}
		r.bound(t, "n1") // by the request that was cut off
		if err := <-result; err != nil {
			t.Errorf("the pod is bound, and Bind says %v", err)
		}
		if err := r.Bind(t.Context(), r.pod, "n1", nil); !errors.Is(err, ErrStopped) || len(r.sent) != 1 {
			t.Errorf("after the lease Bind says %v, and %d requests were sent", err, len(r.sent))
		}
		time.Sleep(2 * time.Minute) // the API server ends too
	})
}
