// SPDX-License-Identifier: Apache-2.0

package promptbinding

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

type upstream struct {
	volumebinding.SchedulerVolumeBinder
	waits chan struct{} // receives when it waits
	fails error
}

func (u *upstream) BindPodVolumes(ctx context.Context, _ *corev1.Pod, _ *volumebinding.PodVolumes) error {
	if u.fails != nil {
		return u.fails
	}
	u.waits <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

type world struct {
	t    *testing.T
	kube *fake.Clientset
	pod  *corev1.Pod
}

func newWorld(t *testing.T, fails error) (*world, *binder, *upstream) {
	t.Helper()
	w := &world{t: t, kube: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}})}
	factory := informers.NewSharedInformerFactory(w.kube, 0)
	seen, err := newChanges(factory)
	if err != nil {
		t.Fatal(err)
	}
	facts := factsOf(factory)
	factory.Core().V1().Nodes().Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "cache", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}}}
	inner := &upstream{waits: make(chan struct{}, 1), fails: fails}
	return w, &binder{SchedulerVolumeBinder: inner, changes: seen, facts: facts}, inner
}

func (w *world) put(objects ...runtime.Object) {
	w.t.Helper()
	for _, object := range objects {
		if err := w.kube.Tracker().Add(object); err != nil {
			w.t.Fatal(err)
		}
	}
}

func claim(name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-of-claim", Annotations: map[string]string{volume.AnnBindCompleted: "yes"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func disk(name, zone string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name}},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: name, UID: "uid-of-claim"},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}},
		},
	}
	for _, f := range change {
		f(pv)
	}
	return pv
}

// The wait ends with the last claim, in any order of events. Upstream's binder here never ends it.
func TestEndsWhenAllClaimsAreBound(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"the volume last": {claim("db-cache"), disk("db-cache", "a"), claim("data"), disk("data", "a")},
		"the claim last":  {disk("data", "a"), claim("data"), disk("db-cache", "a"), claim("db-cache")},
	} {
		t.Run(name, func(t *testing.T) {
			w, b, inner := newWorld(t, nil)
			done := make(chan error, 1)
			go func() { done <- b.BindPodVolumes(t.Context(), w.pod, nil) }()
			<-inner.waits
			for i, object := range objects {
				select {
				case err := <-done:
					t.Fatalf("it ended with %v after %d of %d objects", err, i, len(objects))
				default:
				}
				w.put(object)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			b.changes.mu.Lock()
			defer b.changes.mu.Unlock()
			if len(b.changes.waiting) != 0 {
				t.Errorf("somebody still waits for %v", b.changes.waiting)
			}
		})
	}
}

// Claims that upstream would not accept end no wait.
func TestDoesNotEndBefore(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"no claims":                    nil,
		"one claim bound":              {claim("data"), disk("data", "a")},
		"in another zone":              {claim("data"), disk("data", "b")},
		"not completed":                {claim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }), disk("data", "a")},
		"being deleted":                {claim("data", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }), disk("data", "a")},
		"no volume named":              {claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }), disk("data", "a")},
		"no volume":                    {claim("data")},
		"of another claim of the name": {claim("data"), disk("data", "a", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "older" })},
		"of nobody":                    {claim("data"), disk("data", "a", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })},
		"migrated": {claim("data"), disk("data", "a", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "data"}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			w, b, inner := newWorld(t, nil)
			w.pod.Spec.Volumes = w.pod.Spec.Volumes[:1]
			if name == "one claim bound" {
				w.pod.Spec.Volumes = append(w.pod.Spec.Volumes, corev1.Volume{Name: "other", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other"}}})
			}
			w.put(objects...)
			w.until(b, objects)
			ctx, end := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.BindPodVolumes(ctx, w.pod, nil) }()
			<-inner.waits
			if b.facts.bound("n1", claimsOf(w.pod)) {
				t.Error("its claims count as bound")
			}
			end()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func (w *world) until(b *binder, objects []runtime.Object) {
	w.t.Helper()
	changed, stop := b.changes.of([]claimKey{{"shop", "data"}})
	defer stop()
	for _, object := range objects {
		has := func() bool {
			var err error
			switch o := object.(type) {
			case *corev1.PersistentVolumeClaim:
				_, err = b.facts.claims.PersistentVolumeClaims(o.Namespace).Get(o.Name)
			case *corev1.PersistentVolume:
				_, err = b.facts.volumes.Get(o.Name)
				if o.Spec.ClaimRef == nil {
					return true // it has no event
				}
			}
			return err == nil
		}
		for !has() {
			select {
			case <-changed:
			case <-w.t.Context().Done():
				w.t.Fatal("the caches did not get what was put")
			}
		}
	}
}

func TestFailsAsUpstream(t *testing.T) {
	refused := errors.New("claim is gone")
	w, b, _ := newWorld(t, refused)
	if err := b.BindPodVolumes(t.Context(), w.pod, nil); !errors.Is(err, refused) {
		t.Errorf("it ended with %v", err)
	}
}

func TestNoClaims(t *testing.T) {
	w, b, _ := newWorld(t, nil)
	w.pod.Spec.Volumes = w.pod.Spec.Volumes[2:]
	if b.facts.bound("n1", claimsOf(w.pod)) {
		t.Error("a pod without claims counts as bound, and would hide what upstream fails with")
	}
}

func TestUnknownNode(t *testing.T) {
	w, b, _ := newWorld(t, nil)
	w.put(claim("data"), disk("data", "a"))
	w.until(b, []runtime.Object{claim("data"), disk("data", "a")})
	w.pod.Spec.Volumes = w.pod.Spec.Volumes[:1]
	if !b.facts.bound("n1", claimsOf(w.pod)) || b.facts.bound("n9", claimsOf(w.pod)) {
		t.Error("bound is to be true at n1, and false at n9")
	}
}

func TestArgs(t *testing.T) {
	full, err := decode(nil)
	if err != nil || full.BindTimeoutSeconds != 600 {
		t.Errorf("without args: %+v, %v", full, err)
	}
	full, err = decode(&runtime.Unknown{Raw: []byte(`{"bindTimeoutSeconds": 60}`)})
	if err != nil || full.BindTimeoutSeconds != 60 {
		t.Errorf("with a timeout: %+v, %v", full, err)
	}
	for _, bad := range []runtime.Object{&runtime.Unknown{Raw: []byte(`{"bindTimeout": 60}`)}, &corev1.Pod{}} {
		if _, err := decode(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}
