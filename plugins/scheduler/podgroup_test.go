// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// gang creates a PodGroup of Kubernetes' own kind and its pods, all or none of
// which are to be placed.
func (c *cluster) gang(name string, size int) []*corev1.Pod {
	c.t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)}}},
	}
	if _, err := c.kube.SchedulingV1beta1().PodGroups("shop").Create(c.t.Context(), group, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	var pods []*corev1.Pod
	for i := range size {
		member := fmt.Sprintf("%s-%d", name, i)
		c.add(disk(member)...)
		pod := c.newPod(member, v1alpha1.SchedulerName, member)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
		pods = append(pods, c.create(pod))
	}
	return pods
}

// tickets is how many tickets were asked for.
func (c *cluster) tickets() int {
	n := 0
	for _, action := range c.moorage.Actions() {
		if action.Matches("create", v1alpha1.ResourceVolumeTickets) {
			n++
		}
	}
	return n
}

// kube-scheduler's own pod-group cycles reserve for each pod to simulate. A gang
// that doesn't fit has no ticket written; one that does has one for each pod.
func TestPodGroupCyclesWriteNothing(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	tooMany := c.gang("four", 4)
	c.told(tooMany[3], "no free slot of driver disk.example.com (1 of 1 used)")
	if n := c.tickets(); n != 0 {
		t.Errorf("%d tickets were written for a gang that doesn't fit", n)
	}
	for _, p := range tooMany {
		c.delete(p)
	}
	used := map[string]bool{}
	for _, p := range c.gang("three", 3) {
		used[c.bound(p)] = true
	}
	if n := c.tickets(); n != 3 || len(used) != 3 {
		t.Errorf("%d tickets were written, for nodes %v, want one for each of three pods", n, used)
	}
}
