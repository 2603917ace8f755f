// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/operation"
)

// checkAttachPolicies finds AttachPolicies that do nothing, leave a node without
// a slot, or leave fewer than an autoscaler knows.
func checkAttachPolicies(e *Evidence) []Finding {
	var list []Finding
	for _, p := range e.World.Policies {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); c != nil && c.Status == metav1.ConditionFalse {
			said, do := c.Reason+": "+c.Message, "docs/reasons.md says what "+c.Reason+" means."
			if counts(p) {
				list = append(list, found(Warning, said, do, "AttachPolicy %s is in effect but for one of its fields", p.Name))
			} else {
				list = append(list, found(Warning, said, do, "AttachPolicy %s is not in effect", p.Name))
			}
		}
	}
	list = append(list, unservedSnapshots(e)...)
	list = append(list, workersBusy(e)...)
	full := map[string][]string{}
	for _, s := range e.World.ListSlots() {
		if s.Limit != nil && *s.Limit == 0 && s.Stated != nil && *s.Stated > 0 {
			full[s.Driver] = append(full[s.Driver], fmt.Sprintf("%s (%d)", s.Node, *s.Stated))
		}
	}
	for _, driver := range sortedKeys(full) {
		list = append(list, found(Error, "the CSINode's own number of slots: "+some(full[driver]), "Lower slots.headroom, or raise slots.max: kubectl get attachpolicies.",
			"AttachPolicy %s leaves driver %s no slot at %s: no pod gets a volume there", arbiter.PolicyFor(e.World.Snapshot, driver, "").Name, driver, facts.Count(len(full[driver]), "node")))
	}
	list = append(list, unknownToAutoscalers(e)...)
	if len(list) == 0 {
		list = append(list, ok("AttachPolicies in effect: %d", len(e.World.Policies)))
	}
	return list
}

// counts says whether a policy counts for its driver and class, be it without some of its fields.
func counts(p *v1alpha1.AttachPolicy) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect)
	if c == nil || c.Status != metav1.ConditionFalse {
		return true
	}
	return c.Reason == v1alpha1.ReasonNetworkFencesOff || c.Reason == v1alpha1.ReasonOperationTicketsOff || c.Reason == v1alpha1.ReasonWorkersNotCounted
}

// workersBusy finds drivers of which volumes wait because as many attaches and detaches are under way
// as their AttachPolicy allows.
func workersBusy(e *Evidence) []Finding {
	var list []Finding
	waiting, underWay := e.World.AwaitWorkers(), e.World.Snapshot.UnderWayOf()
	for _, driver := range sortedKeys(waiting) {
		rule := arbiter.PolicyFor(e.World.Snapshot, driver, "")
		list = append(list, found(Info, "under way: "+fmt.Sprint(underWay[driver])+"; waiting: "+some(waiting[driver]),
			"If they wait for long: raise workers of the AttachPolicy if the storage bears it, and see in the driver's log why attaches and detaches take long.",
			"driver %s attaches and detaches %d at a time, by workers of AttachPolicy %s: %s waiting for that", driver, rule.Workers, rule.Name,
			facts.Count(len(waiting[driver]), "volume")))
	}
	return list
}

// unknownToAutoscalers finds drivers whose policy leaves fewer slots than their CSINodes state,
// where an autoscaler runs: it reads the CSINode, takes such a node to have room, and adds none.
func unknownToAutoscalers(e *Evidence) []Finding {
	names := autoscalers(e)
	if len(names) == 0 {
		return nil
	}
	fewer := map[string][]string{}
	for _, s := range e.World.ListSlots() {
		if s.Limit == nil || *s.Limit == 0 || s.Stated != nil && *s.Limit >= *s.Stated {
			continue
		}
		stated := "no limit"
		if s.Stated != nil {
			stated = fmt.Sprint(*s.Stated)
		}
		fewer[s.Driver] = append(fewer[s.Driver], fmt.Sprintf("%s (%d of %s)", s.Node, *s.Limit, stated))
	}
	var list []Finding
	for _, driver := range sortedKeys(fewer) {
		list = append(list, found(Warning, "slots by the policy, of those that the CSINode states: "+some(fewer[driver]),
			"Have the driver state the lower number, by its own flags: docs/operate/autoscaling.md.",
			"AttachPolicy %s leaves driver %s fewer slots than its CSINode states at %s: %s adds no node when they are full",
			arbiter.PolicyFor(e.World.Snapshot, driver, "").Name, driver, facts.Count(len(fewer[driver]), "node"), strings.Join(names, " and ")))
	}
	return list
}

// autoscalers names the autoscalers that lead or have led by a Lease of the name that they have by
// default. One that a cloud runs outside the cluster is not seen.
func autoscalers(e *Evidence) []string {
	var names []string
	for _, known := range []struct{ lease, name string }{{"cluster-autoscaler", "cluster-autoscaler"}, {"karpenter-leader-election", "Karpenter"}} {
		if slices.ContainsFunc(e.Leases.Items, func(l coordinationv1.Lease) bool { return l.Name == known.lease }) {
			names = append(names, known.name)
		}
	}
	return names
}

// unservedSnapshots finds AttachPolicies that name snapshots where there are none.
func unservedSnapshots(e *Evidence) []Finding {
	if e.ServedErr != nil || slices.ContainsFunc(operation.SnapshotVersions, func(v schema.GroupVersion) bool {
		return slices.Contains(e.Served[v.String()], operation.SnapshotResource)
	}) {
		return nil
	}
	var names []string
	for _, p := range e.World.Policies {
		if slices.Contains(p.Spec.AttachFor, v1alpha1.OperationSnapshot) || slices.Contains(p.Spec.DetachFor, v1alpha1.OperationSnapshot) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []Finding{found(Warning, some(names), "Install external-snapshotter's definitions and its snapshot controller, or take Snapshot out of attachFor and detachFor.",
		"AttachPolicies name the operation Snapshot, and the API server does not serve %s: no ticket is made for a snapshot", operation.SnapshotResource+"."+operation.SnapshotVersions[0].Group)}
}
