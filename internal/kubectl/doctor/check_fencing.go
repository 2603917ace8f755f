// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
)

// checkFencing looks whether conditions that free volumes are guarded, and says which
// evidence could be switched on.
func checkFencing(e *Evidence) []Finding {
	return slices.Concat(unguardedFences(e), heldTimes(e), sharedMachines(e), couldFence(e))
}

// sharedMachines finds nodes that report the same systemUUID, as cloned machines do.
func sharedMachines(e *Evidence) []Finding {
	nodes := map[string][]string{}
	for _, n := range e.World.Nodes {
		if id := n.Status.NodeInfo.SystemUUID; id != "" {
			nodes[id] = append(nodes[id], n.Name)
		}
	}
	var list []Finding
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		if names := nodes[id]; len(names) > 1 {
			list = append(list, found(Warning, "systemUUID "+id,
				"Give each virtual machine a UUID of its own: until then a volume that a machine had mounted is not free when the machine boots, and one that a NetworkFence has cut off is let in by moorage-node's word only.",
				"nodes that report the same systemUUID, so that another boot of one is no proof: %s", some(names)))
		}
	}
	return list
}

// heldTimes finds zones in which so many nodes are unreachable that no time takes volumes from
// them.
func heldTimes(e *Evidence) []Finding {
	var held []string
	for p := range e.World.Snapshot.Policies() {
		for _, z := range arbiter.HeldZones(e.World.Snapshot, p.Driver, p.Class) {
			text := fmt.Sprintf("%s (%d of %d)", z.Brake, z.Unreachable, z.Nodes)
			if !slices.Contains(held, text) {
				held = append(held, text)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	slices.Sort(held)
	return []Finding{found(Warning, some(held),
		"See whether the machines or the network between them and the API server have failed. If it is the machines, give their nodes the taint "+corev1.TaintNodeOutOfService+": docs/operate/dead-nodes.md.",
		"so many nodes are unreachable at once that afterUnreachable, of forceDetach and of its networkFence, takes nothing from them (maxUnreachable): evidence still does")}
}

// unguardedFences finds AttachPolicies that take a condition for proof which anybody can set
// who may write the status of a Node, such as its kubelet.
func unguardedFences(e *Evidence) []Finding {
	var names []string
	for _, p := range e.World.Policies {
		if f := p.Spec.ForceDetach; f != nil && (f.FencedCondition != nil && *f.FencedCondition != "" || f.NetworkFence != nil) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 || e.Policies.Err != nil || e.Bindings.Err != nil || e.policy(fencedGuard) != nil && e.denies(fencedGuard) {
		return nil
	}
	slices.Sort(names)
	return []Finding{found(Error, some(names), policyFix,
		"AttachPolicies with a fencedCondition or a networkFence, while policy %s is missing or not bound: a kubelet can set the condition on its own node: %d", fencedGuard, len(names))}
}

// policyOfChart are the files among the chart's examples that have a policy for a driver, with
// what is known of its detach.
var policyOfChart = map[string]string{"ebs.csi.aws.com": "ebs-policy.yaml", "pd.csi.storage.gke.io": "gce-pd-policy.yaml", "rbd.csi.ceph.com": "ceph-rbd-policy.yaml"}

// saysWhatFences says whether a policy that counts for all of a driver's volumes says how one
// knows that a dead node writes no more.
func saysWhatFences(p *v1alpha1.AttachPolicy, driver string) bool {
	if p.Spec.Driver != driver || p.Spec.StorageClassName != "" {
		return false
	}
	force := p.Spec.ForceDetach
	if force == nil {
		force = &v1alpha1.ForceDetachPolicy{}
	}
	fenced := force.FencedCondition != nil && *force.FencedCondition != ""
	switch c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); {
	case c == nil || c.Status != metav1.ConditionFalse:
		return p.Spec.UnpublishFences != nil || fenced || force.NetworkFence != nil
	case c.Reason == v1alpha1.ReasonNetworkFencesOff:
		return p.Spec.UnpublishFences != nil || fenced
	}
	return counts(p) && (p.Spec.UnpublishFences != nil || fenced || force.NetworkFence != nil)
}

// couldFence says which evidence that a dead node writes no more could be switched on.
func couldFence(e *Evidence) []Finding {
	var silent, files []string
	known := 0
	for _, d := range e.World.Drivers {
		if d.Spec.AttachRequired != nil && !*d.Spec.AttachRequired {
			continue
		}
		known++
		if !slices.ContainsFunc(e.World.Policies, func(p *v1alpha1.AttachPolicy) bool { return saysWhatFences(p, d.Name) }) {
			silent = append(silent, d.Name)
			if file := policyOfChart[d.Name]; file != "" {
				files = append(files, "charts/moorage/examples/"+file)
			}
		}
	}
	switch {
	case known == 0:
		return []Finding{ok("no CSIDriver needs attachments")}
	case len(silent) == 0:
		return []Finding{ok("drivers of which an AttachPolicy says what their detach does to a dead node's access: %d", known)}
	}
	slices.Sort(silent)
	chart := ""
	if len(files) > 0 {
		slices.Sort(files)
		chart = "The chart has the answer for some: " + some(files) + ". "
	}
	return []Finding{found(Info, some(silent),
		chart+"Ask the vendor whether ControllerUnpublishVolume takes a running machine's access away, and set unpublishFences to true or false. If the driver has csi-addons' NETWORK_FENCE, and Moorage is in mode Standalone, set forceDetach.networkFence: docs/operate/dead-nodes.md.",
		"drivers of which no AttachPolicy says whether their detach takes a dead node's access away: %d. With unpublishFences: true their volumes leave a dead node with proof, when the cloud says that it is off, or after forceDetach.afterUnreachable; without it they wait for a person, or for a time that proves nothing", len(silent))}
}
