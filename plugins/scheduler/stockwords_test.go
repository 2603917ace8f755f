// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Moorage's refusal contains the stock words.
func TestWordsOfStock(t *testing.T) {
	changed := func(change func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)) []apiruntime.Object {
		objects := disk("p")
		change(objects[0].(*corev1.PersistentVolume), objects[1].(*corev1.PersistentVolumeClaim))
		return objects
	}
	fill := func(c *cluster) {
		for _, other := range []string{"a", "b", "c"} {
			c.bound(c.pod(other, v1alpha1.SchedulerName, true))
		}
	}
	ephemeral := func(p *corev1.Pod) {
		p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	}
	const absent = "absent.example.com"
	yes, date, class, immediate := true, metav1.Now(), "now", storagev1.VolumeBindingImmediate
	for name, test := range map[string]struct {
		world []apiruntime.Object
		fill  func(*cluster)
		pod   func(*corev1.Pod)
	}{
		"every node is full": {world: disk("p"), fill: fill},
		"every node is full of volumes that are not attached": {world: append(disk("p"), attachesNothing()), fill: fill},
		"the driver has to be there, and is nowhere": {world: append(
			changed(func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) { pv.Spec.CSI.Driver = absent }),
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: absent}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &yes}})},
		"ReadWriteOncePod in use": {
			world: changed(func(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
				pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
				claim.Spec.AccessModes = pv.Spec.AccessModes
			}),
			fill: func(c *cluster) { c.bound(c.share("first", "p", 0)) },
		},
		"no claim":                        {},
		"no claim of an ephemeral volume": {pod: ephemeral},
		"the claim of an ephemeral volume is another pod's": {world: append(disk("stock-data"), disk("p-data")...), pod: ephemeral},
		"the claim is being deleted": {world: changed(func(_ *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			claim.DeletionTimestamp, claim.Finalizers = &date, []string{"kubernetes.io/pvc-protection"}
		})},
		"the claim is lost": {world: changed(func(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			pv.Name, claim.Status.Phase = "another", corev1.ClaimLost
		})},
		"the PersistentVolume is not there": {world: changed(func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			pv.Name, pv.Spec.ClaimRef = "another", nil
		})},
		"the claim is not bound, and binds at once": {world: []apiruntime.Object{
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver, VolumeBindingMode: &immediate},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: types.UID("claim-p")},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}},
		}},
		"the PersistentVolume excludes every node": {world: changed(func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"far"}}}}}}}
		})},
		"the PersistentVolume is of another zone": {world: append(
			changed(func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
				pv.Labels = map[string]string{corev1.LabelTopologyZone: "far"}
			}), inZone("n1"), inZone("n2"), inZone("n3"))},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.world...)
			if test.fill != nil {
				test.fill(c)
			}
			create := func(name, scheduler string) *corev1.Pod {
				pod := c.newPod(name, scheduler, "p")
				if test.pod != nil {
					test.pod(pod)
				}
				return c.create(pod)
			}
			stock := create("stock", corev1.DefaultSchedulerName)
			c.told(stock, "nodes are available")
			said := strings.ReplaceAll(c.scheduledMessage(stock), "stock", "p")
			pod := create("p", v1alpha1.SchedulerName)
			for _, words := range refusals(said) {
				c.told(pod, words)
			}
			for _, condition := range c.get(pod).Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Reason != corev1.PodReasonUnschedulable {
					t.Errorf("stock says %q; the reason is %s", said, condition.Reason)
				}
			}
			t.Logf("stock:   %s\nMoorage: %s", said, c.scheduledMessage(pod))
		})
	}
}

func inZone(name string) *corev1.Node {
	n := node(name)
	n.Labels = map[string]string{corev1.LabelTopologyZone: "here"}
	return n
}

var counted = regexp.MustCompile(`(?:^|, )\d+ `)

func refusals(message string) []string {
	_, message, _ = strings.Cut(message, "nodes are available: ")
	message, _, _ = strings.Cut(message, " preemption:")
	message, _, _ = strings.Cut(message, ". not found") // of preemption, where no node was tried
	var list []string
	for _, words := range counted.Split(strings.TrimSuffix(message, "."), -1) {
		if words != "" {
			list = append(list, words)
		}
	}
	return list
}

func attachesNothing() *storagev1.CSIDriver {
	required := false
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver, ResourceVersion: "1"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &required}}
}

// A driver without attachments may state a limit per node.
func TestLimitOfADriverThatAttachesNothing(t *testing.T) {
	c := newCluster(t, attachesNothing())
	at := map[string]*corev1.Pod{}
	for _, name := range []string{"a", "b", "c"} {
		pod := c.pod(name, v1alpha1.SchedulerName, true)
		at[c.bound(pod)] = pod
	}
	if len(at) != 3 {
		t.Fatalf("three nodes of one slot each have pods %v", at)
	}
	last := c.pod("d", v1alpha1.SchedulerName, true)
	c.told(last, "3 node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 1 used)")
	c.delete(at["n2"])
	if got := c.bound(last); got != "n2" {
		t.Errorf("bound to %s, and the slot is at n2", got)
	}
}

func TestLimitOfADriverThatAttachesNothingAtOnce(t *testing.T) {
	c := newCluster(t, attachesNothing())
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		c.add(disk(name)...)
		pods = append(pods, c.newPod(name, v1alpha1.SchedulerName, name))
	}
	for _, pod := range pods {
		c.create(pod)
	}
	bound := func() map[string]int {
		at := map[string]int{}
		for _, pod := range pods {
			if n := c.get(pod).Spec.NodeName; n != "" {
				at[n]++
			}
		}
		return at
	}
	c.eventually("three pods to be bound, and three to be told", func() bool {
		told := 0
		for _, pod := range pods {
			if strings.Contains(c.scheduledMessage(pod), "exceed max volume count") {
				told++
			}
		}
		return len(bound()) == 3 && told == 3
	})
	for n, pods := range bound() {
		if pods != 1 {
			t.Errorf("%s has %d volumes, its CSINode says 1", n, pods)
		}
	}
}
