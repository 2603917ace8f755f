// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Leases show which components and kubelets are alive.
type Leases struct {
	// Components are the leader Leases of components. Seen says that they could be read: then a component
	// without a Lease has never led.
	Components []coordinationv1.Lease
	Seen       bool
	// Nodes are the kubelets' Leases, read only where a node is not ready.
	Nodes []coordinationv1.Lease
	// At is when they were read, by the API server's clock; zero: unknown. They show the holders at that
	// moment: a Lease that has expired by now may have been renewed since.
	At time.Time
}

// asRead is the time that Leases are judged at: when they were read, or now where that is not known.
func (l Leases) asRead(now time.Time) time.Time {
	if l.At.IsZero() {
		return now
	}
	return l.At
}

// Ready says whether a node is ready by its own status.
func Ready(n *corev1.Node) bool { return hasReady(n, corev1.ConditionTrue) }

func hasReady(n *corev1.Node, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady && c.Status == status })
}

// renewal is when a Lease was last renewed: by the API server's own clock, to the second, where it has noted
// that.
func renewal(l *coordinationv1.Lease) (at time.Time, noted bool) {
	if written, _ := lastWrite(l, "renewTime"); !written.at.IsZero() {
		return written.at, true
	}
	return renewedAt(l), false
}

const kubeletLease = 40 * time.Second

func renews(l *coordinationv1.Lease, now time.Time) bool {
	valid := kubeletLease
	if l.Spec.LeaseDurationSeconds != nil {
		valid = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	at, _ := renewal(l)
	return now.Sub(at) <= valid
}

// kubeletLives says whether the kubelet of a node that is not ready still runs, ends pods and unmounts. It
// renews its Lease; where that can't be seen, its own report Ready=False counts. A silent kubelet's Ready
// is Unknown.
func (w *World) kubeletLives(n *corev1.Node) bool {
	if l := w.nodeLeases[n.Name]; l != nil {
		return renews(l, w.Leases.asRead(w.Now))
	}
	return hasReady(n, corev1.ConditionFalse)
}

const kubeScheduler = "kube-scheduler"

// Lease finds a component's leader Lease, or nil: Moorage's own in its namespace, kube-scheduler's in
// kube-system. Other components, such as a driver's attacher, may be in any namespace: the most recently
// renewed Lease counts.
func Lease(leases []coordinationv1.Lease, name, home string) *coordinationv1.Lease {
	namespace := ""
	switch name {
	case v1alpha1.ControllerName, v1alpha1.SchedulerName:
		namespace = home
	case kubeScheduler, kubeControllerManager:
		namespace = metav1.NamespaceSystem
	}
	var found *coordinationv1.Lease
	for i := range leases {
		l := &leases[i]
		if l.Name != name || l.Namespace == corev1.NamespaceNodeLease || namespace != "" && l.Namespace != namespace {
			continue
		}
		if found == nil || renewedAt(l).After(renewedAt(found)) {
			found = l
		}
	}
	return found
}

func renewedAt(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// How late a renewal of a component's Lease may be, beyond the Lease's time, before the Lease counts as
// over, compared with the API server's clock.
const (
	// lateByOneClock counts where the API server has noted the renewal, to the second; API servers of a
	// cluster may differ a little.
	lateByOneClock = 5 * time.Second
	// lateByTwoClocks counts where only the holder has noted the renewal: its clock may be behind.
	lateByTwoClocks = 30 * time.Second
)

// Lapsed says for how long a component's Lease has been over; zero while a component leads.
func Lapsed(l *coordinationv1.Lease, now time.Time) time.Duration {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return 1
	}
	bearable := lateByTwoClocks
	renewed, noted := renewal(l)
	if noted {
		bearable = lateByOneClock
	}
	late := now.Sub(renewed) - time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
	if late <= bearable {
		return 0
	}
	return late
}

func schedulerLease(p *corev1.Pod) string {
	if name := p.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		return name
	}
	return kubeScheduler
}

// fieldWrite is a write of a field of an object, by the API server's managedFields: its manager, and its
// time by the API server's clock, to the second; zero where there is none.
type fieldWrite struct {
	manager string
	at      time.Time
}

// lastWrite finds the last write of a field by its JSON name, such as renewTime. It takes the latest of the
// field's managers. False where the API server has noted none.
func lastWrite(object metav1.Object, field string) (last fieldWrite, ok bool) {
	fields := object.GetManagedFields()
	for i := range fields {
		f := &fields[i]
		if f.FieldsV1 == nil || !strings.Contains(f.FieldsV1.GetRawString(), `"f:`+field+`"`) {
			continue
		}
		at := time.Time{}
		if f.Time != nil {
			at = f.Time.Time
		}
		if !ok || at.After(last.at) {
			last, ok = fieldWrite{f.Manager, at}, true
		}
	}
	return last, ok
}
