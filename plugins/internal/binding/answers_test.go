// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var (
	errConflict  = apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("it has changed"))
	errForbidden = apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("no"))
	errBroken    = errors.New("the connection breaks")
	errInternal  = apierrors.NewInternalError(errors.New("storage"))
)

func shown(version, node string, deleting bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u", ResourceVersion: version}, Spec: corev1.PodSpec{NodeName: node}}
	if deleting {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	}
	return pod
}

// Bind must end exactly when the outcome is known.
func TestAnswers(t *testing.T) {
	fails := errors.New("the read fails")
	type round struct {
		answer  error       // to the request
		read    *corev1.Pod // what is read then
		failing bool        // the read fails
	}
	for name, test := range map[string]struct {
		rounds   []round
		versions string // of the requests that are sent
		want     error  // nil: the pod is bound
		says     string
	}{
		"bound": {[]round{{}}, "7", nil, ""},
		// A conflict settles nothing while the pod is as it was: it is sent again.
		"conflict with the same version": {[]round{{answer: errConflict, read: shown("7", "", false)}, {answer: errConflict, read: shown("8", "n1", false)}}, "7 7", nil, ""},
		"conflict with another version":  {[]round{{answer: errConflict, read: shown("8", "", false)}, {}}, "7 8", nil, ""},
		"conflict, as it is bound there": {[]round{{answer: errConflict, read: shown("8", "n1", false)}}, "7", nil, ""},
		"conflict, and bound elsewhere":  {[]round{{answer: errConflict, read: shown("8", "n2", false)}}, "7", nil, "bound to n2 already"},
		"conflict, and deleted":          {[]round{{answer: errConflict, read: shown("8", "", true)}}, "7", ErrPodGone, ""},
		"conflict, and gone":             {[]round{{answer: errConflict}}, "7", ErrPodGone, ""},
		"bound there, and being deleted": {[]round{{answer: errConflict, read: shown("8", "n1", true)}}, "7", nil, ""},
		"conflict, and the read fails":   {[]round{{answer: errConflict, failing: true}, {}}, "7 7", nil, ""},
		"conflicts without end": {[]round{
			{answer: errConflict, read: shown("8", "", false)}, {answer: errConflict, read: shown("9", "", false)}, {answer: errConflict, read: shown("10", "", false)},
			{answer: errConflict, read: shown("11", "", false)}, {answer: errConflict, read: shown("12", "", false)},
		}, "7 8 9 10 11", errConflict, ""},
		"not found":                         {[]round{{answer: apierrors.NewNotFound(corev1.Resource("pods"), "p")}}, "7", ErrPodGone, ""},
		"no answer, and then not found":     {[]round{{answer: errBroken, read: shown("7", "", false)}, {answer: apierrors.NewNotFound(corev1.Resource("pods"), "p"), read: shown("8", "n1", false)}}, "7 7", nil, ""},
		"forbidden":                         {[]round{{answer: errForbidden, read: shown("7", "", false)}}, "7", errForbidden, ""},
		"forbidden, and changed":            {[]round{{answer: errForbidden, read: shown("8", "", false)}}, "7", errForbidden, ""},
		"no answer":                         {[]round{{answer: errBroken, read: shown("7", "", false)}, {}}, "7 7", nil, ""},
		"a server's error is no answer":     {[]round{{answer: errInternal, read: shown("7", "", false)}, {}}, "7 7", nil, ""},
		"no answer, and the read fails":     {[]round{{answer: errBroken, failing: true}, {answer: errBroken, read: shown("8", "n1", false)}}, "7 7", nil, ""},
		"no answer, and the pod changed":    {[]round{{answer: errBroken, read: shown("8", "", false)}, {}}, "7 8", nil, ""},
		"no answer, and then forbidden":     {[]round{{answer: errBroken, read: shown("7", "", false)}, {answer: errForbidden, read: shown("7", "", false)}, {answer: errForbidden, read: shown("8", "", false)}}, "7 7 7", errForbidden, ""},
		"no answer, then a conflict":        {[]round{{answer: errBroken, read: shown("7", "", false)}, {answer: errConflict, read: shown("7", "", false)}, {answer: errConflict, read: shown("8", "n1", false)}}, "7 7 7", nil, ""},
		"a new version is asked for anew":   {[]round{{answer: errBroken, read: shown("8", "", false)}, {answer: errForbidden, read: shown("8", "", false)}}, "7 8", errForbidden, ""},
		"forbidden, and the read fails":     {[]round{{answer: errForbidden, failing: true}}, "7", errForbidden, "the read fails"},
		"no answer, and bound elsewhere":    {[]round{{answer: errBroken, read: shown("8", "n2", false)}}, "7", nil, "bound to n2 already"},
		"no answer, and the pod is another": {[]round{{answer: errBroken}}, "7", ErrPodGone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var versions []string
				rounds := test.rounds
				b := &Binder{
					Send: func(_ context.Context, binding *corev1.Binding) error {
						if binding.Target.Name != "n1" || binding.UID != "u" || binding.Annotations["k"] != "v" {
							t.Errorf("sent is %+v", binding)
						}
						versions = append(versions, binding.ResourceVersion)
						if len(rounds) == 0 {
							t.Error("a request too many")
							return nil
						}
						return rounds[0].answer
					},
					Confirm: func(_ context.Context, namespace, name, uid string) (*corev1.Pod, error) {
						now := rounds[0]
						rounds = rounds[1:]
						if namespace != "shop" || name != "p" || uid != "u" {
							t.Errorf("read is %s/%s %s", namespace, name, uid)
						}
						if now.failing {
							return nil, fails
						}
						return now.read, nil
					},
				}
				err := b.Bind(t.Context(), shown("7", "", false), "n1", map[string]string{"k": "v"})
				switch {
				case test.want == nil && test.says == "" && err != nil,
					(test.want != nil || test.says != "") && err == nil,
					test.want != nil && !errors.Is(err, test.want),
					test.says != "" && err != nil && !strings.Contains(err.Error(), test.says):
					t.Errorf("Bind says %v, want %v %s", err, test.want, test.says)
				}
				if got := strings.Join(versions, " "); got != test.versions {
					t.Errorf("requests were sent with the versions %s, want %s", got, test.versions)
				}
				if err := b.Settle(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The pod is changed so that no earlier request can bind it, and the scheduler is told.
func TestUnansweredForEver(t *testing.T) {
	for name, later := range map[string]error{"a webhook fails": errInternal, "refused after one lost answer": errForbidden} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				version, sent, changes := "7", 0, 0
				b := &Binder{
					Send: func(context.Context, *corev1.Binding) error {
						if sent++; sent == 1 {
							return errBroken
						}
						return later
					},
					Confirm: func(context.Context, string, string, string) (*corev1.Pod, error) {
						return shown(version, "", false), nil
					},
					Change: func(_ context.Context, namespace, name, uid, of, why string) error {
						if namespace != "shop" || name != "p" || uid != "u" || of != "7" || !strings.Contains(why, later.Error()) {
							t.Errorf("changed is %s/%s %s %s: %s", namespace, name, uid, of, why)
						}
						if changes++; changes == 1 {
							return errBroken
						}
						version = "8"
						return nil
					},
				}
				if err := b.Bind(t.Context(), shown("7", "", false), "n1", nil); !errors.Is(err, later) {
					t.Errorf("Bind says %v", err)
				}
				if changes != 2 || sent != maxUnanswered+1 {
					t.Errorf("%d requests and %d changes were sent", sent, changes)
				}
			})
		})
	}
}

func TestBoundBeforeTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := ""
		b := &Binder{
			Send: func(context.Context, *corev1.Binding) error { return errBroken },
			Confirm: func(context.Context, string, string, string) (*corev1.Pod, error) {
				return shown("7", node, false), nil
			},
			Change: func(context.Context, string, string, string, string, string) error { node = "n1"; return errConflict },
		}
		if err := b.Bind(t.Context(), shown("7", "", false), "n1", nil); err != nil {
			t.Errorf("Bind says %v", err)
		}
	})
}

// ChangeBy names version and UID, to change no other pod.
func TestChangeNamesTheVersion(t *testing.T) {
	kube := fake.NewClientset(shown("7", "", false))
	if err := ChangeBy(kube)(t.Context(), "shop", "p", "u", "7", "no answer"); err != nil {
		t.Fatal(err)
	}
	var patches []string
	for _, a := range kube.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok && a.GetSubresource() == "status" {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	if len(patches) != 1 || !strings.Contains(patches[0], `"resourceVersion":"7"`) || !strings.Contains(patches[0], `"uid":"u"`) {
		t.Errorf("the patches are %q", patches)
	}
	pod, err := kube.CoreV1().Pods("shop").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || len(pod.Status.Conditions) != 1 || pod.Status.Conditions[0].Message != "no answer" {
		t.Errorf("the pod is %v, %v", pod, err)
	}
}

// Without a lease requests and reads last RequestTimeout at most.
func TestRequestsHaveATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := &Binder{
			Until: func() time.Time { return time.Time{} },
			Send:  func(ctx context.Context, _ *corev1.Binding) error { <-ctx.Done(); return ctx.Err() },
			Confirm: func(ctx context.Context, _, _, _ string) (*corev1.Pod, error) {
				if time.Since(began) == RequestTimeout {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return shown("8", "n1", false), nil
			},
		}
		if err := b.Bind(t.Context(), shown("7", "", false), "n1", nil); err != nil || time.Since(began) < 3*RequestTimeout || time.Since(began) > 4*RequestTimeout {
			t.Errorf("after %s Bind says %v", time.Since(began), err)
		}
	})
}
