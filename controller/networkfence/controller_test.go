// SPDX-License-Identifier: Apache-2.0

package networkfence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller/networkfence"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/test/apitest"
)

const driver = "rbd.example.com"

type told struct {
	mu    sync.Mutex
	lines []string
}

func (t *told) NetworkFence(node ledger.NodeName, driver, text string) { t.add("done", node, text) }

func (t *told) NetworkFenceHeld(node ledger.NodeName, driver, why string) { t.add("held", node, why) }

func (t *told) add(what string, node ledger.NodeName, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%s %s: %s", what, node, text))
}

func (t *told) said(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(line string) bool { return strings.Contains(line, text) })
}

type cluster struct {
	*apitest.Server
	t        *testing.T
	observer *watch.Observer
	told     *told
	now      func() time.Time
	end      context.CancelFunc
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Server: apitest.Start(t), t: t, told: &told{}, now: fast()}
	c.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	c.Put("attachpolicies", &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rbd"}, Spec: v1alpha1.AttachPolicySpec{Driver: driver,
		ForceDetach: &v1alpha1.ForceDetachPolicy{NetworkFence: &v1alpha1.NetworkFencePolicy{ClassName: "rbd", AfterUnreachable: &metav1.Duration{}}}}})
	c.Put("networkfenceclasses", object("NetworkFenceClass", "rbd", map[string]any{"spec": map[string]any{"provisioner": driver}}))
	c.Put("csiaddonsnodes", object("CSIAddonsNode", "a", map[string]any{
		"spec": map[string]any{"driver": map[string]any{"name": driver, "nodeID": "a", "endpoint": "pod://a.x:9070"}},
		"status": map[string]any{"networkFenceClientStatus": []any{map[string]any{"networkFenceClassName": "rbd",
			"ClientDetails": []any{map[string]any{"id": "1", "cidrs": []any{"10.0.0.1/32"}}}}}},
	}))
	c.node("a", "10.0.0.1", corev1.ConditionUnknown, "boot-1")
	c.node("b", "10.0.0.2", corev1.ConditionTrue, "boot-1")
	c.node("c", "10.0.0.3", corev1.ConditionTrue, "boot-1")
	c.Put("volumeattachments", &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: "a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}}, Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	c.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "disk"}}}})
	c.lead()
	t.Cleanup(func() { c.end() })
	return c
}

func object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields}
	o.SetKind(kind)
	o.SetAPIVersion("csiaddons.openshift.io/v1alpha1")
	o.SetName(name)
	return o
}

func (c *cluster) node(name, address string, ready corev1.ConditionStatus, boot string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	var had corev1.Node
	if c.Get("nodes", "", name, &had) {
		n.Status.Conditions = slices.DeleteFunc(had.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	}
	n.Status.NodeInfo = corev1.NodeSystemInfo{SystemUUID: "machine-" + name, BootID: boot}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Unix(9000, 0), LastTransitionTime: metav1.Unix(9000, 0)})
	c.Put("nodes", n)
}

func (c *cluster) lead() {
	c.t.Helper()
	observer, err := watch.New(watch.Config{Kube: c.Kube, Moorage: c.Moorage, Now: c.now})
	if err != nil {
		c.t.Fatal(err)
	}
	watcher, err := networkfence.NewWatcher(c.Any, observer.Snapshot)
	if err != nil {
		c.t.Fatal(err)
	}
	c.observer = observer
	controller, err := networkfence.New(networkfence.Config{
		Watcher: watcher, Cache: observer, Kube: c.Kube, Moorage: c.Moorage, Dynamic: c.Any,
		Turn: func(context.Context) error { return nil }, Timeout: 5 * time.Second, Now: c.now, Events: c.told,
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
}

// A node is silent after 50 s; the real 5 s between reads of its Lease must not become 20 s of the clock.
func fast() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began) * 5 / 2) }
}

func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	deadline, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-deadline.Done():
			c.t.Fatalf("%s: it does not come; told: %q, written: %q", what, c.told.lines, c.Writes())
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *cluster) fence() *unstructured.Unstructured {
	for _, w := range c.Writes() {
		if name, found := strings.CutPrefix(w, "create networkfences "); found {
			var o unstructured.Unstructured
			if c.Get("networkfences", "", name, &o.Object) {
				return &o
			}
		}
	}
	return nil
}

func (c *cluster) answer(result, message string) {
	c.t.Helper()
	c.eventually("a NetworkFence", func() bool { return c.fence() != nil })
	o := c.fence()
	o.Object["status"] = map[string]any{"result": result, "message": message}
	c.Put("networkfences", o)
}

func (c *cluster) cutOff() bool {
	var n corev1.Node
	c.Get("nodes", "", "a", &n)
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.NetworkFencePrefix+driver && c.Status == corev1.ConditionTrue
	})
}

func TestFencedAndLetIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.answer("Failed", "the sidecar is away")
	c.eventually("what keeps it", func() bool { return c.told.said("the sidecar is away") })
	if c.cutOff() {
		t.Fatal("it says that it is cut off, and the storage has refused")
	}
	c.end()
	c.lead()
	c.answer("Succeeded", "fencing operation successful")
	c.eventually("the condition", c.cutOff)
	c.eventually("the ledger", func() bool { return c.observer.Snapshot().Node("a").IsCutOff(driver) })
	c.end()
	c.node("a", "10.0.0.1", corev1.ConditionTrue, "boot-2")
	c.lead()
	c.eventually("the unfencing", func() bool {
		state, _, _ := unstructured.NestedString(c.fence().Object, "spec", "fenceState")
		return state == "Unfenced"
	})
	if c.cutOff() {
		t.Fatal("the storage is asked to let it in, and it still says that it is cut off")
	}
	c.answer("Succeeded", "unfencing operation successful")
	c.eventually("the end", func() bool { return c.fence() == nil })
}

func TestRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	var refused sync.Once
	c.Intercept(func(r apitest.Request, serve func()) error {
		first := false
		if r.Verb == "patch" && r.Resource == "nodes/status" {
			refused.Do(func() { first = true })
		}
		if first {
			return context.DeadlineExceeded
		}
		serve()
		return nil
	})
	c.answer("Succeeded", "fencing operation successful")
	c.eventually("the condition", c.cutOff)
}

// csi-addons deletes the CSIAddonsNode of an unreachable node: its content is remembered until the node is
// Ready.
func TestClientsAreRemembered(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.eventually("a NetworkFence", func() bool { return c.fence() != nil })
	c.Remove("csiaddonsnodes", "", "a")
	c.Remove("networkfences", "", c.fence().GetName())
	c.eventually("another NetworkFence", func() bool { return c.fence() != nil })
	if cidrs, _, _ := unstructured.NestedStringSlice(c.fence().Object, "spec", "cidrs"); !slices.Equal(cidrs, []string{"10.0.0.1/32"}) {
		t.Errorf("it fences %q", cidrs)
	}
}
