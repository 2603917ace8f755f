// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// DefaultHome is the namespace in which Moorage is taken to be installed where nothing
// says another.
const DefaultHome = "moorage-system"

// Home is the namespace in which Moorage is installed: that of the controller's account in
// the ClusterRoleBinding of its name, which no tenant can write. A label or a name that
// anybody can give to an object of theirs makes it Moorage's only in there.
func Home(bindings []rbacv1.ClusterRoleBinding) string {
	for _, b := range bindings {
		if b.Name != v1alpha1.ControllerName {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "" {
				return s.Namespace
			}
		}
	}
	return DefaultHome
}

// Own says whether an object is a part of Moorage: it has the label, and is in Moorage's
// namespace.
func Own(o metav1.Object, home string) bool {
	return o.GetNamespace() == home && o.GetLabels()[v1alpha1.LabelPartOf] == v1alpha1.PartOf
}

// kubeControllerManager is the field manager of the attach/detach controller:
// kube-controller-manager's user agent begins so.
const kubeControllerManager = "kube-controller-manager"

// ofControllerManager says whether an object is a pod of kube-controller-manager.
func ofControllerManager(o metav1.Object) bool {
	return o.GetNamespace() == metav1.NamespaceSystem && o.GetLabels()["component"] == kubeControllerManager
}

// FlagsMatter says whether it is a pod of a component by whose flags it is decided what
// is said: Moorage's own, and kube-controller-manager.
func FlagsMatter(o metav1.Object, home string) bool { return Own(o, home) || ofControllerManager(o) }

// forceOff says whether the controller that detaches runs with the flag by which no
// time forces a detach: in Cooperative mode kube-controller-manager, where its pods can
// be seen, and Moorage otherwise. Pods that have ended, or are being deleted, don't count.
func (w *World) forceOff() bool {
	for _, p := range w.Pods {
		detaches := Own(p, w.home())
		if w.Arbiter.Cooperative {
			detaches = ofControllerManager(p)
		}
		if !detaches || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range p.Spec.Containers {
			if forbidsForce(slices.Concat(c.Command, c.Args)) {
				return true
			}
		}
	}
	return false
}

// forbidsForce reads the flag as the program does: the last one counts, in any spelling
// that Go takes for a bool.
func forbidsForce(args []string) bool {
	off := false
	for _, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != "disable-force-detach-on-timeout" || name == arg {
			continue
		}
		if !given {
			value = "true"
		}
		if is, err := strconv.ParseBool(value); err == nil {
			off = is
		}
	}
	return off
}

func (w *World) home() string {
	if w.Home == "" {
		return DefaultHome
	}
	return w.Home
}

// kubeScheduler is the name of the Lease of the default scheduler.
const kubeScheduler = "kube-scheduler"

// Lease finds the Lease by which a component leads, or nil: Moorage's own in its
// namespace, kube-scheduler's in kube-system. Where others are is not known, such as a
// driver's attacher: of theirs the one counts that was renewed last.
func Lease(leases []coordinationv1.Lease, name, home string) *coordinationv1.Lease {
	namespace := ""
	switch name {
	case v1alpha1.ControllerName, v1alpha1.SchedulerName, v1alpha1.ExtenderName:
		namespace = home
	case kubeScheduler:
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

// bearableLate is how far the clock of a Lease's holder may be behind the API server's
// before its Lease is taken to be over: it is read once, and compared with another clock.
const bearableLate = 30 * time.Second

// Lapsed says for how long a Lease has been over; zero while somebody leads.
func Lapsed(l *coordinationv1.Lease, now time.Time) time.Duration {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return 1
	}
	late := now.Sub(l.Spec.RenewTime.Time) - time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
	if late <= bearableLate {
		return 0
	}
	return late
}
