// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	storagevolume "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Pod says why a pod runs or not, by its volumes.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Node      string `json:"node,omitempty"`
	// NodeReady is true if nodes may not be listed.
	NodeReady   bool      `json:"nodeReady,omitempty"`
	Terminating bool      `json:"terminating,omitempty"`
	Scheduler   string    `json:"scheduler"`
	Created     time.Time `json:"created"`
	// State is Ready (no volume keeps it), WaitsForVolumes, WaitsForNode, Finished or NoVolumes.
	State string `json:"state"`
	// Answer is a sentence without its subject, the pod's name.
	Answer string `json:"answer"`
	// Cause is why it does not run; nil: unknown.
	Cause *Reason `json:"cause,omitempty"`
	// Note has further facts.
	Note string `json:"note,omitempty"`
	// Volumes can need an attachment.
	Volumes []PodVolume `json:"volumes,omitempty"`
	// Nodes are grouped by verdict, for a pod without a node.
	Nodes  []NodesVerdict `json:"nodes,omitempty"`
	Unseen []Unseen       `json:"unseen,omitempty"`
	// mounted: the kubelet has mounted its volumes and made its sandbox.
	mounted bool
}

const (
	PodReady           = "Ready"
	PodWaitsForVolumes = "WaitsForVolumes"
	PodWaitsForNode    = "WaitsForNode"
	PodFinished        = "Finished"
	PodNoVolumes       = "NoVolumes"
)

// PodVolume is a volume as a pod needs it.
type PodVolume struct {
	// Name is the claim's, or the inline volume's.
	Name        string   `json:"name"`
	SafeToMount bool     `json:"safeToMount"`
	Reasons     []Reason `json:"reasons,omitempty"`
	Volume
}

// ExplainPod says why a pod runs or does not.
func (w *World) ExplainPod(p *corev1.Pod) Pod {
	fact := w.PodFact(p)
	out := Pod{
		Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName,
		Scheduler: p.Spec.SchedulerName, Created: p.CreationTimestamp.Time, Unseen: w.unseenWith(),
	}
	request := rules.PodRequest(w.Snapshot, fact)
	at := fact.Node
	out.Terminating = fact.Phase == ledger.PodTerminating
	told, written := w.toldVolumes(p)
	if w.blind() && written {
		out.Volumes, out.NodeReady = told, true
		out.State = stateOfPod(&out, fact, len(told) > 0)
		w.conclude(&out, p)
		return out
	}
	for _, need := range request.Needs {
		if !need.Volume.IsZero() && !w.Snapshot.AttachRequired(need.Volume.Driver) {
			continue
		}
		out.Volumes = append(out.Volumes, w.podVolume(request, need, at, p))
	}
	if at == "" {
		out.Nodes = w.fits(w.Snapshot, request, p)
	}
	out.NodeReady = w.isReady(at) || w.unseen("nodes")
	out.State = stateOfPod(&out, fact, request.Attachable(w.Snapshot))
	w.conclude(&out, p)
	if notes := w.deletingClaims(p); len(notes) > 0 {
		out.Note = Sentence(strings.Join(notes, "; "))
	}
	if out.State == PodWaitsForNode && p.Spec.SchedulerName == corev1.DefaultSchedulerName && w.Served() {
		out.Note = notPlaced
	}
	return out
}

func (w *World) conclude(out *Pod, p *corev1.Pod) {
	made := podCondition(p, corev1.PodReadyToStartContainers)
	out.Cause, out.mounted = w.cause(out, p), made != nil && made.Status == corev1.ConditionTrue
	out.Answer = answer(out)
}

const notPlaced = "Moorage does not place it: its namespace has not opted in (label " + v1alpha1.LabelEnforce + "=true), " +
	"or it was created before that, or while the webhook did not answer. If Moorage is to place it, see that the webhook answers: `kubectl moorage doctor`. " +
	"Then delete the pod, so that its controller makes it again."

// podVolume, without a node, checks only rules for every node.
func (w *World) podVolume(r rules.Request, need rules.Need, at ledger.NodeName, p *corev1.Pod) PodVolume {
	out := PodVolume{Name: need.Name, Volume: w.Volume(need.Volume)}
	if out.Access == accessUnknown {
		out.Access = accessOf(need.Access)
	}
	var verdict rules.Verdict
	switch {
	case at != "":
		need.Bound = need.Link == ledger.LinkUnbound // the volume is still to be made
		verdict = w.Arbiter.Explain(w.Snapshot, need, at, w.Now)
		out.SafeToMount = verdict.Allowed()
	default:
		r.Needs = []rules.Need{need}
		verdict = w.Arbiter.Admissible(w.Snapshot, r)
	}
	out.Reasons = w.reasons(verdict, p)
	return out
}

