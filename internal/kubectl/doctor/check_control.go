// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// lease finds the Lease of a component of Moorage's, or nil.
func (e *Evidence) lease(name string) *coordinationv1.Lease {
	return facts.Lease(e.Leases.Items, name, facts.Home(e.RoleBinds.Items))
}

// lapsed says for how long a Lease has been over; zero while somebody leads.
func (e *Evidence) lapsed(l *coordinationv1.Lease) time.Duration { return facts.Lapsed(l, e.now()) }

func checkController(e *Evidence) []Finding {
	stops := "granted, attached or detached"
	if l := e.lease(v1alpha1.ControllerName); l != nil && modeOf(l) == cooperativeMode {
		stops = "granted" // kube-controller-manager attaches and detaches
	}
	return e.checkLeader(v1alpha1.ControllerName, "Nothing is "+stops+" meanwhile; running pods are untouched.")
}

// checkExtender looks at the extender, where it is installed: its Service says so.
func checkExtender(e *Evidence) []Finding {
	served := func(s discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelServiceName] == v1alpha1.ExtenderName
	}
	at := slices.IndexFunc(e.Slices.Items, served)
	if at < 0 {
		return nil
	}
	slice := e.Slices.Items[at]
	evidence := "EndpointSlice " + slice.Namespace + "/" + slice.Name
	if len(slice.Endpoints) == 0 {
		return []Finding{found(Error, evidence+" has no endpoint", "Its leader writes it: see what the scheduler's check says, and its logs.",
			"the schedulers that ask the extender are led nowhere. Their pods wait.")}
	}
	return []Finding{{Severity: OK, Message: "the schedulers that ask the extender are led to the leader", Evidence: evidence}}
}

func (e *Evidence) checkLeader(name, consequence string) []Finding {
	if e.Leases.Err != nil {
		return unchecked("leases.coordination.k8s.io", e.Leases.Err)
	}
	l := e.lease(name)
	logs := "kubectl get pods -A -l app.kubernetes.io/part-of=moorage, and the logs of " + name + "."
	if l == nil && e.RoleBinds.Err != nil {
		return unchecked("clusterrolebindings.rbac.authorization.k8s.io", e.RoleBinds.Err) // its namespace is not known
	}
	if l == nil {
		return []Finding{found(Error, "there is no Lease "+name, logs, "%s has never led in this cluster. %s", name, consequence)}
	}
	who := ""
	if l.Spec.HolderIdentity != nil {
		who = *l.Spec.HolderIdentity
	}
	evidence := fmt.Sprintf("Lease %s/%s, held by %q, renewed %s", l.Namespace, l.Name, who, renewed(l))
	if late := e.lapsed(l); late > 0 || who == "" {
		return []Finding{found(Error, evidence, logs, "nobody leads %s: its Lease ended %s ago. %s", name, late.Round(time.Second), consequence)}
	}
	return []Finding{{Severity: OK, Message: name + " leads", Evidence: evidence}}
}

func renewed(l *coordinationv1.Lease) string {
	if l.Spec.RenewTime == nil {
		return "never"
	}
	return l.Spec.RenewTime.UTC().Format(time.RFC3339)
}

// guardPolicy keeps everybody but the controller from writing volumesAttached
// in Standalone mode.
const guardPolicy = "moorage-volumes-attached"

// checkAttachDetach says who attaches and detaches: Moorage alone (Standalone),
// or the attach/detach controller beside it (Cooperative). Both at once, each
// by itself, is what must not be.
func checkAttachDetach(e *Evidence) []Finding {
	if e.Policies.Err != nil {
		return unchecked("validatingadmissionpolicies.admissionregistration.k8s.io", e.Policies.Err)
	}
	standalone := e.guarded()
	reporter := e.World.Reporter()
	other := strings.HasPrefix(reporter.Manager, "kube-controller-manager")
	evidence := "nobody has written volumesAttached yet"
	if reporter.Manager != "" {
		evidence = fmt.Sprintf("volumesAttached of node %s was written by %s", reporter.Node, reporter.Manager)
	}
	stop := "Run kube-controller-manager with --controllers=*,-persistentvolume-attach-detach-controller, or install Moorage with mode=Cooperative."
	var list []Finding
	switch {
	case standalone && other:
		list = append(list, found(Warning, evidence, stop, "Moorage is in Standalone mode, and the attach/detach controller wrote volumesAttached last: it ran before, or still runs"))
	case standalone:
		list = append(list, Finding{Severity: OK, Message: "Standalone: Moorage alone attaches and detaches", Evidence: evidence})
	case other:
		list = append(list, Finding{Severity: Info, Message: "Cooperative: the attach/detach controller reports volumesAttached, Moorage orders attachments and guards slots among tickets", Evidence: evidence})
	case reporter.Manager == v1alpha1.ControllerName:
		list = append(list, found(Warning, evidence+"; the ValidatingAdmissionPolicy "+guardPolicy+" is missing or not bound", "Install with policies.enabled=true.",
			"Standalone without its guard: an attach/detach controller that comes back by mistake would fight with Moorage"))
	case reporter.Manager != "":
		list = append(list, found(Info, evidence, "", "Cooperative: %s reports volumesAttached, Moorage orders attachments and guards slots among tickets", reporter.Manager))
	default:
		list = append(list, found(Info, evidence, "", "who attaches and detaches is not known before the first attach"))
	}
	return append(list, e.stillRunning(standalone, stop)...)
}

// stillRunning looks at kube-controller-manager's own arguments, where its pods
// can be seen.
func (e *Evidence) stillRunning(standalone bool, fix string) []Finding {
	if !standalone {
		return nil
	}
	var list []Finding
	for _, p := range e.World.Pods {
		if p.Namespace != "kube-system" || p.Labels["component"] != "kube-controller-manager" || len(p.Spec.Containers) == 0 {
			continue
		}
		args := strings.Join(slices.Concat(p.Spec.Containers[0].Command, p.Spec.Containers[0].Args), " ")
		if !strings.Contains(args, "-persistentvolume-attach-detach-controller") {
			list = append(list, found(Error, "pod "+p.Namespace+"/"+p.Name+": "+args, fix, "the attach/detach controller runs beside Moorage's Standalone mode"))
		}
	}
	return list
}
