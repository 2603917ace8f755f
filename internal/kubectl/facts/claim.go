// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Storage is a claim or PersistentVolume with its users.
type Storage struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Answer    string `json:"answer"`
	// Cause is its problem, or nil.
	Cause *Reason `json:"cause,omitempty"`
	// Reasons are its problems at every node.
	Reasons []Reason `json:"reasons,omitempty"`
	// Volume is nil while it is missing, or if it never needs an attachment.
	Volume *Volume `json:"volume,omitempty"`
	// Pods are its referring pods, with their waits.
	Pods   []PodNeed `json:"pods,omitempty"`
	Unseen []Unseen  `json:"unseen,omitempty"`
}

// PodNeed is a pod that refers to a claim.
type PodNeed struct {
	Who         Requester `json:"who"`
	Node        string    `json:"node,omitempty"`
	State       string    `json:"state"`
	Reasons     []Reason  `json:"reasons,omitempty"`
	Cause       *Reason   `json:"cause,omitempty"`
	Answer      string    `json:"answer"`
	Terminating bool      `json:"terminating,omitempty"`
	// Since is the start of the wait for Cause, perhaps before the pod's.
	Since time.Time `json:"since,omitzero"`
}

// ExplainClaim says where a claim's volume is, and names its waiters.
func (w *World) ExplainClaim(c *corev1.PersistentVolumeClaim) Storage {
	out := Storage{Namespace: c.Namespace, Name: c.Name, Phase: string(c.Status.Phase), Unseen: w.unseenWith()}
	key := ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
	w.explainLink(&out, key)
	w.addPods(&out, key)
	out.Cause = w.claimCause(c)
	if out.Cause == nil {
		out.Cause = w.deletingCause(c, out.Pods)
	}
	storageCause(&out)
	out.Answer = answerStorage(&out)
	return out
}

// ExplainPersistentVolume is like ExplainClaim.
func (w *World) ExplainPersistentVolume(pv *corev1.PersistentVolume) Storage {
	out := Storage{Name: pv.Name, Phase: string(pv.Status.Phase), Unseen: w.Unseen}
	if fact := w.Snapshot.PersistentVolume(pv.Name); fact != nil {
		if !fact.Volume.IsZero() && w.Snapshot.AttachRequired(fact.Volume.Driver) {
			v := w.Volume(fact.Volume)
			out.Volume = &v
		}
		if now := w.Claim(fact.Claim.Namespace, fact.Claim.Name); w.ofEarlierClaim(pv) && now.Spec.VolumeName == pv.Name {
			out.Reasons = w.reasonsIn(now.Namespace, rules.Verdict{Reasons: []rules.Reason{{Code: rules.ClaimLost, Claim: now.Name}}}, nil)
			out.Cause = &out.Reasons[0]
			out.Answer = "can be used by nobody: " + Sentence(out.Cause.Message)
			return out
		}
		if w.ofEarlierClaim(pv) {
			out.Answer = fmt.Sprintf("belonged to a claim %s that is gone: the claim that has its name now is another one, and nobody waits for this volume.", fact.Claim)
			return out
		}
		w.addPods(&out, fact.Claim)
	}
	storageCause(&out)
	out.Answer = answerStorage(&out)
	return out
}

func (w *World) explainLink(out *Storage, key ledger.ClaimKey) {
	probe := ledger.Ticket{ID: ledger.TicketID{Namespace: key.Namespace}, Volumes: []ledger.TicketVolume{{Claim: key.Name}}}
	request := rules.TicketRequest(w.Snapshot, &probe)
	out.Reasons = w.reasonsIn(key.Namespace, w.Arbiter.Admissible(w.Snapshot, request), nil)
	for _, need := range request.Needs {
		if need.Volume.IsReal() && w.Snapshot.AttachRequired(need.Volume.Driver) {
			v := w.Volume(need.Volume)
			out.Volume = &v
		}
	}
}

// UsersOf lists the pods that name a claim.
func (w *World) UsersOf(c *corev1.PersistentVolumeClaim) []*corev1.Pod {
	var list []*corev1.Pod
	for _, uid := range w.Snapshot.ClaimPods(ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}) {
		if p := w.pods[uid]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

func (w *World) addPods(out *Storage, claim ledger.ClaimKey) {
	for _, uid := range w.Snapshot.ClaimPods(claim) {
		pod := w.pods[uid]
		if pod == nil {
			continue
		}
		explained := w.ExplainPod(pod)
		need := PodNeed{
			Who: Requester{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
			State: explained.State, Cause: explained.Cause, Answer: explained.Answer, Terminating: explained.Terminating,
		}
		if explained.Cause != nil {
			need.Since = becauseSince(explained.Cause, pod)
		}
		for _, v := range explained.Volumes {
			if v.Name == claim.Name {
				need.Reasons = v.Reasons
			}
		}
		out.Pods = append(out.Pods, need)
	}
	slices.SortFunc(out.Pods, func(a, b PodNeed) int { return strings.Compare(a.Who.String(), b.Who.String()) })
}

func storageCause(out *Storage) {
	switch {
	case out.Cause != nil:
	case len(out.Reasons) > 0:
		out.Cause = &out.Reasons[0]
	case out.Volume != nil && out.Volume.Reason != nil:
		out.Cause = out.Volume.Reason
	default:
		if out.Cause = podsCause(out.Pods); out.Cause == nil {
			if p := userOfDeadNode(out.Pods); p != nil {
				out.Cause = p.Cause
			}
		}
	}
}

// podsCause is the first pod's wait for a volume, or nil. A pod that lacks a claim does not wait for
// another claim of the same name.
func podsCause(pods []PodNeed) *Reason {
	for _, p := range pods {
		if len(p.Reasons) > 0 && p.Cause != nil && p.Cause.Code != string(rules.ClaimMissing) && (p.Cause.Of == OfVolume || p.Cause.Of == OfComponent) {
			return p.Cause
		}
	}
	return nil
}

func userOfDeadNode(pods []PodNeed) *PodNeed {
	for i := range pods {
		if p := &pods[i]; p.Cause != nil && p.Cause.Of == OfNode && p.State != PodFinished {
			return p
		}
	}
	return nil
}

// deletingCause names the loss at the end of a deleted claim's last pod. Nil for other claims.
func (w *World) deletingCause(c *corev1.PersistentVolumeClaim, pods []PodNeed) *Reason {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p PodNeed) bool { return p.Node == "" }) // pods without a node keep no claim
	if c.DeletionTimestamp == nil || len(pods) == 0 {
		return nil
	}
	lost := w.dataGoesToo(c)
	out := &Reason{Of: OfVolume, Code: string(rules.ClaimDeleting), Since: c.DeletionTimestamp.Time,
		Message: fmt.Sprintf("it is being deleted, and is kept only while %s uses it; it is gone once that ends%s", pods[0].Who, lost),
		Do:      "Nothing brings a claim back that is being deleted: make another one before the pod ends"}
	if lost != "" {
		out.Do = fmt.Sprintf("If the data is needed, have it kept before the pod ends: `kubectl patch pv %s -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'`", c.Spec.VolumeName)
	}
	return out
}