// inUseAt: the volume is attached and in volumesInUse. The kubelet has mounted it, or need not wait.
func (v *PodVolume) inUseAt(node string) bool {
	return slices.ContainsFunc(v.Nodes, func(at VolumeOnNode) bool { return at.Node == node && at.State == stateInUse })
}

func (w *World) isReady(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && n.Exists && n.Ready == ledger.ReadyTrue
}

func stateOfPod(out *Pod, fact *ledger.Pod, attachable bool) string {
	switch {
	case fact.Phase == ledger.PodFinished:
		return PodFinished
	case !attachable:
		return PodNoVolumes
	case out.Node == "":
		return PodWaitsForNode
	}
	for _, v := range out.Volumes {
		if !v.SafeToMount {
			return PodWaitsForVolumes
		}
	}
	return PodReady
}

func answer(p *Pod) string {
	if p.Cause != nil && p.Cause.Code == "Finalizer" {
		return strings.TrimPrefix(Sentence(p.Cause.Message), "it ")
	}
	if p.Cause != nil && p.Terminating {
		return strings.TrimPrefix(Sentence(p.Cause.Message), p.Name+" ")
	}
	if p.Cause != nil && p.Phase == "Running" && p.Cause.Of == OfContainer {
		return "is not ready: " + Sentence(p.Cause.Message)
	}
	if p.Cause != nil && p.Phase != "Running" {
		return "does not run: " + Sentence(p.Cause.Message)
	}
	switch {
	case p.State == PodFinished:
		return "has finished and needs no volume any more."
	case p.Terminating:
		return fmt.Sprintf("is being deleted at %s. Its volumes may go elsewhere once its kubelet no longer reports them as in use.", p.Node)
	case p.Node == "":
		return answerUnplaced(p)
	case p.Cause != nil && p.Cause.Code == string(rules.NodeMissing):
		return fmt.Sprintf("may run: there is no node %s, and nobody can say whether its machine still runs it%s.", p.Node, volumesCount(p))
	case !p.NodeReady:
		return fmt.Sprintf("may run: %s is not ready, and nobody can say whether it still runs there%s.", p.Node, volumesCount(p))
	case p.Phase == "Running" && p.Cause != nil:
		return fmt.Sprintf("runs at %s, and %s", p.Node, Sentence(p.Cause.Message))
	case p.Phase == "Running":
		return fmt.Sprintf("runs at %s%s.", p.Node, withVolumes(p))
	}
	return answerStarting(p)
}

func volumesCount(p *Pod) string {
	if p.State == PodNoVolumes {
		return ""
	}
	return "; its volumes count as in use"
}

func withVolumes(p *Pod) string {
	if p.State == PodNoVolumes {
		return ""
	}
	return ", with " + Count(len(p.Volumes), "volume")
}

func answerStarting(p *Pod) string {
	hears := "the kubelet has not complained"
	if slices.ContainsFunc(p.Unseen, func(u Unseen) bool { return u.Resource == "events" }) {
		hears = "what the kubelet reports is not known"
	}
	if p.State == PodNoVolumes {
		return fmt.Sprintf("starts at %s: it has no volume that needs an attachment, and %s.", p.Node, hears)
	}
	switch {
	case p.mounted:
		return fmt.Sprintf("starts at %s: its volumes are mounted, and the kubelet is starting its containers.", p.Node)
	case !slices.ContainsFunc(p.Volumes, func(v PodVolume) bool { return !v.inUseAt(p.Node) }):
		return fmt.Sprintf("starts at %s: every volume is attached there, and the kubelet reports them in use. It mounts them, and what else the pod names, "+
			"such as ConfigMaps; then it starts the containers.", p.Node)
	}
	return fmt.Sprintf("starts at %s: every volume is attached there and may be mounted. The kubelet mounts after its next status report, "+
		"every 10 s by default (nodeStatusUpdateFrequency).", p.Node)
}

func answerUnplaced(p *Pod) string {
	all, fit := 0, 0
	for _, n := range p.Nodes {
		all += len(n.Nodes)
		if n.Fits {
			fit += len(n.Nodes)
		}
	}
	switch {
	case all == 0:
		return "has no node, and no node could be read: nothing can be said about where it could go."
	case fit > 0 && p.State != PodNoVolumes:
		return fmt.Sprintf("has no node yet: its volumes could go to %d of %s, and its scheduler has not spoken.", fit, Count(all, "node"))
	case barredNodes(p) == all:
		return "has no node, and none is a choice for it: " + strings.Join(bars(p), "; ") + "."
	}
	return "has no node yet."
}

