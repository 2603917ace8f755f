// SPDX-License-Identifier: Apache-2.0

package operation_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller/operation"
	"github.com/moorage-dev/moorage/internal/ledger"
	internal "github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/test/apitest"
)

const driver = "disk.example.com"

type told struct {
	mu    sync.Mutex
	lines []string
	mute  int // so often it is said that a namespace has no events left
}

func (t *told) OperationTicket(of report.Object, text string) { t.add("made", of.Kind, of.Name, text) }

func (t *told) OperationHeld(of report.Object, code, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mute > 0 {
		t.mute--
		return false
	}
	t.lines = append(t.lines, strings.Join([]string{"held", of.Kind, of.Name, code, text}, " "))
	return true
}

// Another type has the same event and metric names.
type counts struct{ *told }

func (c counts) OperationTicket(operation, result string) { c.add("count", operation, result) }

func (t *told) add(words ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, strings.Join(words, " "))
}

func (t *told) said(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(line string) bool { return strings.Contains(line, text) })
}

type definitions struct {
	mu     sync.Mutex
	served map[string]string // resource by group version
}

func (d *definitions) serve(version, resource string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served[version] = resource
}

func (d *definitions) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name, ok := d.served[version]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: name}}}, nil
}

type cluster struct {
	*apitest.Server
	*definitions
	*told
	t       *testing.T
	end     context.CancelFunc
	depth   func() int // of the queue of the controller that leads
	ordered func() int
}

const (
	snapshots = "snapshot.storage.k8s.io/v1"
	groups    = "groupsnapshot.storage.k8s.io/v1beta2"
)

func start(t *testing.T, spec v1alpha1.AttachPolicySpec) *cluster {
	t.Helper()
	c := &cluster{Server: apitest.Start(t), definitions: &definitions{served: map[string]string{}}, told: &told{}, t: t}
	c.serve(snapshots, "volumesnapshotcontents")
	c.serve(groups, "volumegroupsnapshotcontents")
	c.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	c.Put("storageclasses", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver})
	c.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	spec.Driver = driver
	c.Put("attachpolicies", &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: spec})
	c.claim("a", nil)
	c.claim("b", nil)
	t.Cleanup(func() { c.end() })
	return c
}

func (c *cluster) claim(name string, change func(*corev1.PersistentVolumeClaim)) {
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid(name)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast"), VolumeName: "pv-" + name,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	if change != nil {
		change(pvc)
	}
	if pvc.Spec.VolumeName != "" {
		c.volumeOf(pvc, "1Gi")
	}
	c.Put("persistentvolumeclaims", pvc)
}

func (c *cluster) volume(name, capacity string) {
	c.volumeOf(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}, capacity)
}

func (c *cluster) volumeOf(pvc *corev1.PersistentVolumeClaim, capacity string) {
	name := pvc.Name
	c.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: uid("pv-" + name)}, Spec: corev1.PersistentVolumeSpec{
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)},
		StorageClassName: "fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:               &corev1.ObjectReference{Namespace: pvc.Namespace, Name: name, UID: uid(name)},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}}})
}

func (c *cluster) lead() {
	c.t.Helper()
	observer, err := watch.New(watch.Config{Kube: c.Kube, Moorage: c.Moorage})
	if err != nil {
		c.t.Fatal(err)
	}
	watcher := operation.NewWatcher(c.definitions, c.Any)
	operation.AskOften(watcher)
	controller, err := operation.New(operation.Config{
		Watcher: watcher, Cache: observer, Moorage: c.Moorage, Namespace: "moorage-system",
		Turn: func(context.Context) error { return nil }, Timeout: 5 * time.Second, Now: time.Now, Events: c.told, Metrics: counts{c.told},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() { observer.Run(ctx) })
	running.Go(func() { watcher.Run(ctx) })
	if err := observer.WaitForSync(ctx); err != nil {
		c.t.Fatal(err)
	}
	running.Go(func() { controller.Run(ctx) })
	c.end = func() { cancel(); running.Wait() }
	c.depth = controller.Depth
	c.ordered = func() int { return operation.Ordered(controller) }
}

func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	deadline, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-deadline.Done():
			c.t.Fatalf("%s: it does not come; told: %q, written: %q", what, c.lines, c.Writes())
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *cluster) ticket(name string) *v1alpha1.VolumeTicket {
	c.t.Helper()
	var k v1alpha1.VolumeTicket
	c.eventually("ticket "+name, func() bool { return c.Get("volumetickets", "shop", name, &k) })
	return &k
}

