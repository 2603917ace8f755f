// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/test/apitest"
)

type observed struct {
	*watch.Observer
	t       *testing.T
	touched chan ledger.Touched
}

func start(t *testing.T, server *apitest.Server, synced bool) *observed {
	t.Helper()
	observer, err := watch.New(watch.Config{Kube: server.Kube, Moorage: server.Moorage})
	if err != nil {
		t.Fatal(err)
	}
	o := &observed{observer, t, make(chan ledger.Touched, 10000)}
	observer.Subscribe(func(touched ledger.Touched) { o.touched <- touched })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		observer.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if synced {
		if err := observer.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *observed) until(what string, holds func(ledger.Snapshot) bool) {
	o.t.Helper()
	late := time.After(30 * time.Second)
	for !holds(o.Snapshot()) {
		select {
		case <-o.touched:
		case <-time.After(50 * time.Millisecond): // not all facts touch something
		case <-late:
			o.t.Fatalf("never: %s", what)
		}
	}
}

func pod(name, uid, node, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
	}
}

func disk(server *apitest.Server, name string) ledger.VolumeID {
	server.Put("persistentvolumes", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: name}},
		}})
	server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	return ledger.VolumeID{Driver: "d", Handle: name}
}

func ticket(podUID, podName, node, claim string) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: podUID, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: podName, UID: types.UID(podUID)}}},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: node,
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}}},
	}
}

func attachment(name, node, pv string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(pv)}},
	}
}

func TestEveryKindReachesTheLedger(t *testing.T) {
	server := apitest.Start(t)
	v := disk(server, "data")
	server.Put("pods", pod("db", "u1", "n1", "data"))
	server.Put("volumeattachments", attachment("csi-1", "n1", "data"))
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	server.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "d"}}}})
	server.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}})
	server.Put("storageclasses", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Provisioner: "d"})
	server.Put("volumetickets", ticket("u2", "new", "n2", "data"))
	server.Put("attachpolicies", &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AttachPolicySpec{Driver: "d"}})
	server.Put("volumeholds", &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName("d", "data")},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: "d", Handle: "data"}, Status: v1alpha1.VolumeHoldStatus{Transitions: 3}})
	o := start(t, server, true)

	s := o.Snapshot()
	volume := s.Volume(v)
	if volume == nil || volume.Hold == nil || volume.Hold.Transitions != 3 || volume.OnNode("n1").Canonical() == nil || volume.OnNode("n2") == nil {
		t.Fatalf("the volume is %+v", volume)
	}
	policies := 0
	for range s.Policies() {
		policies++
	}
	if n := s.Node("n1"); !n.Exists || !n.Driver("d").Registered || s.AttachRequired("other") || s.StorageClass("c") == nil || policies != 1 {
		t.Errorf("node %+v, %d policies", n, policies)
	}

	for _, gone := range [][2]string{{"volumeholds", v1alpha1.VolumeHoldName("d", "data")}, {"volumeattachments", "csi-1"},
		{"csinodes", "n1"}, {"nodes", "n1"}, {"storageclasses", "c"}, {"attachpolicies", "p"}, {"persistentvolumes", "data"}} {
		server.Remove(gone[0], "", gone[1])
	}
	server.Remove("pods", "shop", "db")
	server.Remove("persistentvolumeclaims", "shop", "data")
	server.Remove("volumetickets", "shop", "u2")
	o.until("all is gone", func(s ledger.Snapshot) bool {
		left := s.Size()
		for range s.Policies() {
			left++
		}
		for range s.Nodes() {
			left++
		}
		for range s.Tickets() {
			left++
		}
		return left == 0 && s.StorageClass("c") == nil && s.Pod("u1") == nil
	})
}

// A pod replaced by a namesake between two lists is two pods.
func TestNamesakes(t *testing.T) {
	server := apitest.Start(t)
	v := disk(server, "data")
	server.Put("pods", pod("db", "u1", "n1", "data"))
	o := start(t, server, true)
	server.Put("pods", pod("db", "u2", "n2", "data"))
	o.until("the first pod is gone, the second there", func(s ledger.Snapshot) bool {
		return s.Pod("u1") == nil && s.Pod("u2") != nil && s.Volume(v).OnNode("n1") == nil && s.Volume(v).OnNode("n2") != nil
	})
}

