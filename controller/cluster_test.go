// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/tickets"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

type cluster struct {
	*apitest.Server
	t                        *testing.T
	observer                 *watch.Observer
	detachFails, attachFails atomic.Pointer[storagev1.VolumeError]
	metrics                  *report.Metrics
	tells                    bool
	// closed at the loss of the leader's lease; may be nil
	lost chan struct{}
}

const driver = "d"

func newCluster(t *testing.T, slots int32, nodes ...string) *cluster {
	t.Helper()
	c := &cluster{Server: apitest.Start(t), t: t}
	for _, name := range nodes {
		c.node(name, nil)
		c.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver, NodeID: "i-" + name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(slots)}}}}})
	}
	c.attacher()
	return c
}

// node keeps volumesAttached.
func (c *cluster) node(name string, inUse []string) {
	node := &corev1.Node{}
	c.Get("nodes", "", name, node)
	registered := metav1.NewTime(time.Unix(1000, 0))
	node.ObjectMeta = metav1.ObjectMeta{Name: name, UID: node.UID, Annotations: map[string]string{
		"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: registered, LastHeartbeatTime: metav1.NewTime(registered.Add(time.Minute))}}
	node.Status.VolumesInUse = nil
	for _, handle := range inUse {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, unique(handle))
	}
	c.Put("nodes", node)
}

func unique(handle string) corev1.UniqueVolumeName {
	return convert.UniqueName(ledger.VolumeID{Driver: driver, Handle: handle})
}

// disk's claim, PersistentVolume and handle have one name.
func (c *cluster) disk(name string) {
	c.diskOf(name, corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}})
}

func (c *cluster) diskOf(name string, source corev1.PersistentVolumeSource) {
	c.Put("persistentvolumes", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{convert.AttacherFinalizer(driver)}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: name},
			PersistentVolumeSource: source,
		}})
	c.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
}

func (c *cluster) pod(name, node, claim string, stamped bool) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
	}
	if stamped {
		pod.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: `{"volumes":[{"name":"v","claim":"` + claim + `","safeToMount":false,"safeToDetach":false,"reason":"Pending"}]}`}
	}
	c.Put("pods", pod)
}

func (c *cluster) ticket(pod, node, claim string) {
	c.Put("volumetickets", &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "uid-" + pod, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("uid-" + pod)}}},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: node,
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}}},
	})
}

func (c *cluster) attacher() {
	ctx, cancel := context.WithCancel(c.t.Context())
	informer := informers.NewSharedInformerFactory(c.Kube, 0).Storage().V1().VolumeAttachments().Informer()
	act := func(object any) {
		a := object.(*storagev1.VolumeAttachment).DeepCopy()
		detach, attach := c.detachFails.Load(), c.attachFails.Load()
		switch {
		case a.DeletionTimestamp != nil && detach == nil:
			c.Remove("volumeattachments", "", a.Name)
			return
		case a.DeletionTimestamp != nil:
			a.Status.DetachError = detach
		case a.Status.Attached:
			return
		case attach != nil && a.Status.AttachError != nil:
			return
		case attach != nil:
			a.Status.AttachError = attach
		default:
			a.Status = storagev1.VolumeAttachmentStatus{Attached: true}
		}
		c.Put("volumeattachments", a)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: act, UpdateFunc: func(_, o any) { act(o) }})
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
}

func (c *cluster) lead(epoch int64) (stop func()) {
	c.t.Helper()
	return c.leadAs(epoch, func(*Config) {})
}

func (c *cluster) leadAs(epoch int64, change func(*Config)) (stop func()) {
	c.t.Helper()
	observer, err := watch.New(watch.Config{Kube: c.Kube, Moorage: c.Moorage})
	if err != nil {
		c.t.Fatal(err)
	}
	c.observer = observer
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 3)
	go func() { c.decideTickets(ctx, epoch); ended <- nil }()
	go func() { observer.Run(ctx); ended <- nil }()
	config := DefaultConfig()
	config.Mode = ModeStandalone
	config.Workers = 8
	change(&config)
	leading := make(chan struct{})
	var events *report.Events
	if c.tells {
		events = report.NewEvents(ctx, c.Kube)
	}
	go func() {
		ended <- serveTerm(ctx, termConfig{
			Config: config, leading: func() { close(leading) },
			clients:  &connect.Clients{Write: c.Kube, WriteMoorage: c.Moorage},
			observer: observer, metrics: c.metrics, events: events,
			term: lead.Term{Epoch: epoch, Until: func() time.Time { return time.Time{} }, Lost: c.lost},
		})
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-ended
			<-ended
			<-ended
		}
	}
	c.t.Cleanup(stop)
	<-leading
	return stop
}

// decideTickets plays the scheduler.
func (c *cluster) decideTickets(ctx context.Context, epoch int64) {
	observer, err := watch.New(watch.Config{Kube: c.Kube, Moorage: c.Moorage})
	if err != nil {
		c.t.Error(err)
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { observer.Run(ctx) })
	if observer.WaitForSync(ctx) != nil || observer.CatchUp(ctx) != nil {
		return
	}
	executor, err := write.New(write.Config{
		Kube: c.Kube, Moorage: c.Moorage, Observer: observer, Timeout: DefaultConfig().WriteTimeout, Epoch: epoch,
		Token: func() string { return "" },
	})
	if err != nil {
		c.t.Error(err)
		return
	}
	for _, e := range protocol.Doubts(observer.Snapshot()) {
		observer.Apply(e)
	}
	keeper, err := tickets.New(tickets.Config{Cache: observer, Write: executor, Now: time.Now, Order: &sync.Mutex{}, Waits: &tickets.Waits{}})
	if err != nil {
		c.t.Error(err)
		return
	}
	observer.Subscribe(keeper.Touched)
	keeper.Run(ctx, 4, 4)
}

// A busy machine has been slower than half a minute.
const patience = 2 * time.Minute

func (c *cluster) until(what string, holds func() bool) {
	c.t.Helper()
	late := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(late) {
			c.t.Fatalf("never: %s\nwrites so far:\n%s", what, strings.Join(c.Writes(), "\n"))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *cluster) attachment(handle, node string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{}
	if !c.Get("volumeattachments", "", ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: handle}, ledger.NodeName(node)), a) {
		return nil
	}
	return a
}

func (c *cluster) reported(handle, node string) bool {
	var n corev1.Node
	c.Get("nodes", "", node, &n)
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == unique(handle) })
}

func (c *cluster) hold(handle string) v1alpha1.VolumeHoldStatus {
	var h v1alpha1.VolumeHold
	c.Get("volumeholds", "", v1alpha1.VolumeHoldName(driver, handle), &h)
	return h.Status
}

func (c *cluster) granted(pod string) *metav1.Condition {
	var t v1alpha1.VolumeTicket
	if !c.Get("volumetickets", "shop", "uid-"+pod, &t) {
		return nil
	}
	return meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted)
}

// wrote wants exactly these writes, in order, since the last Forget. A repeated write for a newer version
// counts once.
func (c *cluster) wrote(want ...string) {
	c.t.Helper()
	got := slices.Compact(c.Writes())
	if !slices.Equal(got, want) {
		c.t.Errorf("the controller wrote\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func va(handle, node string) string {
	return ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: handle}, ledger.NodeName(node))
}

func vh(handle string) string { return v1alpha1.VolumeHoldName(driver, handle) }

func names(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}
