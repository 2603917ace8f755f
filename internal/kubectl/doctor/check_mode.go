// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The modes, as users name them. The label of the controller's Lease has them in lower case.
const (
	standaloneMode  = "Standalone"
	cooperativeMode = "Cooperative"
)

// modes is what decides who attaches: the mode that is installed, as the controller's pods
// say (empty if none is seen), the mode of the controller that led last, whether it leads
// now, and whether the policy that keeps others from writing volumesAttached is there and bound.
type modes struct {
	installed, led       string
	leads, policy, bound bool
	// release is the namespace of the release that the binding belongs to, and here
	// that of the controller's Lease; empty if not known.
	release, here string
}

// checkMode says which mode the cluster is in, whether the binding of the policy on
// volumesAttached fits it, and what comes next.
func checkMode(e *Evidence) []Finding {
	for what, err := range map[string]error{
		"validatingadmissionpolicies.admissionregistration.k8s.io":       e.Policies.Err,
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": e.Bindings.Err,
		"leases.coordination.k8s.io":                                     e.Leases.Err,
	} {
		if err != nil {
			return unchecked(what, err)
		}
	}
	m := modes{installed: e.installedMode(), policy: e.policy(guardPolicy) != nil, bound: e.guarded()}
	if b := e.binding(guardPolicy); b != nil {
		m.release = b.Annotations[v1alpha1.AnnotationRelease]
	}
	if l := e.lease(v1alpha1.ControllerName); l != nil {
		m.led, m.here = modeOf(l), l.Namespace
		m.leads = e.lapsed(l) == 0 && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	}
	f := m.finding()
	f.Evidence = m.evidence()
	return []Finding{f}
}

// modeOf is the mode in which a controller's Lease was last held; empty if it does not say so.
func modeOf(l *coordinationv1.Lease) string {
	label := l.Labels[v1alpha1.LabelMode]
	for _, mode := range []string{standaloneMode, cooperativeMode} {
		if strings.EqualFold(label, mode) {
			return mode
		}
	}
	return label
}

// installedMode is the mode that the controller's pods are started with; empty if none is seen.
func (e *Evidence) installedMode() string {
	for _, p := range e.World.Pods {
		if p.Labels[v1alpha1.LabelPartOf] != v1alpha1.PartOf || p.Labels["app.kubernetes.io/component"] != "controller" {
			continue
		}
		for _, c := range p.Spec.Containers {
			for _, arg := range c.Args {
				if mode, is := strings.CutPrefix(arg, "--mode="); is {
					return mode
				}
			}
		}
	}
	return ""
}

// guarded says whether only Moorage's controller may write volumesAttached: a binding
// without its policy keeps nobody out.
func (e *Evidence) guarded() bool { return e.policy(guardPolicy) != nil && e.denies(guardPolicy) }

// binding finds the binding of a policy, or nil.
func (e *Evidence) binding(policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
	for i := range e.Bindings.Items {
		if e.Bindings.Items[i].Spec.PolicyName == policy {
			return &e.Bindings.Items[i]
		}
	}
	return nil
}

func (m modes) evidence() string {
	installed, bound, led := "", "not bound", "no controller has led"
	if m.installed != "" {
		installed = "installed is mode " + m.installed + "; "
	}
	if m.bound {
		bound = "bound"
	}
	if m.led != "" {
		led = fmt.Sprintf("the controller of mode %s led last, and leads now: %t", m.led, m.leads)
	}
	return fmt.Sprintf("%spolicy %s is %s; %s", installed, guardPolicy, bound, led)
}

func (m modes) finding() Finding {
	const look = "See why moorage-controller does not lead: kubectl get pods -A -l app.kubernetes.io/component=controller, and its logs. "
	standalone := m.leads && m.led == standaloneMode
	switch {
	case m.bound && m.release != "" && m.here != "" && m.release != m.here:
		return found(Error, "", "Uninstall one of the two releases, and delete the binding if it is the other's.",
			"the binding of %s belongs to the release in namespace %s, and the controller is in %s, which does not lead for that reason", guardPolicy, m.release, m.here)
	case m.bound && !standalone:
		return found(Error, "", look+"Or switch kube-controller-manager's attach/detach controller on, and delete the ValidatingAdmissionPolicyBinding "+guardPolicy+".",
			"Standalone, and no controller leads: nothing is attached or detached, since the binding keeps everybody else out. Pods that run are untouched")
	case m.bound && m.installed == cooperativeMode:
		return found(Warning, "", "To stay in Standalone mode, install with mode=Standalone. To end it, switch kube-controller-manager's attach/detach controller on, then hand over: kubectl annotate validatingadmissionpolicybinding "+guardPolicy+" "+v1alpha1.AnnotationHandOver+"=true",
			"Standalone mode goes on, and Cooperative mode is installed: nobody has handed over")
	case m.bound:
		return ok("Standalone: Moorage attaches and detaches, and nobody else can write volumesAttached. Next: switch kube-controller-manager's attach/detach controller off, if it is on")
	case standalone && !m.policy:
		return found(Warning, "", "Set policies.enabled=true.", "a controller in Standalone mode leads, and its policy is not installed: nothing guards volumesAttached")
	case standalone:
		return found(Warning, "", "The controller creates the binding within seconds. If it does not, see its logs.",
			"Standalone, and the policy is not bound yet: an attach/detach controller that is on can still write volumesAttached")
	case m.installed == standaloneMode:
		return found(Warning, "", look+"Leave kube-controller-manager's attach/detach controller on until it leads, or go back with mode=Cooperative.",
			"Standalone is installed, and its controller has not led yet: nothing has changed, and kube-controller-manager's attach/detach controller goes on")
	}
	return ok("Cooperative: kube-controller-manager's attach/detach controller stays on. Next: opt a namespace in (moorage.dev/enforce=true), or change to Standalone by name (docs/operate/modes.md)")
}
