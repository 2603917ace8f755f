// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// NamedObject is an object that a pod names, and without which its kubelet does not start it.
type NamedObject struct {
	// Kind is configmap, secret or serviceaccount, as kubectl get names it.
	Kind, Namespace, Name string
}

// String is the object as kubectl get takes it.
func (o NamedObject) String() string { return o.Kind + "/" + o.Name }

// Presence is what is known of a NamedObject; the zero value is that nobody has looked.
type Presence struct {
	Exists, Missing bool
	// Unseen is why nobody could look; empty: somebody has.
	Unseen string
}

// StartsSoon says whether a pod's kubelet is about to mount what the pod names, as far as its
// conditions show: it is bound, has not started, and is not being deleted. It is also true of a pod if
// its kubelet could not make a container, because an object was missing.
func (w *World) StartsSoon(p *corev1.Pod) bool {
	if slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == configError
	}) {
		return p.DeletionTimestamp == nil
	}
	return p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil &&
		startedAt(p).IsZero() && w.imagesBegun(p).IsZero()
}

// NamedBy lists the objects that a pod names and can't start without, but for the ConfigMap that
// every namespace has.
func NamedBy(p *corev1.Pod) []NamedObject {
	var list []NamedObject
	add := func(kind, name string, optional *bool) {
		o := NamedObject{kind, p.Namespace, name}
		if name != "" && name != "kube-root-ca.crt" && (optional == nil || !*optional) && !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			add("configmap", v.ConfigMap.Name, v.ConfigMap.Optional)
		}
		if v.Secret != nil {
			add("secret", v.Secret.SecretName, v.Secret.Optional)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				add("configmap", source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				add("secret", source.Secret.Name, source.Secret.Optional)
			}
			if source.ServiceAccountToken != nil {
				add("serviceaccount", p.Spec.ServiceAccountName, nil)
			}
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		namedByContainer(&c, add)
	}
	return list
}

// namedByContainer adds what a container takes its environment from.
func namedByContainer(c *corev1.Container, add func(kind, name string, optional *bool)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add("configmap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
		if from.SecretRef != nil {
			add("secret", from.SecretRef.Name, from.SecretRef.Optional)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			add("configmap", ref.Name, ref.Optional)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			add("secret", ref.Name, ref.Optional)
		}
	}
}

// missingCause names the first object that a pod can't start without and that does not exist; nil
// where none is known to be missing.
func (w *World) missingCause(p *corev1.Pod) *Cause {
	for _, o := range NamedBy(p) {
		if w.Evidence.Named[o].Missing {
			return &Cause{Of: OfMount, Code: missingCode(o.Kind), Since: waitsSince(p),
				Message: fmt.Sprintf("it needs the %s %s, which does not exist in namespace %s", o.Kind, o.Name, o.Namespace),
				Do:      missingDo(o.Namespace, o.Kind)}
		}
	}
	return nil
}

func missingCode(kind string) string {
	switch kind {
	case "secret":
		return "SecretMissing"
	case "serviceaccount":
		return "ServiceAccountMissing"
	}
	return "ConfigMapMissing"
}

// missingDo is what to do where an object of a kind is missing.
func missingDo(namespace, kind string) string {
	return fmt.Sprintf("Create it, or correct its name in the pod: kubectl get %s -n %s", kind, namespace)
}

// lookAt says how to find out which of the objects that a pod names exist: those at which nobody
// could look. Empty where all exist.
func (w *World) lookAt(p *corev1.Pod) string {
	var open []string
	why := ""
	for _, o := range NamedBy(p) {
		if at := w.Evidence.Named[o]; !at.Exists {
			open = append(open, o.String())
			why = at.Unseen
		}
	}
	if len(open) == 0 {
		return ""
	}
	text := fmt.Sprintf("See whether all exists that it names: kubectl get -n %s %s", p.Namespace, strings.Join(open, " "))
	if why != "" {
		text += " (" + why + ")"
	}
	return text
}
