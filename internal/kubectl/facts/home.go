// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strconv"
	"strings"

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