func (c *cluster) noTicket(name string) {
	c.t.Helper()
	var k v1alpha1.VolumeTicket
	c.eventually("the end of ticket "+name, func() bool { return !c.Get("volumetickets", "shop", name, &k) })
}

func (c *cluster) content(name string, ready bool, handles ...any) {
	source, resource, ref := map[string]any{"volumeHandle": handles[0]}, "volumesnapshotcontents", "volumeSnapshotRef"
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(snapshots)
	o.SetKind("VolumeSnapshotContent")
	if len(handles) > 1 {
		source, resource, ref = map[string]any{"volumeHandles": handles}, "volumegroupsnapshotcontents", "volumeGroupSnapshotRef"
		o.SetAPIVersion(groups)
		o.SetKind("VolumeGroupSnapshotContent")
	}
	o.Object["spec"] = map[string]any{"driver": driver, "source": source,
		ref: map[string]any{"namespace": "shop", "name": "of-" + name, "uid": "of-" + name}}
	o.Object["status"] = map[string]any{"readyToUse": ready}
	o.SetName(name)
	o.SetUID(uid(name))
	c.Put(resource, o)
}

func uid(name string) types.UID { return types.UID("uid-of-" + name) }

func all(ops ...v1alpha1.VolumeOperation) []v1alpha1.VolumeOperation { return ops }

func TestSnapshot(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationSnapshot)})
	c.lead()
	c.content("s", false, "a")
	k := c.ticket("snapshot-uid-of-s")
	if !k.Spec.Wherever || k.Spec.Detached || k.Spec.Type != v1alpha1.TicketSnapshot || *k.Spec.TTLSeconds != 900 || len(k.Spec.Volumes) != 1 || k.Spec.Volumes[0].Claim.Name != "a" {
		t.Errorf("it asks for %+v", k.Spec)
	}
	if o := k.OwnerReferences; len(o) != 1 || o[0].Kind != "VolumeSnapshotContent" || o[0].UID != uid("s") {
		t.Errorf("its owner is %+v", o)
	}
	c.eventually("the event", func() bool {
		return c.said("made VolumeSnapshot of-s ticket shop/snapshot-uid-of-s is made: driver " + driver + " takes snapshots only while the volume is attached")
	})
	c.end()
	c.lead()
	c.content("s", true, "a")
	c.noTicket("snapshot-uid-of-s")
}

func TestGroup(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{DetachFor: all(v1alpha1.OperationSnapshot)})
	c.lead()
	c.content("g", false, "b", "a")
	k := c.ticket("snapshot-uid-of-g")
	if !k.Spec.Detached || k.Spec.Wherever || len(k.Spec.Volumes) != 2 || k.Spec.Volumes[0].Claim.Name != "a" || k.Spec.Volumes[1].Claim.Name != "b" {
		t.Errorf("it asks for %+v", k.Spec)
	}
	c.Remove("volumegroupsnapshotcontents", "", "g")
	c.noTicket("snapshot-uid-of-g")
}

func TestNotServed(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationSnapshot, v1alpha1.OperationExpansion)})
	c.served = map[string]string{}
	c.content("s", false, "a")
	c.claim("b", bigger)
	c.lead()
	c.ticket("expansion-uid-of-b")
	c.serve(snapshots, "volumesnapshotcontents")
	c.ticket("snapshot-uid-of-s")
}

func bigger(pvc *corev1.PersistentVolumeClaim) {
	pvc.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
}

// The PersistentVolume's size counts, not the claim's status.
func TestExpansion(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{DetachFor: all(v1alpha1.OperationExpansion)})
	c.lead()
	c.claim("a", bigger)
	c.claim("b", bigger)
	if k := c.ticket("expansion-uid-of-a"); !k.Spec.Detached || k.OwnerReferences[0].Kind != "PersistentVolumeClaim" {
		t.Errorf("%+v", k)
	}
	c.ticket("expansion-uid-of-b")
	c.claim("a", func(pvc *corev1.PersistentVolumeClaim) {
		bigger(pvc)
		pvc.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, Capacity: pvc.Spec.Resources.Requests}
		pvc.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending}
	})
	c.volume("b", "2Gi")
	c.noTicket("expansion-uid-of-b")
	c.ticket("expansion-uid-of-a")
	c.volume("a", "2Gi")
	c.noTicket("expansion-uid-of-a")
}