func bars(p *Pod) []string {
	var list []string
	for _, group := range p.Nodes {
		if group.Barred != "" && !slices.Contains(list, group.Barred) {
			list = append(list, group.Barred)
		}
	}
	return list
}

// CountVerb is Count with a verb.
func CountVerb(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

func verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func messages(reasons []Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Message)
	}
	return strings.Join(list, ", and ")
}

// Count words a number of things.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// blind says whether a kind behind a bound pod's volumes is unseen.
func (w *World) blind() bool {
	return slices.ContainsFunc([]string{"persistentvolumes", "nodes", "volumeattachments.storage.k8s.io", "persistentvolumeclaims"}, w.unseen)
}

// toldVolumes are from the controller's annotation, the only source for users of a single namespace. False:
// none.
func (w *World) toldVolumes(p *corev1.Pod) ([]PodVolume, bool) {
	status, told := v1alpha1.VolumeStatusOf(p)
	if !told {
		return nil, false
	}
	var list []PodVolume
	for _, v := range status.Volumes {
		name := v.Claim
		if name == "" {
			name = v.Name
		}
		out := PodVolume{Name: name, SafeToMount: v.SafeToMount, Volume: Volume{
			PersistentVolume: v.PersistentVolume, Access: accessUnknown, State: stateUnknown, Transitions: v.Transitions,
		}}
		if v.Claim != "" {
			out.Claim = p.Namespace + "/" + v.Claim
			if claim := w.Snapshot.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}); claim != nil {
				out.Access = accessOf(claim.Access)
			}
		}
		if v.SafeToMount {
			out.State = stateAttached
		}
		if v.Reason != "" && !v.SafeToMount {
			// The reason may be about another node.
			code := ledger.Code(v.Reason)
			out.Reasons = []Reason{{
				Of: OfVolume, Code: v.Reason, Message: cmp.Or(v.Message, "nobody has said yet what keeps volume "+name), Since: waitsSince(p), Changes: w.adviceOn(code).Changes, Do: w.safeAdvice(code, ""),
			}}
		}
		list = append(list, out)
	}
	return list, true
}

// Wait is a waiting VolumeTicket, or a pod that waits for volumes, a node, its dead node, or another
// obstacle.
type Wait struct {
	Who    Requester `json:"who"`
	Node   string    `json:"node,omitempty"`
	State  string    `json:"state"`
	Code   string    `json:"code,omitempty"` // cause's, else first reason's
	Answer string    `json:"answer"`
	Since  time.Time `json:"since,omitzero"`
	// Behind is the awaited dead node, or empty.
	Behind    string  `json:"behind,omitempty"`
	Explained Pod     `json:"-"` // a pod's
	Reason    *Reason `json:"-"` // a ticket's
}

// PodAtDeadNode: the node is gone, or not ready without a live kubelet.
const PodAtDeadNode = "AtDeadNode"

// PodNotStarting: another obstacle, like a missing ConfigMap, delays a pod with mountable volumes.
const PodNotStarting = "NotStarting"

// ListWaits lists waiting tickets and pods, the longest first. A pod at a dead node waits in any phase,
// since its volumes can't leave.
func (w *World) ListWaits() []Wait { return w.waitsAt(func(string) bool { return true }) }

// waitsAt is ListWaits for certain nodes and for no node.
func (w *World) waitsAt(is func(node string) bool) []Wait {
	var list []Wait
	for _, p := range w.Pods {
		if !is(p.Spec.NodeName) {
			continue
		}
		if wait, ok := w.podWait(p); ok {
			list = append(list, wait)
		}
	}
	queues := map[ledger.NodeName]*rules.Queue{}
	for _, object := range w.Tickets {
		if !is(object.Node()) {
			continue
		}
		if t := w.ticket(object, queues); len(t.Reasons) > 0 {
			r := &t.Reasons[0]
			list = append(list, Wait{
				Who: Requester{Kind: "VolumeTicket", Namespace: t.Namespace, Name: t.Name}, Node: t.Node, State: t.State, Code: r.Code,
				Answer: "waits: " + Sentence(r.Message), Since: t.Since, Behind: w.behind(r.Node), Reason: r,
			})
		}
	}
	slices.SortFunc(list, func(a, b Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
	})
	return list
}

