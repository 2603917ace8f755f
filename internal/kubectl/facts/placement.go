// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	storagevolume "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// NodesVerdict is nodes that say the same to a pod.
type NodesVerdict struct {
	Nodes []string `json:"nodes"`
	// Fits: the pod's volumes could go there, and nothing bars the pod.
	Fits bool `json:"fits"`
	// Barred is what keeps the pod from the nodes whatever its volumes: its node
	// selector, a taint, and so on. Empty when nothing that is looked at does.
	Barred  string   `json:"barred,omitempty"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// fits asks every node whether it could take the pod's volumes, and gathers
// those that say the same.
func (w *World) fits(s ledger.Snapshot, r arbiter.Request, p *corev1.Pod) []NodesVerdict {
	groups := map[string]*NodesVerdict{}
	for n := range s.Nodes() {
		if !n.Exists {
			continue
		}
		verdict, barred := w.Arbiter.Fit(s, r, n.Name, w.Now), w.barred(p, w.nodes[n.Name])
		if barred != "" {
			verdict = arbiter.Verdict{} // whatever its volumes do
		}
		planned := places(s.Delta(), n.Name)
		key := fmt.Sprint(verdict.Outcome, barred, planned && len(verdict.Reasons) > 0)
		for _, reason := range verdict.Reasons {
			key += "\n" + reason.Message()
		}
		if groups[key] == nil {
			groups[key] = &NodesVerdict{Fits: verdict.Allowed(), Barred: barred, Reasons: w.reasons(verdict, p)}
			if planned {
				groups[key].Reasons = fullByPlan(groups[key].Reasons)
			}
		}
		groups[key].Nodes = append(groups[key].Nodes, string(n.Name))
	}
	var list []NodesVerdict
	for _, g := range groups {
		slices.Sort(g.Nodes)
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b NodesVerdict) int {
		return cmp.Or(
			cmp.Compare(min(1, len(a.Barred)), min(1, len(b.Barred))), // those that may come into question first
			cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	return list
}

// byAffinity begins what bars a pod from the nodes that it does not choose itself.
const byAffinity = "the pod's node "

// affinityOf names how a pod chooses its nodes.
func affinityOf(p *corev1.Pod) string {
	var parts []string
	if len(p.Spec.NodeSelector) > 0 {
		parts = append(parts, "selector "+labels.FormatLabels(p.Spec.NodeSelector))
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		parts = append(parts, "affinity")
	}
	return byAffinity + strings.Join(parts, " or ")
}

// barred says what keeps a pod from a node whatever its volumes do: what
// kube-scheduler's filters NodeUnschedulable, TaintToleration, NodeAffinity
// and the volumes' own node affinity say. Resources, pod affinity and topology
// spread are not looked at.
func (w *World) barred(p *corev1.Pod, n *corev1.Node) string {
	if p == nil || n == nil {
		return ""
	}
	if w.draining != "" && n.Name == w.draining {
		return "it is the node to be drained"
	}
	if w.draining != "" && !w.isReady(ledger.NodeName(n.Name)) {
		return "it is not ready"
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulingcorev1.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, &cordon, false) {
		return "it is cordoned"
	}
	taint, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, schedules, false)
	if untolerated {
		return "its taint " + taint.ToString()
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !match {
		return affinityOf(p)
	}
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if class := w.class(claim); class != nil && claim.Spec.VolumeName == "" && !inTopologies(class.AllowedTopologies, n) {
			return "the topologies that StorageClass " + class.Name + " allows"
		}
		pv := w.pvs[claim.Spec.VolumeName]
		switch {
		case pv == nil:
		case !inAffinity(pv, n):
			return "the node affinity of volume " + pv.Name
		case !inZones(pv, n):
			return "the zone of volume " + pv.Name
		}
	}
	return ""
}

// inAffinity says whether a volume's node affinity, as kube-scheduler reads it, allows a node.
func inAffinity(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	csi, _ := translate.AsCSI(pv) // a volume that can't be translated keeps its own
	return storagevolume.CheckNodeAffinity(csi, n.Labels) == nil
}

// zoneLabels are the labels of PersistentVolumes and nodes that kube-scheduler's filter
// VolumeZone compares, the later name of each after the earlier one.
var zoneLabels = [][2]string{
	{corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone},
	{corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion},
}

// zonesOf are the zones and regions by a PersistentVolume's labels: old volumes have no other
// word on where they are.
func zonesOf(pv *corev1.PersistentVolume) map[string][]string {
	zones := map[string][]string{}
	for _, names := range zoneLabels {
		for _, name := range names {
			if value := pv.Labels[name]; value != "" {
				zones[name] = strings.Split(value, "__")
			}
		}
	}
	return zones
}

// inZones says whether a node is in the zones by a volume's labels. One that says nothing of
// its own is in all.
func inZones(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	zones := zonesOf(pv)
	for _, names := range zoneLabels {
		at := cmp.Or(n.Labels[names[0]], n.Labels[names[1]])
		for _, name := range names {
			if in := zones[name]; len(in) > 0 && at != "" && !slices.Contains(in, at) {
				return false
			}
		}
	}
	return true
}

// inTopologies says whether a node is in one of the topologies that a class allows; none
// means all.
func inTopologies(allowed []corev1.TopologySelectorTerm, n *corev1.Node) bool {
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(t corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(e.Values, n.Labels[e.Key])
		})
	})
}

// schedules says whether a taint keeps new pods away.
func schedules(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}
