// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

var deleteNow = metav1.DeleteOptions{}

func creation() rules.Step {
	return rules.Step{
		Kind: rules.CreateAttachment, Volume: data, Node: "n1", Attachment: ledger.AttachmentName(data, "n1"),
		PV: "pv-data", NodeID: "i-1", Transitions: 7,
	}
}

func TestCreateAttachment(t *testing.T) {
	for name, known := range map[string]bool{"the attacher is known": true, "the attacher is not known": false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(s *apitest.Server) {
				pv := persistentVolume("other")
				if known {
					pv.Finalizers = []string{convert.AttacherFinalizer("d")}
				}
				s.Put("persistentvolumes", pv)
				withUser(s)
			}, nil)
			must(t, w.Do(t.Context(), creation()))
			var got storagev1.VolumeAttachment
			if !w.server.Get("volumeattachments", "", creation().Attachment, &got) {
				t.Fatal("there is no attachment")
			}
			if got.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || got.Annotations[v1alpha1.AnnotationTransitions] != "7" ||
				got.Spec.Attacher != "d" || got.Spec.NodeName != "n1" || *got.Spec.Source.PersistentVolumeName != "pv-data" {
				t.Errorf("attachment %+v", got)
			}
			stamped := slices.Contains(got.Finalizers, "external-attacher/d") && got.Annotations[convert.AnnotationNodeID] == "i-1"
			if stamped != known || !known && (len(got.Finalizers) > 0 || got.Annotations[convert.AnnotationNodeID] != "") {
				t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
			}
			if w.place().Canonical() == nil {
				t.Error("the ledger does not know it yet")
			}
			must(t, w.Do(t.Context(), creation()))
		})
	}
}

func TestReportOfOwnAttachment(t *testing.T) {
	w := start(t, all(withUser, withNode(nil, nil)), nil)
	must(t, w.Do(t.Context(), creation()))
	var a storagev1.VolumeAttachment
	w.server.Get("volumeattachments", "", creation().Attachment, &a)
	a.Status.Attached = true
	w.server.Put("volumeattachments", &a)
	w.until("it is attached", func(ledger.Snapshot) bool { return w.place().Canonical().Attached })
	must(t, w.Do(t.Context(), w.step(rules.Report)))
	w.writes("create volumeattachments "+a.Name, "patch nodes/status n1")
}

func TestCreateAttachmentOfAnotherVolume(t *testing.T) {
	w := start(t, all(withUser, withAttachment(func(a *storagev1.VolumeAttachment) { a.Spec.NodeName = "n9" })), nil)
	err := w.Do(t.Context(), creation())
	if err == nil || errors.Is(err, protocol.ErrStale) || !strings.Contains(err.Error(), "of another volume") {
		t.Errorf("error %v", err)
	}
}

// A creation without an answer is settled before any other decision about the volume.
func TestCreateAttachmentWithoutAnswer(t *testing.T) {
	for name, done := range map[string]bool{"it was made": true, "it was not made": false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, withUser, func(c *write.Config) { c.Timeout = 50 * time.Millisecond })
			var began atomic.Pointer[time.Time]
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb != "create" {
					serve()
					return nil
				}
				began.Store(ptr.To(time.Now()))
				if done {
					serve()
				}
				return errors.New("the connection breaks")
			})
			err := w.Do(t.Context(), creation())
			if waited := time.Since(*began.Load()); waited < 50*time.Millisecond {
				t.Errorf("it returned after %s, when the API server may still be at it", waited)
			}
			if known := w.place().Canonical() != nil; known != done || (err == nil) != done || w.place().Sent {
				t.Errorf("error %v, known %v, still in doubt %v", err, known, w.place().Sent)
			}
		})
	}
}

func TestCreateAttachmentIsRefused(t *testing.T) {
	w := start(t, withUser, func(c *write.Config) { c.Timeout = time.Hour })
	w.server.Intercept(func(apitest.Request, func()) error {
		return apierrors.NewForbidden(storagev1.Resource("volumeattachments"), "x", errors.New("quota"))
	})
	if err := w.Do(t.Context(), creation()); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
}

func TestCreateAttachmentOfInlineVolume(t *testing.T) {
	inline := ledger.VolumeID{Driver: "ebs.csi.aws.com", Handle: "vol-02399794d890f9375"}
	pod := usingPod("db", "p1", "")
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: inline.Handle}}
	w := start(t, func(s *apitest.Server) { s.Put("pods", pod) }, nil)
	step := rules.Step{Kind: rules.CreateAttachment, Volume: inline, Node: "n1", Attachment: ledger.AttachmentName(inline, "n1")}
	must(t, w.Do(t.Context(), step))
	if got := w.observer.Snapshot().Attachment(step.Attachment); got == nil || got.Inline != inline {
		t.Errorf("attachment %+v", got)
	}
	w.server.Remove("pods", "shop", "db")
	w.until("the pod is gone", func(s ledger.Snapshot) bool { return s.Pod("p1") == nil })
	step.Node, step.Attachment = "n2", ledger.AttachmentName(inline, "n2")
	isStale(t, w.Do(t.Context(), step))
}

