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

// Leases show live components and kubelets.
type Leases struct {
	// Components are leader Leases. Seen: they could be read, so a component without a Lease has never led.
	Components []coordinationv1.Lease
	Seen       bool
	// Nodes are the kubelets' Leases, only for nodes that are not ready.
	Nodes []coordinationv1.Lease
	// At is the read's time by the API server's clock; zero: unknown. An expired Lease may have been
	// renewed since.
	At time.Time
}

// asRead is At, or now if unknown.
func (l Leases) asRead(now time.Time) time.Time {
	if l.At.IsZero() {
		return now
	}
	return l.At
}

// Ready says whether a node's own status is ready.
func Ready(n *corev1.Node) bool { return hasReady(n, corev1.ConditionTrue) }

func hasReady(n *corev1.Node, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady && c.Status == status })
}

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

// kubeletLives says whether a not ready node's kubelet still ends pods and unmounts: by its Lease or,
// without access, its own Ready=False. A silent kubelet's Ready is Unknown.
func (w *World) kubeletLives(n *corev1.Node) bool {
	if l := w.nodeLeases[n.Name]; l != nil {
		return renews(l, w.Leases.asRead(w.Now))
	}
	return hasReady(n, corev1.ConditionFalse)
}

const kubeScheduler = "kube-scheduler"

// Lease finds a component's leader Lease, or nil: Moorage's in its namespace, kube-scheduler's in
// kube-system, and for others the latest renewed in any namespace.
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

// How late a renewal may be, beyond the Lease's time, by the API server's clock.
const (
	// lateByOneClock: the API server noted the renewal, to the second. API servers may differ a little.
	lateByOneClock = 5 * time.Second
	// lateByTwoClocks: only the holder noted it, whose clock may be behind.
	lateByTwoClocks = 30 * time.Second
)

// Lapsed says for how long a component's Lease has been over; zero: not over.
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

// fieldWrite is a write by managedFields; its time is the API server's, to the second.
type fieldWrite struct {
	manager string
	at      time.Time
}

// lastWrite finds a field's latest write by JSON name. False: none is noted.
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
