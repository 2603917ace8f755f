// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

var data = ledger.VolumeID{Driver: "d", Handle: "data"}

type world struct {
	*write.Executor
	t        *testing.T
	server   *apitest.Server
	observer *watch.Observer
	touched  chan struct{}
}

func start(t *testing.T, setUp func(*apitest.Server), change func(*write.Config)) *world {
	t.Helper()
	server := apitest.Start(t)
	server.Put("persistentvolumes", persistentVolume("data"))
	if setUp != nil {
		setUp(server)
	}
	observer, err := watch.New(watch.Config{Kube: server.Kube, Moorage: server.Moorage})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: server, observer: observer, touched: make(chan struct{}, 1)}
	observer.Subscribe(func(ledger.Touched) {
		select {
		case w.touched <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		observer.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if err := observer.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	tokens := 0
	config := write.Config{
		Kube: server.Kube, Moorage: server.Moorage, Observer: observer, Timeout: 10 * time.Second,
		Token: func() string { tokens++; return fmt.Sprintf("token-%d", tokens) },
	}
	if change != nil {
		change(&config)
	}
	if w.Executor, err = write.New(config); err != nil {
		t.Fatal(err)
	}
	server.Forget()
	return w
}

func (w *world) WriteTicketStatus(ctx context.Context, object *v1alpha1.VolumeTicket) error {
	fact := convert.Ticket(object)
	return w.Carry(ctx, protocol.Write(&fact), func(protocol.Request) (*v1alpha1.VolumeTicket, error) { return object, nil })
}

func (w *world) DeleteTicket(ctx context.Context, t *ledger.Ticket) error {
	return w.Carry(ctx, protocol.Ending(t), nil)
}

func (w *world) until(what string, holds func(ledger.Snapshot) bool) {
	w.t.Helper()
	late := time.After(30 * time.Second)
	for !holds(w.observer.Snapshot()) {
		select {
		case <-w.touched:
		case <-time.After(50 * time.Millisecond):
		case <-late:
			w.t.Fatalf("never: %s", what)
		}
	}
}

func (w *world) writes(want ...string) {
	w.t.Helper()
	if got := w.server.Writes(); !slices.Equal(got, want) {
		w.t.Errorf("writes %q\nwant   %q", got, want)
	}
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	if !w.server.Get("nodes", "", "n1", node) {
		w.t.Fatal("node n1 is gone")
	}
	return node
}

func (w *world) place() *ledger.VolumeOnNode {
	return w.observer.Snapshot().Volume(data).OnNode("n1")
}

func (w *world) step(do rules.Kind) rules.Step {
	step := rules.Step{Kind: do, Volume: data, Node: "n1", Attachment: ledger.AttachmentName(data, "n1")}
	s := w.observer.Snapshot()
	if n := s.Node("n1"); n != nil && n.Exists {
		step.NodeUID, step.NodeVersion = n.UID, n.Version
	}
	if a := w.place().Canonical(); a != nil {
		step.Attachment, step.UID, step.Version = a.Name, a.UID, a.Version
	}
	return step
}

func persistentVolume(handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + handle},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: handle},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: handle}},
		},
	}
}

func withNode(inUse, attached []ledger.VolumeID) func(*apitest.Server) {
	return func(s *apitest.Server) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}}
		for _, v := range inUse {
			node.Status.VolumesInUse = append(node.Status.VolumesInUse, convert.UniqueName(v))
		}
		for _, v := range attached {
			node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: convert.UniqueName(v)})
		}
		s.Put("nodes", node)
	}
}

func withAttachment(change func(*storagev1.VolumeAttachment)) func(*apitest.Server) {
	return func(s *apitest.Server) {
		a := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(data, "n1"), UID: "va-uid", Finalizers: []string{"external-attacher/d"}},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n1",
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-data")}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		}
		if change != nil {
			change(a)
		}
		s.Put("volumeattachments", a)
	}
}

func all(setUps ...func(*apitest.Server)) func(*apitest.Server) {
	return func(s *apitest.Server) {
		for _, f := range setUps {
			f(s)
		}
	}
}

func usingPod(name, uid, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
	}
}

func boundClaim(name, pv string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: pv},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func withUser(s *apitest.Server) {
	s.Put("persistentvolumeclaims", boundClaim("data", "pv-data"))
	s.Put("pods", usingPod("db", "p1", "data"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isStale(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, protocol.ErrStale) {
		t.Errorf("error %v, want protocol.ErrStale", err)
	}
}

func TestLease(t *testing.T) {
	lease := time.Now().Add(-time.Second)
	w := start(t, all(withUser, withNode(nil, nil), withAttachment(nil)), func(c *write.Config) {
		c.Lease = func() time.Time { return lease }
	})
	for _, do := range []rules.Kind{rules.Report, rules.Unreport, rules.ConfirmUnwanted, rules.DeleteAttachment, rules.CreateAttachment, rules.WriteHold} {
		step := w.step(do)
		step.PV = "pv-data"
		if err := w.Do(t.Context(), step); !errors.Is(err, write.ErrNoLease) {
			t.Errorf("%s after the lease: %v", do, err)
		}
	}
	if requests := w.server.Requests(); len(requests) > 0 {
		t.Errorf("requests after the lease: %v", requests)
	}
	lease = time.Now().Add(50 * time.Millisecond)
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" {
			<-t.Context().Done()
		}
		return nil
	})
	err := w.Do(t.Context(), w.step(rules.DeleteAttachment))
	if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "deadline")) {
		t.Errorf("a write that outlasts the lease: %v", err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	if _, err := write.New(write.Config{}); err == nil {
		t.Error("an empty Config is taken")
	}
}