func TestClone(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationClone)})
	c.lead()
	copied := func(pvc *corev1.PersistentVolumeClaim) {
		pvc.Spec.VolumeName, pvc.Status = "", corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		pvc.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
	}
	c.claim("copy", copied)
	if k := c.ticket("clone-uid-of-copy"); k.Spec.Volumes[0].Claim.Name != "a" || k.Spec.Type != v1alpha1.TicketClone {
		t.Errorf("%+v", k.Spec)
	}
	c.claim("copy", nil)
	c.noTicket("clone-uid-of-copy")
}

func TestTaken(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	c.Put("volumetickets", &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "expansion-uid-of-a", UID: "foreign"},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "a"}}}}})
	c.lead()
	c.claim("a", bigger)
	c.eventually("that it is said", func() bool { return c.said("held PersistentVolumeClaim a TicketNameTaken") })
	c.claim("a", nil)
	c.claim("b", bigger)
	c.ticket("expansion-uid-of-b")
	if k := c.ticket("expansion-uid-of-a"); k.UID != "foreign" {
		t.Errorf("it is another one: %+v", k)
	}
}

func TestToldLater(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationSnapshot)})
	c.mute = 1
	c.Put("volumetickets", &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "snapshot-uid-of-s", UID: "foreign"},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "a"}}}}})
	c.lead()
	c.content("s", false, "a")
	c.eventually("that it is not told", func() bool { c.told.mu.Lock(); defer c.told.mu.Unlock(); return c.mute == 0 })
	c.content("other", false, "b")
	c.eventually("that it is told", func() bool { return c.said("held VolumeSnapshot of-s TicketNameTaken") })
}

