// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Owner is a workload as it is read: whose pods are explained together.
type Owner struct {
	Kind, Namespace, Name string
	// UIDs are its own, and those of what makes its pods for it, such as the
	// ReplicaSets of a Deployment.
	UIDs []types.UID
	// Wants is how many pods it is to have; negative when that is not known.
	Wants int32
	// Paused: of a changed template no pods are made (spec.paused of a Deployment).
	Paused bool
	// Behind: not all of its pods are of its newest template.
	Behind bool
}

// Workload is what keeps the pods of a workload from running.
type Workload struct {
	Kind      string `json:"workloadKind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Answer is the whole in a sentence that begins after its name.
	Answer string `json:"answer"`
	Wants  int32  `json:"wants"`
	Pods   int    `json:"pods"`
	Waits  int    `json:"waits"`
	// Runs is how many of the pods have started, and nothing ails them.
	Runs int `json:"runs"`
	// Cause is the most frequent one, or why pods are not even made.
	Cause *Cause `json:"cause,omitempty"`
	// Groups are pods that wait for the same, the largest first.
	Groups []PodGroup `json:"groups,omitempty"`
	Unseen []Unseen   `json:"unseen,omitempty"`
}

// PodGroup is pods of a workload that wait for the same reason.
type PodGroup struct {
	Pods  []string `json:"pods"`
	Cause Cause    `json:"cause"`
}

// PodsOf lists a workload's pods by name.
func (w *World) PodsOf(o Owner) []*corev1.Pod {
	var list []*corev1.Pod
	for _, p := range w.Pods {
		if owner := metav1.GetControllerOf(p); p.Namespace == o.Namespace && owner != nil && slices.Contains(o.UIDs, owner.UID) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ExplainWorkload says what keeps a workload's pods from running.
func (w *World) ExplainWorkload(o Owner) Workload {
	out := Workload{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Wants: o.Wants, Unseen: w.unseenWith()}
	groups := map[string]*PodGroup{}
	pods := w.PodsOf(o)
	lives := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return w.PodFact(p).Phase != ledger.PodFinished })
	for _, p := range pods {
		x := w.ExplainPod(p)
		if x.State == PodFinished && (x.Cause == nil || o.Kind != "Job" || lives) {
			continue // what is left of a pod that failed counts for nothing: another one is made
		}
		out.Pods++
		if x.Cause == nil && x.Phase == string(corev1.PodRunning) {
			out.Runs++
		}
		if x.Cause == nil {
			continue
		}
		out.Waits++
		key := x.Cause.Code
		if x.Cause.Of == OfNode {
			key += " " + x.Node // it is about that node
		}
		if groups[key] == nil {
			groups[key] = &PodGroup{Cause: *x.Cause}
		}
		groups[key].Pods = append(groups[key].Pods, p.Name)
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b PodGroup) int {
		return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), cmp.Compare(a.Cause.Code, b.Cause.Code), cmp.Compare(a.Pods[0], b.Pods[0]))
	})
	if len(out.Groups) > 0 {
		out.Cause = &out.Groups[0].Cause
	}
	if missing := int(o.Wants) - out.Pods; missing > 0 {
		if c := w.notMade(o); c != nil {
			out.Cause = c
		}
	}
	out.Answer = answerWorkload(&out)
	if out.Cause == nil && o.Paused && o.Behind && out.Pods > 0 {
		out.Cause = pausedCause(o)
		out.Answer += " But " + sentence(out.Cause.Message)
	}
	return out
}

// pausedCause says that a Deployment makes no pods of its newest template.
func pausedCause(o Owner) *Cause {
	return &Cause{Of: OfWorkload, Code: "Paused", Message: "it is paused: no pods are made of its new template",
		Do: fmt.Sprintf("If that is over: kubectl rollout resume -n %s %s/%s", o.Namespace, strings.ToLower(o.Kind), o.Name)}
}

// notMade says why a workload's pods are not even created.
func (w *World) notMade(o Owner) *Cause {
	var made time.Time // the newest pod of all UIDs
	for _, uid := range o.UIDs {
		if e := w.Evidence.lastEvent(uid, "SuccessfulCreate"); e != nil && eventTime(e).After(made) {
			made = eventTime(e)
		}
	}
	for _, uid := range o.UIDs {
		e := w.Evidence.lastEvent(uid, "FailedCreate")
		if e == nil || w.Now.Sub(eventTime(e)) > time.Hour || made.After(eventTime(e)) {
			continue // what it says is over
		}
		c := &Cause{Of: OfWorkload, Code: "FailedCreate", Since: firstTime(e), Message: shortened(e.Message, "")}
		if _, denied, ok := strings.Cut(e.Message, "denied request: "); ok {
			// A policy's own words end with what to do: they are not cut where others are.
			c.Message = "pods can't be created: " + shortenedTo(denied, "", wordsOfPolicy)
		}
		hook := "failed calling webhook"
		switch {
		case strings.Contains(e.Message, hook):
			_, after, _ := strings.Cut(e.Message, hook+" ")
			name, _, _ := strings.Cut(strings.TrimLeft(after, `"`), `"`)
			c.Code, c.Of = "WebhookDown", OfComponent
			c.Message = fmt.Sprintf("pods can't be created, because the webhook %s does not answer", name)
			c.Do = "See why the pods behind the webhook don't run, or what keeps the API server from them: kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"
		case strings.Contains(e.Message, "exceeded quota"):
			c.Code = "QuotaExceeded"
			c.Message = "pods can't be created: " + shortened(e.Message[strings.Index(e.Message, "exceeded quota"):], "")
			c.Do = "Raise the quota, or lower what the pods ask for: kubectl describe resourcequota -n " + o.Namespace
		case strings.Contains(e.Message, "violates PodSecurity"):
			c.Code, c.Do = "PodSecurity", "Change the pod template's securityContext, or the namespace's pod-security.kubernetes.io labels"
		default:
			c.Do = fmt.Sprintf("Correct what the message names: kubectl describe %s -n %s %s", strings.ToLower(o.Kind), o.Namespace, o.Name)
		}
		return c
	}
	if o.Paused {
		return pausedCause(o)
	}
	return nil
}

func answerWorkload(x *Workload) string {
	missing := max(0, int(x.Wants)-x.Pods)
	all, finally := Count(max(x.Pods, int(x.Wants)), "pod"), ""
	if x.Wants > 0 && x.Pods > int(x.Wants) { // as in a rollout
		finally = fmt.Sprintf(" (it is to have %d in the end)", x.Wants)
	}
	notMade := x.Cause != nil && (len(x.Groups) == 0 || x.Cause != &x.Groups[0].Cause)
	switch {
	case missing == 0 && x.Pods == 0:
		return "no pods are wanted."
	case notMade:
		return fmt.Sprintf("%d of %s %s missing: %s", missing, all, areOrIs(missing), sentence(x.Cause.Message))
	case x.Waits == 0 && missing > 0:
		return fmt.Sprintf("%d of %s %s missing: the controller has not made more yet.", missing, all, areOrIs(missing))
	case x.Waits == 0 && x.Runs == x.Pods && x.Pods == 1:
		return "its pod runs."
	case x.Waits == 0 && x.Runs == x.Pods:
		return fmt.Sprintf("all its %s run%s.", all, finally)
	case x.Waits == 0 && x.Pods == 1:
		return "its pod is starting, and nothing is known to keep it from running."
	case x.Waits == 0:
		return fmt.Sprintf("%d of %s run%s; the others are starting, and nothing is known to keep them from running.", x.Runs, all, finally)
	}
	waits := fmt.Sprintf("%d of %s wait", x.Waits, all)
	if x.Waits == 1 {
		waits += "s"
	}
	waits += finally
	if missing > 0 {
		waits += fmt.Sprintf(", and %d %s not made yet", missing, areOrIs(missing))
	}
	if len(x.Groups) > 1 {
		waits += fmt.Sprintf(", for %d reasons. Why %s", len(x.Groups), whoWait(x.Groups[0].Pods))
	}
	return waits + ": " + sentence(x.Cause.Message)
}

// whoWait says which pods of a group wait: the one, or how many and the first.
func whoWait(pods []string) string {
	if len(pods) == 1 {
		return pods[0] + " waits"
	}
	return fmt.Sprintf("%d of them wait, such as %s", len(pods), pods[0])
}

func areOrIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