// Only at the version of the proofs.
func TestDeleteAttachment(t *testing.T) {
	w := start(t, withAttachment(nil), nil)
	old := w.step(rules.DeleteAttachment)
	withAttachment(func(a *storagev1.VolumeAttachment) {
		a.Annotations = map[string]string{v1alpha1.AnnotationConfirmed: "x"}
	})(w.server)
	isStale(t, w.Do(t.Context(), old))
	var a storagev1.VolumeAttachment
	if !w.server.Get("volumeattachments", "", old.Attachment, &a) || a.DeletionTimestamp != nil {
		t.Fatal("it is deleted in spite of its version")
	}
	if w.place().Canonical().Version != a.ResourceVersion {
		t.Error("the ledger does not know the newer version")
	}
	must(t, w.Do(t.Context(), w.step(rules.DeleteAttachment)))
	w.until("it is being deleted", func(ledger.Snapshot) bool { return w.place().Canonical().Deleting })
	w.server.Remove("volumeattachments", "", old.Attachment)
	must(t, w.Do(t.Context(), old)) // a missing one counts as deleted
}

// The list must be consistent, and made after the question.
func TestConfirmUnwanted(t *testing.T) {
	finished := usingPod("old", "p0", "data")
	finished.Status.Phase = corev1.PodSucceeded
	elsewhere := usingPod("elsewhere", "p9", "data")
	elsewhere.Spec.NodeName = "n2"
	tests := map[string]struct {
		appears  func(*apitest.Server) // after the caches have seen everything else
		unwanted bool
	}{
		"nobody":              {func(*apitest.Server) {}, true},
		"a finished pod":      {func(s *apitest.Server) { s.Put("pods", finished) }, true},
		"a pod elsewhere":     {func(s *apitest.Server) { s.Put("pods", elsewhere) }, true},
		"a pod of that claim": {func(s *apitest.Server) { s.Put("pods", usingPod("new", "p1", "data")) }, false},
		"a pod of a claim that the caches don't know": {func(s *apitest.Server) {
			pv := persistentVolume("data")
			pv.Spec.ClaimRef.Name = "young"
			s.Put("persistentvolumes", pv)
			s.Put("persistentvolumeclaims", boundClaim("young", "pv-data"))
			s.Put("pods", usingPod("new", "p1", "young"))
		}, false},
		"a pod of a claim and a PersistentVolume that the caches don't know": {func(s *apitest.Server) {
			pv := persistentVolume("data")
			pv.Name, pv.Spec.ClaimRef.Name = "pv-young", "young"
			s.Put("persistentvolumes", pv)
			s.Put("persistentvolumeclaims", boundClaim("young", "pv-young"))
			s.Put("pods", usingPod("new", "p1", "young"))
		}, false},
		"a pod of a claim that only says that it is bound to the volume": {func(s *apitest.Server) {
			s.Put("persistentvolumeclaims", boundClaim("young", "pv-data"))
			s.Put("pods", usingPod("new", "p1", "young"))
		}, true},
		"a pod of a claim that does not exist": {func(s *apitest.Server) { s.Put("pods", usingPod("new", "p1", "nothing")) }, true},
		"a pod of a claim that was made again, and bound to the volume": {func(s *apitest.Server) {
			pv := persistentVolume("data")
			pv.Spec.ClaimRef.Name = "again"
			s.Put("persistentvolumes", pv)
			s.Remove("persistentvolumeclaims", "shop", "again")
			s.Put("persistentvolumeclaims", boundClaim("again", "pv-data"))
			s.Put("pods", usingPod("new", "p1", "again"))
		}, false},
		"a pod of a claim that was made again, and bound to a PersistentVolume that the caches don't know": {func(s *apitest.Server) {
			pv := persistentVolume("data")
			pv.Name, pv.Spec.ClaimRef.Name = "pv-young", "again"
			s.Put("persistentvolumes", pv)
			s.Remove("persistentvolumeclaims", "shop", "again")
			s.Put("persistentvolumeclaims", boundClaim("again", "pv-young"))
			s.Put("pods", usingPod("new", "p1", "again"))
		}, false},
		"a pod that the caches know, of a claim that was made again": {func(s *apitest.Server) {
			pv := persistentVolume("data")
			pv.Spec.ClaimRef.Name = "other"
			s.Put("persistentvolumes", pv)
			s.Remove("persistentvolumeclaims", "shop", "other")
			s.Put("persistentvolumeclaims", boundClaim("other", "pv-data"))
		}, false},
		"a pod of a claim that is still bound to another": {func(s *apitest.Server) { s.Put("pods", usingPod("new", "p1", "again")) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(nil, []ledger.VolumeID{data}), withAttachment(nil), func(s *apitest.Server) {
				s.Put("persistentvolumeclaims", boundClaim("data", "pv-data"))
				s.Put("persistentvolumes", persistentVolume("else"))
				s.Put("persistentvolumeclaims", boundClaim("again", "pv-else"))
				s.Put("persistentvolumeclaims", boundClaim("other", "pv-else"))
				s.Put("pods", usingPod("known", "p8", "other"))
			}), nil)
			must(t, w.Do(t.Context(), w.step(rules.Unreport)))
			step := w.step(rules.ConfirmUnwanted)
			w.server.Lag(true)
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb == "list" && r.Resource == "pods" {
					test.appears(w.server)
				}
				serve()
				return nil
			})
			must(t, w.Do(t.Context(), step))
			if got := w.place().Proof.Stage == ledger.ProofUnwanted; got != test.unwanted {
				t.Errorf("unwanted %v, want %v (proof %+v)", got, test.unwanted, w.place().Proof)
			}
			if !test.unwanted && len(w.place().Users) == 0 {
				t.Error("the ledger does not know who wants it")
			}
		})
	}
}