func TestAnswers(t *testing.T) {
	server := apitest.Start(t)
	disk(server, "data")
	o := start(t, server, true)
	answer := attachment("csi-1", "n1", "data")
	answer.UID, answer.ResourceVersion = "a", "1000000" // ahead of all that the informer has seen

	t.Run("count at once", func(t *testing.T) {
		o.Saw(answer)
		if o.Snapshot().Attachment("csi-1") == nil {
			t.Error("the answer is not in the ledger")
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n9", UID: "n", ResourceVersion: "1000000"}}
		o.Saw(node)
		if got, ok := o.Node("n9"); !ok || got.UID != "n" {
			t.Error("the answer is not the newest version known")
		}
	})
	t.Run("don't bring back what is gone", func(t *testing.T) {
		created := server.Put("volumeattachments", attachment("csi-2", "n1", "data"))
		late := attachment("csi-2", "n1", "data")
		late.UID, late.ResourceVersion = "b", created
		o.until("the informer shows it", func(s ledger.Snapshot) bool { return s.Attachment("csi-2") != nil })
		server.Remove("volumeattachments", "", "csi-2")
		o.until("the informer shows that it is gone", func(s ledger.Snapshot) bool { return s.Attachment("csi-2") == nil })
		o.Saw(late)
		if o.Snapshot().Attachment("csi-2") != nil {
			t.Error("a late answer brought it back")
		}
	})
	t.Run("are taken back when the informer passes them without a word", func(t *testing.T) {
		// Created and removed unseen: only the server's version goes on.
		never := attachment("csi-3", "n1", "data")
		never.UID, never.ResourceVersion = "c", server.Put("volumeattachments", attachment("csi-4", "n1", "data"))
		o.Saw(never)
		o.until("the answer is taken back", func(s ledger.Snapshot) bool { return s.Attachment("csi-3") == nil })
	})
	t.Run("of kinds that aren't observed are ignored", func(t *testing.T) {
		o.Saw(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "9"}})
	})
}

// If a reservation ends in between, the ticket or the pod is seen.
func TestPodsAreListedAfterTickets(t *testing.T) {
	server := apitest.Start(t)
	v := disk(server, "data")
	server.Put("volumetickets", ticket("u1", "db", "n1", "data"))
	server.Put("pods", pod("db", "u1", "", "data"))
	ready := make(chan struct{})
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && r.Resource == "pods" {
			<-ready
		}
		serve()
		return nil
	})
	o := start(t, server, false)
	o.until("the ticket is seen", func(s ledger.Snapshot) bool {
		return s.Ticket(ledger.TicketID{Namespace: "shop", Name: "u1"}) != nil
	})
	if s := o.Snapshot(); o.HasSynced() || s.Pod("u1") != nil {
		t.Error("pods were listed before the tickets were known")
	}
	server.Put("pods", pod("db", "u1", "n1", "data"))
	server.Remove("volumetickets", "shop", "u1")
	close(ready)
	if err := o.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := o.Snapshot(); s.Volume(v).OnNode("n1") == nil {
		t.Error("neither the reservation nor the bound pod counts")
	}
}

func TestAttacherCalls(t *testing.T) {
	server := apitest.Start(t)
	o := start(t, server, true)
	if o.AttacherCalls("d.example.com") {
		t.Error("nothing is known of the attacher yet")
	}
	server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: "pv", Finalizers: []string{"external-attacher/d-example-com"}}})
	o.until("the attacher's finalizer is seen", func(ledger.Snapshot) bool { return o.AttacherCalls("d.example.com") })
	if o.AttacherCalls("e") {
		t.Error("one driver's attacher says nothing about another's")
	}
}

func TestConfigIsValidated(t *testing.T) {
	server := apitest.Start(t)
	for name, config := range map[string]watch.Config{
		"no clients":           {},
		"a kind nobody knows":  {Kube: server.Kube, Moorage: server.Moorage, Kinds: []watch.Kind{watch.Tickets, watch.Pods, "secrets"}},
		"pods without tickets": {Kube: server.Kube, Moorage: server.Moorage, Kinds: []watch.Kind{watch.Pods}},
	} {
		if _, err := watch.New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := watch.New(watch.Config{Kube: server.Kube, Moorage: server.Moorage, Kinds: []watch.Kind{watch.Pods, watch.Tickets}}); err != nil {
		t.Error(err)
	}
}
