// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/storage/volume"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func late(claim string) *corev1.PersistentVolumeClaim {
	class := "late"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim, UID: types.UID("claim-" + claim), ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

func (c *cluster) zoned(zones ...string) {
	c.t.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	c.add(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: driver, VolumeBindingMode: &wait,
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}},
	})
	for i, zone := range zones {
		c.label([]string{"n1", "n2", "n3"}[i], "zone", zone)
	}
}

// The pod is reserved and bound only after the test makes the volume.
func (c *cluster) unprovisioned(name string) *corev1.Pod {
	c.t.Helper()
	c.add(late(name))
	return c.create(c.newPod(name, v1alpha1.SchedulerName, name))
}

func (c *cluster) selected(claim string) string {
	c.t.Helper()
	at := ""
	c.eventually("a node for claim "+claim, func() bool {
		found, err := c.kube.CoreV1().PersistentVolumeClaims("shop").Get(c.t.Context(), claim, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		at = found.Annotations[volume.AnnSelectedNode]
		return at != ""
	})
	return at
}

func (c *cluster) provision(claim string) {
	c.t.Helper()
	made := disk(claim)
	c.add(made[0])
	claims := c.kube.CoreV1().PersistentVolumeClaims("shop")
	found, err := claims.Get(c.t.Context(), claim, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	found.ResourceVersion = c.nextVersion()
	found.Annotations[volume.AnnBindCompleted] = "yes"
	found.Spec.VolumeName, found.Status.Phase = "pv-"+claim, corev1.ClaimBound
	if _, err := claims.Update(c.t.Context(), found, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) boundByOthers(name, at string) *corev1.Pod {
	c.t.Helper()
	pod := c.pod(name, "other", true)
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: at}}
	if err := c.kube.CoreV1().Pods(pod.Namespace).Bind(c.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *cluster) only(name, at string) *corev1.Pod {
	c.t.Helper()
	c.add(disk(name)...)
	pod := c.newPod(name, v1alpha1.SchedulerName, name)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{at}}}}},
	}}}
	return c.create(pod)
}

// While the volume is made, another scheduler takes the slot: the pod goes elsewhere.
func TestSlotIsTakenBeforeTheBinding(t *testing.T) {
	c := newCluster(t)
	c.zoned("a", "a", "a")
	pod := c.unprovisioned("p")
	at := c.selected("p")
	looks := c.only("looks", at)
	c.told(looks, "(1 of 1 used)")
	c.boundByOthers("faster", at)
	c.eventually("the scheduler to know both", func() bool {
		c.tryAgain(looks, 1)
		return strings.Contains(c.scheduledMessage(looks), "(2 of 1 used)")
	})
	c.provision("p")
	if got := c.bound(pod); got == at {
		t.Errorf("the pod is bound to %s, whose slot another one has", got)
	}
}

func TestPodDeletedBeforeItIsBound(t *testing.T) {
	c := newCluster(t)
	c.zoned("a", "a", "a")
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pods = append(pods, c.unprovisioned(name))
	}
	used := map[string]bool{}
	for _, pod := range pods {
		used[c.selected(pod.Name)] = true
	}
	if len(used) != 3 {
		t.Errorf("nodes of one slot are chosen twice: %v", used)
	}
	last := c.pod("d", v1alpha1.SchedulerName, true)
	c.told(last, "3 node(s) exceed max volume count: no free slot")
	at := c.selected("c")
	c.delete(pods[2])
	if got := c.bound(last); got != at {
		t.Errorf("bound to %s, and the slot is at %s", got, at)
	}
}

func TestTwoPodsOfOneNewClaim(t *testing.T) {
	c := newCluster(t)
	c.zoned("b", "a", "a")
	c.add(late("new"))
	first, second := c.share("first", "new", 0), c.share("second", "new", 0)
	at := c.selected("new")
	c.eventually("both pods to wait for the volume", func() bool { return c.claimWrites("new") == 2 })
	looks := c.only("looks", at)
	c.told(looks, "(1 of 1 used)")
	c.provision("new")
	if one, other := c.bound(first), c.bound(second); one != at || other != at || at == "n1" {
		t.Errorf("they are bound to %s and %s, and the volume was made at %s", one, other, at)
	}
}

func (c *cluster) claimWrites(claim string) int {
	n := 0
	for _, action := range c.kube.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok && action.Matches("update", "persistentvolumeclaims") {
			if written, ok := update.GetObject().(*corev1.PersistentVolumeClaim); ok && written.Name == claim {
				n++
			}
		}
	}
	return n
}

// A new process counts bound pods before it binds.
func TestNextLeaderTakesOver(t *testing.T) {
	c := newCluster(t)
	pods := c.filled()
	c.kill()
	pod := c.pod("p", v1alpha1.SchedulerName, true)
	c.lead(6)
	c.told(pod, "3 node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 1 used)")
	at := c.get(pods[1]).Spec.NodeName
	c.delete(pods[1])
	if got := c.bound(pod); got != at {
		t.Errorf("bound to %s, and the slot is at %s", got, at)
	}
}
