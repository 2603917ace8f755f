// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Storage is a claim or a PersistentVolume: its volume, and everybody who
// wants it.
type Storage struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	// Answer is the whole in a sentence.
	Answer string `json:"answer"`
	// Reasons are what is wrong with it at every node.
	Reasons []Reason `json:"reasons,omitempty"`
	// Volume is nil while there is none, or it never needs an attachment.
	Volume *Volume `json:"volume,omitempty"`
	// Pods are those that refer to it, with what each of them waits for.
	Pods   []PodNeed `json:"pods,omitempty"`
	Unseen []Unseen  `json:"unseen,omitempty"`
}

// PodNeed is a pod that refers to a claim.
type PodNeed struct {
	Who  Requester `json:"who"`
	Node string    `json:"node,omitempty"`
	// State is as of a Pod.
	State   string   `json:"state"`
	Reasons []Reason `json:"reasons,omitempty"`
	Answer  string   `json:"answer"`
}

// ExplainClaim says where a claim's volume is and who waits for it.
func (w *World) ExplainClaim(c *corev1.PersistentVolumeClaim) Storage {
	out := Storage{Namespace: c.Namespace, Name: c.Name, Phase: string(c.Status.Phase), Unseen: w.Unseen}
	key := ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
	w.explainLink(&out, key)
	w.addPods(&out, key)
	out.Answer = answerStorage(&out)
	return out
}

// ExplainPersistentVolume is ExplainClaim for a PersistentVolume.
func (w *World) ExplainPersistentVolume(pv *corev1.PersistentVolume) Storage {
	out := Storage{Name: pv.Name, Phase: string(pv.Status.Phase), Unseen: w.Unseen}
	if fact := w.Snapshot.PersistentVolume(pv.Name); fact != nil {
		if !fact.Volume.IsZero() {
			v := w.Volume(fact.Volume)
			out.Volume = &v
		}
		w.addPods(&out, fact.Claim)
	}
	out.Answer = answerStorage(&out)
	return out
}

// explainLink follows a claim as a ticket for it would.
func (w *World) explainLink(out *Storage, key ledger.ClaimKey) {
	probe := ledger.Ticket{ID: ledger.TicketID{Namespace: key.Namespace}, Volumes: []ledger.TicketVolume{{Claim: key.Name}}}
	request := arbiter.TicketRequest(w.Snapshot, &probe)
	out.Reasons = w.reasons(w.Arbiter.Admissible(w.Snapshot, request), nil)
	for _, need := range request.Needs {
		if need.Volume.IsReal() && !need.Volume.IsZero() {
			v := w.Volume(need.Volume)
			out.Volume = &v
		}
	}
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
			State: explained.State, Answer: explained.Answer,
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

func answerStorage(s *Storage) string {
	if len(s.Reasons) > 0 {
		return "Nobody can have it: " + messages(s.Reasons) + "."
	}
	v := s.Volume
	switch {
	case v == nil && s.Phase == string(corev1.ClaimPending):
		return "It is not bound yet: a volume is made for it when its first pod is placed, or when the provisioner gets there."
	case v == nil:
		return "Its storage needs no attachment: any node may mount it."
	}
	var b strings.Builder
	b.WriteString(whereIs(v))
	if v.Reason != nil {
		fmt.Fprintf(&b, " It is to leave there and can't: %s.", strings.TrimSuffix(v.Reason.Message, "."))
	}
	if v.Next != nil {
		fmt.Fprintf(&b, " Next is %s at %s.", v.Next.Who, v.Next.Node)
	}
	if n := len(v.Waiting); n > 0 {
		fmt.Fprintf(&b, " %s.", strings.ToUpper(waitVerb(n)[:1])+waitVerb(n)[1:])
	}
	return b.String()
}

func waitVerb(n int) string {
	if n == 1 {
		return "1 more waits for it"
	}
	return fmt.Sprintf("%d more wait for it", n)
}

func whereIs(v *Volume) string {
	switch {
	case v.Holder != nil && len(v.Holder.For) > 0:
		return fmt.Sprintf("%s has it, for %s (%s).", v.Holder.Node, names(v.Holder.For), v.State)
	case v.Holder != nil:
		return fmt.Sprintf("%s has it, and nobody there wants it any more (%s).", v.Holder.Node, v.State)
	case len(v.Places) == 0:
		return "It is at no node, and free."
	}
	var nodes []string
	for _, p := range v.Places {
		nodes = append(nodes, fmt.Sprintf("%s (%s)", p.Node, p.State))
	}
	return "It is at " + strings.Join(nodes, ", ") + "."
}

func names(list []Requester) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}
