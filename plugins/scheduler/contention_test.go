// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// secondScheduler runs a scheduler process of its own, for pods that name it.
func (c *cluster) secondScheduler(name string) {
	c.t.Helper()
	before := c.moorage.watches.Load()
	profile := shippedProfile(c.t)
	profile.SchedulerName = name
	made, factory, err := newScheduler(c.t, c.kube, c.moorage, profile)
	if err != nil {
		c.t.Fatal(err)
	}
	factory.Start(c.t.Context().Done())
	factory.WaitForCacheSync(c.t.Context().Done())
	if err := made.WaitForHandlersSync(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the second scheduler's watches to be open", func() bool { return c.moorage.watches.Load() == before+3 })
	go made.Run(c.t.Context())
}

// oneEach is a controller that knows one slot at each node. It is asked one
// ticket at a time.
func (c *cluster) oneEach() func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) {
	holders := map[string]string{} // the names of tickets by their nodes
	return func(asked *v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) {
		if holder := holders[asked.Spec.NodeName]; holder != asked.Name && c.takesSlot(holder, asked.Spec.NodeName) {
			return metav1.ConditionFalse, "no free slot"
		}
		holders[asked.Spec.NodeName] = asked.Name
		return metav1.ConditionTrue, ""
	}
}

// takesSlot says whether a ticket of this name, which is its pod's UID, or the pod
// itself is still at a node.
func (c *cluster) takesSlot(name, node string) bool {
	ticket, err := c.moorage.tracker.Get(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets), "shop", name)
	if err == nil && ticket.(*v1alpha1.VolumeTicket).Spec.NodeName == node {
		return true
	}
	pod, err := c.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "shop", strings.TrimPrefix(name, "uid-"))
	return err == nil && pod.(*corev1.Pod).Spec.NodeName == node
}

// Two schedulers place pods at once on three nodes of one slot each: the
// controller grants what fits, and who is refused goes elsewhere, or waits.
func TestTwoSchedulersShareTheSlots(t *testing.T) {
	c := newCluster(t)
	c.moorage.decide(c.oneEach())
	c.secondScheduler("second")
	var pods []*corev1.Pod
	for i := range 3 {
		for _, scheduler := range []string{v1alpha1.SchedulerName, "second"} {
			pods = append(pods, c.pod(fmt.Sprintf("%s-%d", scheduler, i), scheduler, true))
		}
	}
	for len(pods) > 0 {
		at := map[string]*corev1.Pod{}
		var waiting []*corev1.Pod
		c.eventually("every node to have a pod, or none to be left", func() bool {
			waiting = nil
			for _, p := range pods {
				node := c.get(p).Spec.NodeName
				if other := at[node]; node != "" && other != nil && other.UID != p.UID {
					t.Fatalf("%s and %s are both at %s", p.Name, other.Name, node)
				}
				if node == "" {
					waiting = append(waiting, p)
				} else {
					at[node] = p
				}
			}
			return len(at) == min(3, len(pods))
		})
		for _, p := range waiting {
			// Of the controller's refusal at one node, or of all three: kube-scheduler writes
			// what became of an attempt after it has let the next one begin, so that the
			// older of two may be written last (handleSchedulingFailure).
			c.told(p, "nodes are available")
		}
		for _, p := range at {
			c.delete(p)
		}
		pods = waiting
	}
}

// late is an unbound claim of a class whose volumes are made where the first pod
// goes: in zone a.
func late(claim string) []apiruntime.Object {
	wait, class := storagev1.VolumeBindingWaitForFirstConsumer, "late"
	return []apiruntime.Object{
		&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver, VolumeBindingMode: &wait,
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}},
		},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim, UID: types.UID("claim-" + claim), ResourceVersion: "1"},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		},
	}
}

// asksAt waits for a pod's ticket, and says for which node it is.
func (c *cluster) asksAt(pod *corev1.Pod) string {
	c.t.Helper()
	at := ""
	c.eventually("the ticket of "+pod.Name, func() bool {
		ticket, exists := c.moorage.ticket(pod)
		if exists {
			at = ticket.Spec.NodeName
		}
		return exists
	})
	return at
}

// Two new pods with one claim that has no volume yet ask for the same node, which
// the claim's class allows: the volume will be made there, and takes one slot.
func TestTwoPodsOfOneNewClaim(t *testing.T) {
	c := newCluster(t)
	c.label("n1", "zone", "b")
	c.label("n2", "zone", "a")
	c.label("n3", "zone", "a")
	c.add(late("new")...)
	first, second := c.share("first", "new", 0), c.share("second", "new", 0)
	at, also := c.asksAt(first), c.asksAt(second)
	if at != also || at == "n1" {
		t.Errorf("they ask for %s and %s", at, also)
	}
}

// A scheduler ends while a pod waits in Permit, and does not get to withdraw its
// ticket. The next one does so first, and places the pod by what is so now.
func TestNextLeaderTakesOver(t *testing.T) {
	c := newCluster(t)
	c.moorage.decide(func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) { return metav1.ConditionUnknown, "" })
	pod := c.pod("p", v1alpha1.SchedulerName, true)
	at := c.asksAt(pod)
	left, _ := c.moorage.ticket(pod)
	c.moorage.deaf.Store(true)
	c.kill()
	c.full(at)
	c.moorage.decide(func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) { return metav1.ConditionTrue, "" })
	if now, exists := c.moorage.ticket(pod); !exists || now.UID != left.UID {
		t.Fatalf("of the first scheduler %+v is left", now)
	}
	c.moorage.deaf.Store(false)
	c.lead(6)
	if got := c.bound(pod); got == at {
		t.Errorf("the pod is bound to %s, which is full", got)
	}
}
