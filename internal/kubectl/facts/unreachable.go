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

// moorageDetaches says whether it is moorage-controller that detaches volumes: in Cooperative
// mode, and where Moorage is not installed, kube-controller-manager does.
func (w *World) moorageDetaches() bool { return w.Served() && !w.Arbiter.Cooperative }

// keepsHolds says whether somebody keeps the VolumeHolds up to date: what they say of a wait
// is old otherwise. Where moorage-controller has no Lease at all, that is told by who reports
// volumes as attached.
func (w *World) keepsHolds() bool {
	switch is, _ := w.leads(v1alpha1.ControllerName); is {
	case lapsed:
		return false
	case never:
		return !w.Arbiter.Cooperative
	case leadUnknown, leads:
	}
	return true
}

// unreachable words the wait for a node that is not ready, and says when time ends it, where
// that is known. How much of a rule's time is left only the process that detaches has
// measured: of moorage-controller's own words the time since they were written is taken
// off. Where there are none, the whole time is the most that can be left.
func (w *World) unreachable(r arbiter.Reason) (message string, until time.Time) {
	words := w.wordsOfHold(r)
	node := w.nodes[r.Node]
	switch left, timed := arbiter.ForcedIn(words); {
	case node != nil && w.moorageDetaches() && w.kubeletLives(node):
		return whatIsThere(r) + fmt.Sprintf(". Its kubelet lives%s, and nothing is detached by force while it does", w.byLease(r.Node)), time.Time{}
	case w.detacherDown() != nil:
		return whatIsThere(r) + ". Nobody detaches it meanwhile", time.Time{}
	case r.Seconds < 0:
		return r.Message(), time.Time{} // by the policy as it is now, no time forces
	case timed:
		until = w.written(r.Volume).Add(left)
		r.Seconds = int64(told(until.Sub(w.Now)) / time.Second)
		if r.Seconds <= 0 {
			return whatIsThere(r) + ". The time after which it is detached by force is over", until
		}
		return r.Message(), until
	case words != "":
		return words, time.Time{}
	case r.Seconds > 0 && w.unseen("attachpolicies."+v1alpha1.GroupName) && w.Served():
		return whatIsThere(r) + ". Whether time forces the detach is not known: you may not list attachpolicies." + v1alpha1.GroupName, time.Time{}
	case r.Seconds > 0:
		whole := (time.Duration(r.Seconds) * time.Second).String()
		return strings.Replace(r.Message(), whole+";", whole+" at most;", 1), time.Time{}
	}
	return r.Message(), time.Time{}
}

// whatIsThere is the first sentence of a reason, without what ends the wait.
func whatIsThere(r arbiter.Reason) string {
	first, _, _ := strings.Cut(r.Message(), ". ")
	return first
}

// byLease says by what it is known that a node's kubelet lives; empty where that is its own word.
func (w *World) byLease(name ledger.NodeName) string {
	if w.nodeLeases[string(name)] == nil {
		return ""
	}
	return " (it renews its Lease)"
}

// tellStep is in what steps a time that is left is told: an answer that is watched is printed
// again whenever it changes.
const tellStep = 10 * time.Second

// told rounds a time that is left up.
func told(left time.Duration) time.Duration { return (left + tellStep - 1).Truncate(tellStep) }

// givesUp says whether the volumes of a node that is not ready are taken away from it as it
// is: it is out of service, and whoever detaches runs and takes that for true.
func (w *World) givesUp(n *corev1.Node) bool {
	return outOfService(n) && (!w.moorageDetaches() || !w.kubeletLives(n)) && w.detacherDown() == nil
}

// ControllersDown are the components that are down, and without which nothing is granted,
// attached or detached; none where they run, or nothing is known of them.
func (w *World) ControllersDown() []Cause {
	var list []Cause
	for _, c := range []*Cause{w.nobodyGrants(), w.detacherDown()} {
		if c != nil && !slices.ContainsFunc(list, func(o Cause) bool { return o.Message == c.Message }) {
			list = append(list, *c)
		}
	}
	return list
}

// detacherDown says that nobody detaches volumes, since the component that does is down;
// nil where it runs or nothing is known of it.
func (w *World) detacherDown() *Cause {
	return w.componentCause(&Reason{Code: string(arbiter.NodeUnreachable)}, "")
}