// Many nonexistent claims are not read one by one; the one that leads to the volume is found.
func TestConfirmUnwantedListsManyClaims(t *testing.T) {
	const many = 300
	for name, leads := range map[string]bool{"none leads to the volume": false, "one leads to the volume": true} {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(nil, []ledger.VolumeID{data}), withAttachment(nil)), nil)
			must(t, w.Do(t.Context(), w.step(rules.Unreport)))
			step := w.step(rules.ConfirmUnwanted)
			w.server.Lag(true)
			pod := usingPod("new", "p1", "young")
			for i := range many {
				volume := pod.Spec.Volumes[0].DeepCopy()
				volume.Name, volume.PersistentVolumeClaim.ClaimName = fmt.Sprint("v", i), fmt.Sprint("missing", i)
				pod.Spec.Volumes = append(pod.Spec.Volumes, *volume)
			}
			w.server.Put("pods", pod)
			if leads {
				pv := persistentVolume("data")
				pv.Name, pv.Spec.ClaimRef.Name = "pv-young", "young"
				w.server.Put("persistentvolumes", pv)
				w.server.Put("persistentvolumeclaims", boundClaim("young", "pv-young"))
			}
			w.server.Forget()
			must(t, w.Do(t.Context(), step))
			if got := w.place().Proof.Stage == ledger.ProofUnwanted; got == leads {
				t.Errorf("unwanted %t", got)
			}
			if n := len(w.server.Requests()); n > 10 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A list that began before a question can't answer it.
func TestQuestionsShareTheNextList(t *testing.T) {
	w := start(t, all(withNode(nil, []ledger.VolumeID{data}), withAttachment(nil)), nil)
	must(t, w.Do(t.Context(), w.step(rules.Unreport)))
	w.server.Forget()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	first := true
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && first {
			first = false
			close(arrived)
			<-goOn
		}
		serve()
		return nil
	})
	errs := make(chan error, 4)
	ask := func() { errs <- w.Do(t.Context(), w.step(rules.ConfirmUnwanted)) }
	go ask()
	<-arrived
	for range 3 {
		go ask()
	}
	w.Asking(t, "n1", 3)
	close(goOn)
	for range 4 {
		must(t, <-errs)
	}
	lists := 0
	for _, r := range w.server.Requests() {
		if r.Verb == "list" {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("%d lists, want 2", lists)
	}
}

func TestRemovePod(t *testing.T) {
	node := func(s *apitest.Server, taints ...corev1.Taint) {
		s.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}, Spec: corev1.NodeSpec{Taints: taints}})
	}
	w := start(t, func(s *apitest.Server) {
		node(s)
		s.Put("pods", usingPod("db", "p1", "data"))
	}, nil)
	step := rules.Step{Kind: rules.RemovePod, Node: "n1", UID: "p1"}
	isStale(t, w.Do(t.Context(), step)) // the taint is gone by now
	w.writes()
	node(w.server, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	w.server.Forget()
	must(t, w.Do(t.Context(), step))
	request := w.server.Requests()[1]
	if request.String() != "delete pods shop/db" || !strings.Contains(request.Body, `"gracePeriodSeconds":0`) || !strings.Contains(request.Body, `"uid":"p1"`) {
		t.Errorf("request %s %s", request, request.Body)
	}
	w.until("it is gone", func(s ledger.Snapshot) bool { return s.Pod("p1") == nil })
	must(t, w.Do(t.Context(), step))
}