func answerStorage(s *Storage) string {
	switch {
	case s.Cause != nil && s.Cause.Code == string(rules.ClaimDeleting) && len(s.Pods) > 0:
		return strings.TrimPrefix(Sentence(s.Cause.Message), "it ")
	case s.Cause != nil && s.Cause.Of == OfClaim:
		return strings.TrimPrefix(Sentence(s.Cause.Message), "claim "+s.Name+" ")
	case len(s.Reasons) > 0 && s.Reasons[0].Code == NotVisible:
		return fmt.Sprintf("is %s, and %s", s.Phase, Sentence(s.Reasons[0].Message))
	case len(s.Reasons) > 0 && s.Phase != string(corev1.ClaimPending):
		return "can be used by nobody: " + Sentence(messages(s.Reasons))
	}
	v := s.Volume
	switch {
	case v == nil && s.Phase == string(corev1.ClaimPending):
		return "is not bound yet: a volume is made for it when its first pod is placed, or when the provisioner gets there."
	case v == nil:
		return "needs no attachment: any node may mount it."
	}
	var b strings.Builder
	more, named := len(v.Waiting), v.Next != nil
	b.WriteString(whereIs(v))
	switch {
	case s.Cause == nil:
	case v.Reason != nil && rules.CallOf(codeOf(v.Reason)) == rules.CallAttach:
		fmt.Fprintf(&b, ", and %s", strings.TrimSuffix(s.Cause.Message, ".")) // it is on its way there
	case v.Reason != nil:
		fmt.Fprintf(&b, ". It can't leave: %s", strings.TrimSuffix(s.Cause.Message, "."))
	case s.Cause.Of == OfNode:
		if p := userOfDeadNode(s.Pods); p != nil {
			fmt.Fprintf(&b, ". Its user, %s, %s", p.Who, strings.TrimSuffix(p.Answer, "."))
		}
	default:
		named = true
		fmt.Fprintf(&b, ". %s waits for it: %s", whoWaits(s), strings.TrimSuffix(s.Cause.Message, "."))
		if v.Next == nil {
			more-- // it is among the waiters
		}
	}
	switch {
	case v.Next != nil:
		fmt.Fprintf(&b, ". Next: %s %s", v.Next.Who, AtNode(v.Next.Node))
	case !named && more > 0:
		fmt.Fprintf(&b, ". Waiting for it: %s", v.Waiting[0].Who)
		more--
	}
	if more > 0 {
		fmt.Fprintf(&b, ". %d more %s for it", more, verb(more, "waits", "wait"))
	}
	return Sentence(b.String())
}

func whoWaits(s *Storage) string {
	for _, p := range s.Pods {
		if p.Cause == s.Cause {
			return "Pod " + p.Who.Namespace + "/" + p.Who.Name
		}
	}
	return "A pod"
}

func whereIs(v *Volume) string {
	switch {
	case v.Holder != nil && v.Holder.Detached():
		return fmt.Sprintf("is to stay detached for %s (%s)", Names(v.Holder.For), v.State)
	case v.Holder != nil && len(v.Holder.For) > 0:
		return fmt.Sprintf("is held by %s for %s (%s)", v.Holder.Node, Names(v.Holder.For), v.State)
	case v.Holder != nil:
		return fmt.Sprintf("is held by %s, where no pod uses it (%s)", v.Holder.Node, v.State)
	case len(v.Nodes) == 0:
		return "is at no node, and free"
	case v.State == stateAsked:
		return "is at no node (Asked)"
	}
	var nodes, taken []string
	for _, p := range v.Places() {
		if p.Taken {
			taken = append(taken, p.Node)
		} else {
			nodes = append(nodes, fmt.Sprintf("%s (%s)", p.Node, p.State))
		}
	}
	from := ""
	if len(taken) > 0 {
		from = fmt.Sprintf("was taken from %s by force, and keeps its slot there until that kubelet reports again", strings.Join(taken, ", "))
	}
	switch {
	case len(nodes) == 0:
		return from
	case len(taken) > 0:
		return "is at " + strings.Join(nodes, ", ") + "; it " + from
	}
	return "is at " + strings.Join(nodes, ", ")
}
