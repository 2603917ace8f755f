// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Pod is why a pod runs or does not, as far as its volumes are concerned.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Node      string `json:"node,omitempty"`
	// NodeReady is that of Node; true where nodes may not be
	// listed, since nothing is known against it.
	NodeReady bool `json:"nodeReady,omitempty"`
	// Terminating: it is being deleted, and a container may still run.
	Terminating bool      `json:"terminating,omitempty"`
	Scheduler   string    `json:"scheduler"`
	Created     time.Time `json:"created"`
	// State is Ready (nothing about its volumes keeps it), WaitsForVolumes,
	// WaitsForNode, Finished or NoVolumes.
	State string `json:"state"`
	// Answer is the whole in a sentence that begins after the pod's name.
	Answer string `json:"answer"`
	// Cause is what keeps it from running, nil when nothing does.
	Cause *Cause `json:"cause,omitempty"`
	// Note is what else there is to know, such as that Moorage does not place it.
	Note string `json:"note,omitempty"`
	// Told is what others have written on the pod about it.
	Told []Told `json:"told,omitempty"`
	// Volumes are those that can need an attachment.
	Volumes []PodVolume `json:"volumes,omitempty"`
	// Nodes are the nodes by what they say to the pod's volumes, for a pod that
	// has none.
	Nodes []NodesVerdict `json:"nodes,omitempty"`
	// Unseen is what could not be read: facts may be missing.
	Unseen []Unseen `json:"unseen,omitempty"`
	// mounted: the kubelet has mounted its volumes and made its sandbox.
	mounted bool
}

// The states of a Pod.
const (
	PodReady           = "Ready"
	PodWaitsForVolumes = "WaitsForVolumes"
	PodWaitsForNode    = "WaitsForNode"
	PodFinished        = "Finished"
	PodNoVolumes       = "NoVolumes"
)

// Told is a condition of the pod that concerns its volumes.
type Told struct {
	By      string    `json:"by"` // the condition's type
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message"`
	Since   time.Time `json:"since,omitzero"`
}

// PodVolume is a volume as one pod needs it.
type PodVolume struct {
	// Name is the claim's, or the inline volume's.
	Name string `json:"name"`
	// SafeToMount: nothing keeps the kubelet from mounting it.
	SafeToMount bool `json:"safeToMount"`
	// NotMounted: no container of the pod mounts it. The kubelet does not mount it either, and
	// does not wait for it.
	NotMounted bool     `json:"notMounted,omitempty"`
	Reasons    []Reason `json:"reasons,omitempty"`
	Volume
}