// A refusal is retried and delays no other claim, also a webhook's denial with any code.
func TestRefused(t *testing.T) {
	for _, refusal := range []metav1.Status{
		{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"},
		{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: `admission webhook "a.b" denied the request: no`},
		{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "a.b" denied the request: no`},
	} {
		t.Run(fmt.Sprint(refusal.Code), func(t *testing.T) {
			refusal.Status = metav1.StatusFailure
			c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
			var refusals atomic.Int32
			c.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb == "create" && r.Resource == "volumetickets" && r.Name == "shop/expansion-uid-of-a" && refusals.Add(1) <= 2 {
					return &apierrors.StatusError{ErrStatus: refusal}
				}
				serve()
				return nil
			})
			c.claim("a", bigger)
			c.claim("b", bigger)
			c.lead()
			c.ticket("expansion-uid-of-b")
			c.ticket("expansion-uid-of-a")
			if !c.said("TicketNotMade the API server refuses ticket shop/expansion-uid-of-a: " + refusal.Message) {
				t.Errorf("it is not said: %q", c.lines)
			}
		})
	}
}

// Without a policy, the ticket's creation is not retried.
func TestNobodyAsksAnyMore(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && r.Resource == "volumetickets" {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"}}
		}
		serve()
		return nil
	})
	c.claim("a", bigger)
	c.lead()
	c.eventually("that it is refused", func() bool { return c.said("TicketNotMade the API server refuses ticket shop/expansion-uid-of-a") })
	c.Remove("attachpolicies", "", "disk")
	c.eventually("that it is ordered no more", func() bool { return c.ordered() == 0 })
}

func TestDeletedAtOnce(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	var mu sync.Mutex
	made := 0
	c.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb != "create" || r.Resource != "volumetickets" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if made++; made == 1 {
			c.Remove("volumetickets", "shop", "expansion-uid-of-a")
		}
		return nil
	})
	c.claim("a", bigger)
	c.lead()
	c.eventually("the second ticket", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return made == 2
	})
	c.ticket("expansion-uid-of-a")
}

// The informer may have a deleted ticket for a moment more: it is read again, not deleted again.
func TestGoneBeforeTheInformerKnows(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "expansion-x"}
	known := ledger.Ticket{ID: id, UID: "1", Version: "1", Type: ledger.TypeExpansion, Phase: ledger.TicketPending, Wherever: true}
	for name, test := range map[string]struct {
		facts []ledger.Event
		there bool
	}{
		"it is there":            {[]ledger.Event{known}, true},
		"it is gone":             {[]ledger.Event{known, ledger.TicketGone{ID: id, UID: "1"}}, false},
		"another has its name":   {[]ledger.Event{ledger.Ticket{ID: id, UID: "2", Version: "2", Type: ledger.TypeExpansion, Phase: ledger.TicketPending, Wherever: true}}, false},
		"it is not known so far": {nil, false},
	} {
		l := ledger.New()
		for _, e := range test.facts {
			l.Apply(time.Now(), e)
		}
		there, again := operation.There(l.Snapshot(), internal.Ticket{ID: id, UID: "1"})
		if there != test.there || again == test.there {
			t.Errorf("%s: there %t, read again %t", name, there, again)
		}
	}
}

func (c *cluster) forged(namespace, owner string) {
	c.Put("volumetickets", &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "snapshot-" + owner, UID: types.UID("forged-" + owner),
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelOperation: "Snapshot"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: snapshots, Kind: "VolumeSnapshotContent", Name: "none", UID: types.UID(owner)}}},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketSnapshot, Wherever: true, TTLSeconds: new(int64(600)), Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "a"}}}},
	})
}

func TestEndsHoldUpNothing(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	gate := make(chan struct{})
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" {
			<-gate
		}
		serve()
		return nil
	})
	for i := range 40 {
		c.forged(fmt.Sprintf("evil%d", i%4), fmt.Sprint("o", i))
	}
	c.lead()
	c.eventually("that all wait to be ended", func() bool { return c.depth() == 36 }) // and 4 are under way
	c.claim("a", bigger)
	c.eventually("that one waits to be made", func() bool { return c.depth() == 37 })
	gate <- struct{}{} // one of the four is answered, and no more
	c.ticket("expansion-uid-of-a")
	close(gate)
	c.eventually("the end of all", func() bool { // a slow delete is sent again: their number says nothing
		for i := range 40 {
			if c.Get("volumetickets", fmt.Sprintf("evil%d", i%4), fmt.Sprint("snapshot-o", i), &v1alpha1.VolumeTicket{}) {
				return false
			}
		}
		return true
	})
}

// A namespace with a slow webhook delays another namespace by one creation at most.
func TestTicketsOfNamespacesTakeTurns(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	gate := make(chan struct{})
	var begun, before atomic.Int32 // the slow ones begun, and their number when the fast one comes
	c.Intercept(func(r apitest.Request, serve func()) error {
		switch {
		case r.Verb != "create":
		case strings.HasPrefix(r.Name, "slow/"):
			begun.Add(1)
			<-gate
		default:
			before.Store(begun.Load())
		}
		serve()
		return nil
	})
	for i := range 12 {
		c.claim(fmt.Sprint("s", i), func(pvc *corev1.PersistentVolumeClaim) {
			bigger(pvc)
			pvc.Namespace = "slow"
		})
	}
	c.lead()
	c.eventually("that all wait", func() bool { return c.depth() == 8 }) // and 4 are under way
	c.claim("a", bigger)
	c.eventually("that another one waits", func() bool { return c.depth() == 9 })
	for range 2 { // the turn of each namespace has come then
		gate <- struct{}{}
	}
	c.ticket("expansion-uid-of-a")
	close(gate)
	if n := before.Load(); n > 6 {
		t.Errorf("%d of the other namespace came before it, want 4 that were under way and 2 at most", n)
	}
}

func TestTicketStartsNoWatch(t *testing.T) {
	c := start(t, v1alpha1.AttachPolicySpec{AttachFor: all(v1alpha1.OperationExpansion)})
	c.forged("evil", "o")
	c.lead()
	var k v1alpha1.VolumeTicket
	c.eventually("its end", func() bool { return !c.Get("volumetickets", "evil", "snapshot-o", &k) })
	for _, r := range c.Requests() {
		if strings.Contains(r.String(), "volumesnapshotcontents") {
			t.Errorf("%s", r)
		}
	}
}
