// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// stockChecks are asked of a cluster without Moorage: what it would change there.
func stockChecks() []check {
	return []check{
		{name: "slots", find: checkStockSlots, world: true},
		{name: "attachers", find: checkAttachers, world: true},
		{name: "attachments", find: checkAttachments, world: true},
		{name: "rollouts", find: checkRollouts, world: true},
		{name: "forced", find: checkForcedDetaches, world: true},
		{name: "kubelets", find: checkStockKubelets, world: true},
	}
}

// readStock reads what only a cluster without Moorage is asked for.
func readStock(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	if list, err := c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
		e.Deployments.Err = err
	} else {
		e.Deployments.Items = list.Items
	}
	selector := fields.OneTermEqualSelector("reason", attachRefused).String()
	if list, err := c.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: selector}); err != nil {
		e.Events.Err = err
	} else {
		e.Events.Items = list.Items
	}
}

// attachRefused is the reason of kube-controller-manager's events on volumes that it can't
// attach, among them those that are attached elsewhere.
const attachRefused = "FailedAttachVolume"

// checkStockSlots counts the nodes whose last slots are taken: where kube-scheduler's count and
// the driver's differ, as on nodes that have just joined, a pod hangs there.
func checkStockSlots(e *Evidence) []Finding {
	var near []string
	var taken, limits int32
	limited := 0
	for _, s := range e.World.ListSlots() {
		if s.Limit == nil {
			continue
		}
		limited++
		used := s.Taken()
		taken, limits = taken+used, limits+*s.Limit
		if *s.Limit > 0 && used*10 >= *s.Limit*9 {
			near = append(near, fmt.Sprintf("%s %s %d/%d", s.Node, s.Driver, used, *s.Limit))
		}
	}
	switch {
	case limited == 0:
		return []Finding{found(Info, "no CSINode states a limit", "", "no driver states how many volumes a node takes")}
	case len(near) == 0:
		return []Finding{ok("%d of %d slots are taken, and no node is near its limit", taken, limits)}
	}
	return []Finding{found(Warning, some(near), "With Moorage a pod is placed only where a slot is free or becomes free, which it reserves until the pod runs.",
		"%d of %d slots are taken; nodes near their limit, where a pod that is placed too early hangs: %d of %d", taken, limits, len(near), limited)}
}

// checkRollouts finds Deployments whose new pod is made beside the old one, with a claim that
// may be at one node only.
func checkRollouts(e *Evidence) []Finding {
	if e.Deployments.Err != nil {
		return unchecked("deployments.apps", e.Deployments.Err)
	}
	var hang []string
	for i := range e.Deployments.Items {
		d := &e.Deployments.Items[i]
		if surges(d) && slices.ContainsFunc(e.World.ClaimsOf(d.Namespace, d.Spec.Template.Spec.Volumes), ofOneNode) {
			hang = append(hang, d.Namespace+"/"+d.Name)
		}
	}
	if len(hang) == 0 {
		return []Finding{ok("none of %d Deployments makes a new pod beside an old one with a ReadWriteOnce volume", len(e.Deployments.Items))}
	}
	return []Finding{found(Warning, some(hang), "With Moorage the new pod goes to the node where the volume is. Without it: strategy Recreate, or maxSurge: 0.",
		"Deployments with a ReadWriteOnce volume that make the new pod before the old one ends: %d of %d. On another node it waits forever", len(hang), len(e.Deployments.Items))}
}

// surges says whether a rollout makes a new pod before an old one ends.
func surges(d *appsv1.Deployment) bool {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	surge := intstr.FromString("25%") // the API's default
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxSurge != nil {
		surge = *r.MaxSurge
	}
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	return err == nil && n > 0
}

func ofOneNode(c *corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}

// checkForcedDetaches says what the API shows of detaches by force: they are a metric and a
// line of a log, and neither an event nor a field of any object.
func checkForcedDetaches(e *Evidence) []Finding {
	away, refused := map[string]bool{}, 0
	nodes := map[string]facts.NodeState{}
	for _, n := range e.World.ListNodes() {
		nodes[n.Node] = n
	}
	for _, va := range e.World.Attachments {
		if va.Status.DetachError != nil {
			refused++
		}
		n, known := nodes[va.Spec.NodeName]
		if known && !n.Ready && !n.Since.IsZero() && e.now().Sub(n.Since) > arbiter.DefaultAfterPodGone {
			away[va.Spec.NodeName] = true
		}
	}
	evidence := fmt.Sprintf("VolumeAttachments whose detach was refused: %d; ", refused)
	if e.Events.Err != nil {
		evidence += "events: " + e.Events.Err.Error()
	} else {
		evidence += fmt.Sprintf("events %s, of the last hour by default: %d", attachRefused, len(e.Events.Items))
	}
	const fix = "kube-controller-manager's metric attachdetach_controller_forced_detaches counts them: take its increase over a day. " +
		"Moorage detaches by force only by proof or by a policy of yours, and says so on the volume."
	if len(away) > 0 {
		return []Finding{found(Warning, some(sortedKeys(away))+"; "+evidence, fix,
			"nodes with volumes that have not been ready for more than %d minutes: %d. kube-controller-manager detaches by force what pods there leave behind",
			arbiter.DefaultAfterPodGone/time.Minute, len(away))}
	}
	return []Finding{found(Unknown, evidence, fix, "how many volumes were detached by force in the last day is not in the API")}
}

// checkStockKubelets is checkKubelets, and where no kubelet was asked what the cluster shows of
// the path on which the kubelets' interval lies.
func checkStockKubelets(e *Evidence) []Finding {
	if len(e.Kubelets.Items) > 0 {
		return checkKubelets(e)
	}
	why := "no kubelet was asked"
	if e.Kubelets.Err != nil {
		why = e.Kubelets.Err.Error()
	}
	evidence := why + "; " + e.heartbeats()
	if starts := e.starts(); len(starts) > 0 {
		evidence += fmt.Sprintf("; median from bind to the first container's start over %s with volumes: %s", facts.Count(len(starts), "pod"), starts[len(starts)/2].Round(time.Second))
	}
	return []Finding{found(Unknown, evidence, lowerTick,
		"how often kubelets look at their status (nodeStatusUpdateFrequency) is not in the API; by default it is every 10 s, and half of that is added to every mount and detach")}
}

// heartbeats says when the nodes reported last: their Leases are renewed apart from that, and
// tell nothing of it.
func (e *Evidence) heartbeats() string {
	var ages []time.Duration
	for _, n := range e.World.Nodes {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && !c.LastHeartbeatTime.IsZero() {
				ages = append(ages, max(0, e.now().Sub(c.LastHeartbeatTime.Time)))
			}
		}
	}
	if len(ages) == 0 {
		return "no node says when it reported last"
	}
	slices.Sort(ages)
	return fmt.Sprintf("last status reports of %d nodes: up to %s ago (a kubelet writes when something has changed, or after nodeStatusReportFrequency)", len(ages), ages[len(ages)-1].Round(time.Second))
}

// starts are the times from bind to the first container's start of pods with volumes that have
// to be attached, sorted.
func (e *Evidence) starts() []time.Duration {
	var list []time.Duration
	for _, p := range e.World.Pods {
		if len(p.Status.ContainerStatuses) == 0 || !e.World.NeedsAttachment(p) {
			continue
		}
		running, restarts := p.Status.ContainerStatuses[0].State.Running, p.Status.ContainerStatuses[0].RestartCount
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && running != nil && restarts == 0 {
				list = append(list, max(0, running.StartedAt.Sub(c.LastTransitionTime.Time)))
			}
		}
	}
	slices.Sort(list)
	return list
}