// ExplainPod says why a pod runs or does not.
func (w *World) ExplainPod(p *corev1.Pod) Pod {
	fact := w.PodFact(p)
	out := Pod{
		Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName,
		Scheduler: p.Spec.SchedulerName, Created: p.CreationTimestamp.Time, Unseen: w.unseenWith(),
	}
	request := arbiter.PodRequest(w.Snapshot, fact)
	at := fact.Node
	out.Terminating = fact.Phase == ledger.PodTerminating
	told, written := w.toldVolumes(p)
	if w.blind() && written {
		out.Volumes, out.Told, out.NodeReady = told, toldOf(p), true
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
	out.Told = toldOf(p)
	out.NodeReady = w.isReady(at) || w.unseen("nodes")
	out.State = stateOfPod(&out, fact, request.Attachable(w.Snapshot))
	w.conclude(&out, p)
	notes := append(notMounted(&out), w.deletingClaims(p)...)
	if same := w.sameVolume(p); same != nil && out.State != PodFinished && (out.Cause == nil || out.Cause.Code != same.Code) {
		notes = append(notes, same.Message)
	}
	if len(notes) > 0 {
		out.Note = sentence(strings.Join(notes, "; "))
	}
	if out.State == PodWaitsForNode && p.Spec.SchedulerName == corev1.DefaultSchedulerName && w.Served() {
		out.Note = notPlaced
	}
	return out
}

// conclude finds the cause, and says the whole in a sentence.
func (w *World) conclude(out *Pod, p *corev1.Pod) {
	made := podCondition(p, corev1.PodReadyToStartContainers)
	out.Cause, out.mounted = w.cause(out, p), made != nil && made.Status == corev1.ConditionTrue
	out.Answer = answer(out)
}

// notPlaced is for pods that wait for a node and are the default scheduler's.
const notPlaced = "Moorage does not place it: its namespace has not opted in (label " + v1alpha1.LabelEnforce + "=true), " +
	"or it was created before that, or while the webhook did not answer. If Moorage is to place it, see that the webhook answers (kubectl moorage doctor), " +
	"then delete the pod, so that its controller makes it again."

// podVolume says how a need of a pod is met at a node; without a node, only
// what holds at every node.
func (w *World) podVolume(r arbiter.Request, need arbiter.Need, at ledger.NodeName, p *corev1.Pod) PodVolume {
	out := PodVolume{Name: need.Name, Volume: w.Volume(need.Volume), NotMounted: p.Spec.NodeName != "" && !mounts(p, need.Name)}
	if out.Access == accessUnknown {
		out.Access = accessOf(need.Access)
	}
	var verdict arbiter.Verdict
	switch {
	case at != "":
		need.Bound = need.Link == ledger.LinkUnbound // the volume is still to be made
		verdict = w.Arbiter.Explain(w.Snapshot, need, at, w.Now)
		if first := w.mountedFor(need, at, p); first != nil && verdict.Allowed() {
			verdict = arbiter.Verdict{Outcome: arbiter.Wait, Reasons: []arbiter.Reason{{Code: arbiter.UsedByOtherPod, Volume: need.Volume, Claim: need.Name, Node: at,
				Who: ledger.Requester{Namespace: first.Namespace, Name: first.Name, UID: string(first.UID)}}}}
		}
		out.SafeToMount = verdict.Allowed()
	default:
		r.Needs = []arbiter.Need{need}
		verdict = w.Arbiter.Admissible(w.Snapshot, r)
	}
	out.Reasons = w.reasons(verdict, p)
	return out
}

// mounts says whether a container of a pod mounts a volume, or has it as a device, by the name of
// its claim or its own: of others the kubelet takes no notice (k8s.io/kubernetes pkg/volume/util,
// GetPodVolumeNames).
func mounts(p *corev1.Pod, name string) bool {
	var used []string
	take := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for _, m := range mounts {
			used = append(used, m.Name)
		}
		for _, d := range devices {
			used = append(used, d.Name)
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		take(c.VolumeMounts, c.VolumeDevices)
	}
	for _, c := range p.Spec.EphemeralContainers {
		take(c.VolumeMounts, c.VolumeDevices)
	}
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		called := v.Name == name || v.Ephemeral != nil && p.Name+"-"+v.Name == name || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name
		return called && slices.Contains(used, v.Name)
	})
}

// notMounted says which volumes of a pod no container mounts.
func notMounted(x *Pod) []string {
	var list []string
	for i := range x.Volumes {
		if v := &x.Volumes[i]; v.NotMounted && x.State != PodFinished {
			list = append(list, fmt.Sprintf("no container mounts volume %s, so that the kubelet neither mounts it nor waits for it", v.Name))
		}
	}
	return list
}

// inUseAt says whether a node's kubelet reports the volume in volumesInUse, while it is attached
// there: it has mounted it, or need not wait to do so.
func (v *PodVolume) inUseAt(node string) bool {
	return slices.ContainsFunc(v.Nodes, func(at NodeVolume) bool { return at.Node == node && at.State == stateInUse })
}

// mountedFor is another pod of the same node for which its kubelet mounts a ReadWriteOncePod volume first;
// nil where there is none.
func (w *World) mountedFor(need arbiter.Need, at ledger.NodeName, p *corev1.Pod) *corev1.Pod {
	v := w.Snapshot.Volume(need.Volume)
	if v == nil || v.Access != ledger.AccessPod || !startedAt(p).IsZero() {
		return nil
	}
	place := v.NodeVolume(at)
	if place == nil {
		return nil
	}
	for _, u := range place.Users {
		other := w.pods[u.Pod]
		if other == nil || other.UID == p.UID || w.PodFact(other).Phase == ledger.PodFinished {
			continue
		}
		if !startedAt(other).IsZero() || other.CreationTimestamp.Before(&p.CreationTimestamp) {
			return other
		}
	}
	return nil
}

func (w *World) isReady(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && n.Exists && n.Ready == ledger.ReadyTrue
}

// toldOf lists the conditions about scheduling and volumes that are not True.
func toldOf(p *corev1.Pod) []Told {
	var list []Told
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, v1alpha1.PodSafeToMount, v1alpha1.PodPlaceable} {
		if c := podCondition(p, kind); c != nil && c.Status != corev1.ConditionTrue {
			list = append(list, Told{By: string(kind), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time})
		}
	}
	return list
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
		if !v.SafeToMount && !v.NotMounted {
			return PodWaitsForVolumes
		}
	}
	return PodReady
}

// startedAt is when the last container of the pod started; zero unless all
// have.
func startedAt(p *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return time.Time{}
		}
		if t := c.State.Running.StartedAt.Time; t.After(last) {
			last = t
		}
	}
	if len(p.Status.ContainerStatuses) < len(p.Spec.Containers) {
		return time.Time{}
	}
	return last
}