// podWait is false if the pod does not wait, or no volume of it needs an attachment.
func (w *World) podWait(p *corev1.Pod) (Wait, bool) {
	dead := w.atDeadNode(p)
	if !dead && p.Status.Phase != corev1.PodPending || !w.NeedsAttachment(p) || len(p.Spec.SchedulingGates) > 0 {
		return Wait{}, false
	}
	x := w.ExplainPod(p)
	if x.State == PodFinished {
		return Wait{}, false
	}
	wait := Wait{
		Who: Requester{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}, Node: p.Spec.NodeName, State: x.State,
		Code: firstCode(&x), Answer: x.Answer, Since: waitsSince(p), Explained: x,
	}
	switch {
	case dead && x.Cause != nil && x.Cause.Of == OfNode:
		wait.State = PodAtDeadNode
	case x.State == PodReady && (x.Cause != nil || w.Now.Sub(waitsSince(p)) > LongWait):
		wait.State = PodNotStarting
	case x.State != PodWaitsForVolumes && x.State != PodWaitsForNode:
		return Wait{}, false
	}
	if x.Cause != nil {
		wait.Code, wait.Since = x.Cause.Code, becauseSince(x.Cause, p)
		wait.Behind = w.behind(x.Cause.Node)
	}
	for i := range x.Volumes {
		for _, r := range x.Volumes[i].Reasons {
			wait.Behind = cmp.Or(wait.Behind, w.behind(r.Node))
		}
	}
	return wait, true
}

func (w *World) behind(node string) string {
	if w.knownNotReady(node) {
		return node
	}
	return ""
}

// becauseSince: a cause, like a dead node, may be older than the pod's wait.
func becauseSince(c *Reason, p *corev1.Pod) time.Time {
	since := c.Since
	if waits := waitsSince(p); since.IsZero() || c.Of != OfNode && waits.After(since) {
		since = waits
	}
	return since
}

// atDeadNode: the pod's node is gone, or not ready without a live kubelet. False if nodes may not be
// listed.
func (w *World) atDeadNode(p *corev1.Pod) bool {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return false
	}
	node := w.Node(name)
	return node == nil || !w.kubeletLives(node)
}

func firstCode(x *Pod) string {
	for _, v := range x.Volumes {
		if len(v.Reasons) > 0 {
			return v.Reasons[0].Code
		}
	}
	for _, n := range x.Nodes {
		if n.Barred == "" && len(n.Reasons) > 0 {
			return n.Reasons[0].Code
		}
	}
	return ""
}

// NodesVerdict groups nodes with the same verdict on a pod.
type NodesVerdict struct {
	Nodes []string `json:"nodes"`
	Fits  bool     `json:"fits"`
	// Barred is a rule against the pod with any volumes, like a taint. Empty: none found.
	Barred  string   `json:"barred,omitempty"`
	Reasons []Reason `json:"reasons,omitempty"`
}

func (w *World) fits(s ledger.Snapshot, r rules.Request, p *corev1.Pod) []NodesVerdict {
	groups := map[string]*NodesVerdict{}
	for n := range s.Nodes() {
		if !n.Exists {
			continue
		}
		verdict, barred := w.Arbiter.Fit(s, r, n.Name, w.Now), w.barred(p, w.nodes[n.Name])
		if barred != "" {
			verdict = rules.Verdict{} // the volumes don't matter
		}
		key := fmt.Sprint(verdict.Outcome, barred)
		for _, reason := range verdict.Reasons {
			key += "\n" + reason.Message()
		}
		if groups[key] == nil {
			groups[key] = &NodesVerdict{Fits: verdict.Allowed(), Barred: barred, Reasons: w.reasons(verdict, p)}
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
			cmp.Compare(min(1, len(a.Barred)), min(1, len(b.Barred))), // allowed nodes first
			cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	return list
}

const byAffinity = "the pod's node "

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

// barred applies kube-scheduler's NodeUnschedulable, TaintToleration and NodeAffinity, and the volumes'
// node affinity, but not resources, pod affinity or topology spread.
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
	return w.elsewhere(p, n)
}

// elsewhere is a lasting rule against a node, or empty.
func (w *World) elsewhere(p *corev1.Pod, n *corev1.Node) string {
	if match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !match {
		return affinityOf(p)
	}
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if class := w.class(claim); class != nil && claim.Spec.VolumeName == "" && !inTopologies(class.AllowedTopologies, n) {
			return "the topologies that StorageClass " + class.Name + " allows"
		}
		pv := w.pvs[claim.Spec.VolumeName]
		if pv != nil && !inAffinity(pv, n) {
			return "the node affinity of volume " + pv.Name
		}
	}
	return ""
}

// inAffinity reads a volume's node affinity as kube-scheduler does.
func inAffinity(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	csi, _ := convert.AsCSI(pv) // an untranslatable volume keeps its own
	return storagevolume.CheckNodeAffinity(csi, n.Labels) == nil
}

// inTopologies allows all nodes for an empty list.
func inTopologies(allowed []corev1.TopologySelectorTerm, n *corev1.Node) bool {
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(t corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(e.Values, n.Labels[e.Key])
		})
	})
}

func schedules(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}
