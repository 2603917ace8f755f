// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/served"
)

func needed() map[string][]string {
	return map[string][]string{
		v1alpha1.SchemeGroupVersion.String(): {v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies},
		"storage.k8s.io/v1":                  {"volumeattachments", "csinodes", "csidrivers", "storageclasses"},
		"admissionregistration.k8s.io/v1":    {"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	}
}

func checkAPI(e *Evidence) []Finding {
	if e.VersionErr != nil {
		return unchecked("the API server's version", e.VersionErr)
	}
	var list []Finding
	v, err := version.ParseGeneric(e.Version)
	oldest, newest := version.MustParseGeneric(served.OldestRelease), version.MustParseGeneric(served.NewestRelease)
	if err != nil || v.LessThan(oldest) || v.Minor() > newest.Minor()+1 {
		list = append(list, found(Warning, "the API server is "+e.Version, "Compare it with docs/operate/quickstart.md.",
			"Moorage was tried with Kubernetes %s to %s", served.OldestRelease, served.NewestRelease))
	}
	if e.ServedErr != nil {
		return append(list, unchecked("what the API server serves", e.ServedErr)...)
	}
	for _, group := range sortedKeys(needed()) {
		if missing := served.Without(needed()[group], e.Served[group]); len(missing) > 0 {
			fix := "See that the API server's --runtime-config does not switch it off."
			if strings.HasPrefix(group, v1alpha1.GroupName) {
				fix = "Install the CRDs: helm upgrade with crds.enabled=true, or `kubectl apply -f manifests/crds.yaml`"
			}
			list = append(list, found(Error, fmt.Sprintf("%s serves %v", group, e.Served[group]), fix, "%s does not serve %s", group, strings.Join(missing, ", ")))
		}
	}
	if !slices.ContainsFunc(list, func(f Finding) bool { return f.Severity.rank() > Info.rank() }) {
		list = append(list, ok("Kubernetes %s serves all that is needed", e.Version))
	}
	return list
}

func checkRights(e *Evidence) []Finding {
	var missing []string
	message := ""
	for _, u := range e.World.Unseen {
		if !u.Missing {
			missing, message = append(missing, u.Resource), u.Message
		}
	}
	if len(missing) > 0 {
		return []Finding{found(Unknown, message, "Grant get, list and watch on them: docs/kubectl.md has a ClusterRole.",
			"you may not list %s in all namespaces: what depends on them can't be checked", strings.Join(missing, ", "))}
	}
	return []Finding{ok("you may read all that the commands show")}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (e *Evidence) lease(name string) *coordinationv1.Lease {
	return facts.Lease(e.Leases.Items, name, facts.Home(e.RoleBinds.Items))
}

// lapsed is how long a Lease has been over; zero while a component leads.
func (e *Evidence) lapsed(l *coordinationv1.Lease) time.Duration { return facts.Lapsed(l, e.now()) }

func checkController(e *Evidence) []Finding {
	stops := "granted, attached or detached"
	if l := e.lease(v1alpha1.ControllerName); l != nil && modeOf(l) == cooperativeMode {
		stops = "granted" // kube-controller-manager attaches and detaches
	}
	return e.checkLeader(v1alpha1.ControllerName, "Nothing is "+stops+" meanwhile; running pods are untouched.")
}

func (e *Evidence) checkLeader(name, consequence string) []Finding {
	if e.Leases.Err != nil {
		return unchecked("leases.coordination.k8s.io", e.Leases.Err)
	}
	l := e.lease(name)
	logs := "`kubectl get deployments,pods -A -l app.kubernetes.io/part-of=moorage`. With 0 replicas, scale " + name + " up; else see its logs."
	if l == nil && e.RoleBinds.Err != nil {
		return unchecked("clusterrolebindings.rbac.authorization.k8s.io", e.RoleBinds.Err) // unknown namespace
	}
	if l == nil {
		return []Finding{found(Error, "there is no Lease "+name, logs, "%s has never led in this cluster. %s", name, consequence)}
	}
	who := ""
	if l.Spec.HolderIdentity != nil {
		who = *l.Spec.HolderIdentity
	}
	evidence := fmt.Sprintf("Lease %s/%s, held by %q, renewed %s", l.Namespace, l.Name, who, renewed(l))
	late := e.lapsed(l)
	if who == "" && l.Spec.RenewTime != nil { // given up by this renewal
		late = e.now().Sub(l.Spec.RenewTime.Time)
	}
	if late > 0 || who == "" {
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

// guardPolicy lets only the controller write volumesAttached in Standalone mode.
const guardPolicy = "moorage-volumes-attached"

// Modes for users. The controller's Lease label has lower case.
const (
	standaloneMode  = "Standalone"
	cooperativeMode = "Cooperative"
)

// modes decide which component attaches: the installed mode, by the controller's pods (empty: none seen);
// the last leader's mode; whether it leads now; whether the policy on volumesAttached is bound.
type modes struct {
	installed, led       string
	leads, policy, bound bool
	// release is the binding's release, here the controller's Lease: namespaces, empty if unknown.
	release, here string
}

// checkMode reports the mode, the binding's fit, and the next step.
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
	var list []Finding
	for _, p := range e.World.Pods {
		if m := strings.Join(argumentsOf(p), " "); e.guarded() && facts.OfControllerManager(p) && !strings.Contains(m, "-persistentvolume-attach-detach-controller") {
			list = append(list, found(Error, "pod "+p.Namespace+"/"+p.Name+": "+m, "Run kube-controller-manager with --controllers=*,-persistentvolume-attach-detach-controller, or install Moorage with mode=Cooperative.",
				"the attach/detach controller runs beside Moorage's Standalone mode"))
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
	f.Evidence = fmt.Sprintf("installed mode %q; mode of the last leader %q, which leads now: %t; policy %s is bound: %t", m.installed, m.led, m.leads, guardPolicy, m.bound)
	return append(list, f)
}

func modeOf(l *coordinationv1.Lease) string {
	label := l.Labels[v1alpha1.LabelMode]
	for _, mode := range []string{standaloneMode, cooperativeMode} {
		if strings.EqualFold(label, mode) {
			return mode
		}
	}
	return label
}

func (e *Evidence) installedMode() string {
	for _, p := range e.World.Pods {
		if p.Labels[v1alpha1.LabelPartOf] != v1alpha1.PartOf || p.Labels["app.kubernetes.io/component"] != "controller" {
			continue
		}
		for _, arg := range argumentsOf(p) {
			if mode, is := strings.CutPrefix(arg, "--mode="); is {
				return mode
			}
		}
	}
	return ""
}

// guarded: only Moorage's controller may write volumesAttached. A binding without a policy has no effect.
func (e *Evidence) guarded() bool { return e.policy(guardPolicy) != nil && e.denies(guardPolicy) }

func (e *Evidence) binding(policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
	for i := range e.Bindings.Items {
		if e.Bindings.Items[i].Spec.PolicyName == policy {
			return &e.Bindings.Items[i]
		}
	}
	return nil
}

func (m modes) finding() Finding {
	const look = "See why moorage-controller does not lead: `kubectl get pods -A -l app.kubernetes.io/component=controller`, and its logs. "
	standalone := m.leads && m.led == standaloneMode
	switch {
	case m.bound && m.release != "" && m.here != "" && m.release != m.here:
		return found(Error, "", "Uninstall one of the two releases, and delete the binding if it is the other's.",
			"the binding of %s belongs to the release in namespace %s, and the controller is in %s, which does not lead for that reason", guardPolicy, m.release, m.here)
	case m.bound && !standalone:
		return found(Error, "", look+"Or switch kube-controller-manager's attach/detach controller on, and delete the ValidatingAdmissionPolicyBinding "+guardPolicy+".",
			"Standalone, and no controller leads: nothing is attached or detached, since the binding keeps everybody else out. Pods that run are untouched")
	case m.bound && m.installed == cooperativeMode:
		return found(Warning, "", "To stay in Standalone mode, install with mode=Standalone. To end it, switch kube-controller-manager's attach/detach controller on, then hand over: `kubectl annotate validatingadmissionpolicybinding "+guardPolicy+" "+v1alpha1.AnnotationHandOver+"=true`",
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
	return ok("Cooperative: kube-controller-manager's attach/detach controller stays on. Standalone mode is chosen by name (docs/operate/modes.md)")
}

func (e *Evidence) webhook() *admissionv1.MutatingWebhookConfiguration {
	for i := range e.Webhooks.Items {
		if e.Webhooks.Items[i].Name == v1alpha1.WebhookName {
			return &e.Webhooks.Items[i]
		}
	}
	return nil
}

const unstamped = "Pods of namespaces that opted in are admitted unstamped and go to the default scheduler."

func checkWebhook(e *Evidence) []Finding {
	if e.Webhooks.Err != nil {
		return unchecked("mutatingwebhookconfigurations.admissionregistration.k8s.io", e.Webhooks.Err)
	}
	config := e.webhook()
	if config == nil || len(config.Webhooks) == 0 {
		return []Finding{found(Error, "there is no MutatingWebhookConfiguration "+v1alpha1.WebhookName, "Install the chart again.", "the webhook is not registered. %s", unstamped)}
	}
	var list []Finding
	for _, hook := range config.Webhooks {
		if hook.FailurePolicy != nil && *hook.FailurePolicy == admissionv1.Fail {
			list = append(list, found(Info, hook.Name+": failurePolicy Fail", "", "pods with volumes can't be created while the webhook is down"))
		}
		if service := hook.ClientConfig.Service; service != nil { // the probe tests an answer at a URL
			list = append(list, e.endpoints(service)...)
		}
	}
	if len(list) == 0 {
		list = append(list, ok("the webhook is registered"))
	}
	return list
}

func (e *Evidence) endpoints(service *admissionv1.ServiceReference) []Finding {
	if e.Slices.Err != nil {
		return unchecked("endpointslices.discovery.k8s.io", e.Slices.Err)
	}
	ready := e.ready(service.Namespace, service.Name)
	if ready == 0 {
		return []Finding{found(Error, fmt.Sprintf("Service %s/%s has no ready endpoint", service.Namespace, service.Name),
			fmt.Sprintf("`kubectl -n %s get pods -l app.kubernetes.io/component=webhook`", service.Namespace), "nobody answers for the webhook. %s", unstamped)}
	}
	return []Finding{{Severity: OK, Message: fmt.Sprintf("the webhook has %s", facts.Count(ready, "ready endpoint")), Evidence: "EndpointSlices of " + service.Namespace + "/" + service.Name}}
}

func (e *Evidence) ready(namespace, service string) int {
	count := 0
	for _, s := range e.Slices.Items {
		if s.Namespace != namespace || s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for _, endpoint := range s.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				count++
			}
		}
	}
	return count
}

// webhookFails: the API server refused a pod because it could not call Moorage's webhook.
func (e *Evidence) webhookFails(err error) bool {
	config := e.webhook()
	return config != nil && slices.ContainsFunc(config.Webhooks, func(hook admissionv1.MutatingWebhook) bool {
		return strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", hook.Name))
	})
}

// checkProbe reports a pod's dry run: has the API server called the webhook and trusted it?
func checkProbe(e *Evidence) []Finding {
	p := e.Probe
	switch {
	case p.Skipped != "":
		return []Finding{found(Info, "", "", "no pod was tried: %s", p.Skipped)}
	case p.Err != nil && e.webhookFails(p.Err):
		return []Finding{found(Error, p.Err.Error(), "See why nobody answers there, or what the API server's words say: `kubectl get pods -A -l app.kubernetes.io/component=webhook`",
			"the API server does not reach the webhook, or does not trust it, and refuses pods with volumes of namespaces that opted in (failurePolicy: Fail)")}
	case p.Err != nil:
		return []Finding{found(Unknown, p.Err.Error(), "Create a pod with a claim in the namespace by hand.", "a dry run of a pod in namespace %s was refused", p.Namespace)}
	case !p.Stamped:
		return []Finding{found(Error, "a pod with a claim, created as a dry run in namespace "+p.Namespace+", has no annotation "+v1alpha1.AnnotationVolumeStatus,
			"`kubectl get --raw /metrics | grep apiserver_admission_webhook_fail_open_count`. The API server's log says why: a network policy, a name, a certificate.",
			"the API server does not reach the webhook, or does not trust it. %s", unstamped)}
	}
	return []Finding{{Severity: OK, Message: "the API server calls the webhook and trusts its certificate",
		Evidence: fmt.Sprintf("a dry run of a pod in namespace %s was stamped, schedulerName %s", p.Namespace, p.Scheduler)}}
}

// checkOptedIn finds pods with claims in opted-in namespaces that Moorage does not schedule: older ones, or
// the webhook was down.
func checkOptedIn(e *Evidence) []Finding {
	if e.Namespaces.Err != nil {
		return unchecked("namespaces", e.Namespaces.Err)
	}
	if len(e.Mislabelled) > 0 {
		return append(e.mislabelled(), e.optedIn()...)
	}
	return e.optedIn()
}

func (e *Evidence) mislabelled() []Finding {
	var names []string
	for _, n := range e.Mislabelled {
		names = append(names, n.Name+": "+v1alpha1.LabelEnforce+"="+n.Labels[v1alpha1.LabelEnforce])
	}
	return []Finding{found(Warning, some(names), "`kubectl label --overwrite namespace NAME "+v1alpha1.LabelEnforce+"=true`, or remove the label.",
		"namespaces that have not opted in, since another value than true of the label %s is ignored: %d", v1alpha1.LabelEnforce, len(names))}
}

func (e *Evidence) optedIn() []Finding {
	if len(e.Namespaces.Items) == 0 {
		return []Finding{found(Info, "", "`kubectl label namespace NAME "+v1alpha1.LabelEnforce+"=true`", "no namespace has opted in: Moorage schedules no pod")}
	}
	opted := map[string]bool{}
	for _, n := range e.Namespaces.Items {
		opted[n.Name] = true
	}
	var missed []string
	for _, p := range e.World.Pods {
		_, stamped := v1alpha1.VolumeStatusOf(p)
		if opted[p.Namespace] && !stamped && p.Spec.NodeName == "" && e.World.NeedsAttachment(p) {
			missed = append(missed, p.Namespace+"/"+p.Name)
		}
	}
	if len(missed) > 0 {
		return []Finding{found(Warning, "without annotation "+v1alpha1.AnnotationVolumeStatus+": "+some(missed), "Delete them, so that their controllers create them again: docs/operate/quickstart.md.",
			"pods without a node that were created before their namespace opted in, or while the webhook did not answer: %d", len(missed))}
	}
	return []Finding{ok("namespaces that have opted in: %d", len(e.Namespaces.Items))}
}

func some(names []string) string {
	slices.Sort(names)
	return facts.Some(names, 5)
}

// renewalGrace: cert-manager tries again after an hour at the latest.
const renewalGrace = 2 * time.Hour

// policies are every installation's ValidatingAdmissionPolicies, with the danger without each; guardPolicy
// is checkMode's.
func policies() map[string]string {
	return map[string]string{
		"moorage-tickets":            "tickets of any type and for other people's volumes are let in, and grants can be forged",
		"moorage-own-accounts":       "a stolen token of Moorage's can write all of a node's status, and delete any pod",
		"moorage-fenced-conditions":  "a kubelet can call itself fenced, and lose its volumes while it writes to them, where an AttachPolicy has a fencedCondition",
		"moorage-node-mount-reports": "a node can say what another one has mounted",
		"moorage-strict":             "the label moorage.dev/strict has no effect",
	}
}

const policyFix = "Install the chart with policies.enabled=true."

// checkPolicies: the policies exist, are understood, and are bound with Deny.
func checkPolicies(e *Evidence) []Finding {
	if e.Policies.Err != nil {
		return unchecked("validatingadmissionpolicies.admissionregistration.k8s.io", e.Policies.Err)
	}
	if e.Bindings.Err != nil {
		return unchecked("validatingadmissionpolicybindings.admissionregistration.k8s.io", e.Bindings.Err)
	}
	var list []Finding
	for _, name := range sortedKeys(policies()) {
		// The chart has moorage-node's policy only with moorage-node.
		idle := name == "moorage-node-mount-reports" && e.Agents.Err == nil && len(e.Agents.Items) == 0
		if e.policy(name) == nil && !idle {
			list = append(list, found(Warning, "there is no ValidatingAdmissionPolicy "+name, policyFix, "policy %s is missing: %s", name, policies()[name]))
		}
	}
	ours := 0
	for _, p := range e.Policies.Items {
		if policies()[p.Name] == "" {
			continue
		}
		ours++
		if !e.denies(p.Name) {
			list = append(list, found(Error, "no ValidatingAdmissionPolicyBinding has policyName "+p.Name+" and validationActions [Deny]", policyFix,
				"policy %s is not bound, so that it denies nothing", p.Name))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("policies that are there and bound: %d", ours))
	}
	return list
}

func (e *Evidence) policy(name string) *admissionv1.ValidatingAdmissionPolicy {
	for i := range e.Policies.Items {
		if e.Policies.Items[i].Name == name {
			return &e.Policies.Items[i]
		}
	}
	return nil
}

func (e *Evidence) denies(policy string) bool {
	return slices.ContainsFunc(e.Bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
		return b.Spec.PolicyName == policy && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
	})
}

func argumentsOf(p *corev1.Pod) []string {
	var list []string
	for _, c := range p.Spec.Containers {
		list = append(list, slices.Concat(c.Command, c.Args)...)
	}
	return list
}

// checkCertificate looks at the renewal, by cert-manager or the chart's CronJob. The certificates are in
// Secrets, which doctor does not read.
func checkCertificate(e *Evidence) []Finding {
	if e.Certificates.Err != nil {
		return unchecked("certificates.cert-manager.io", e.Certificates.Err)
	}
	if e.CronJobs.Err != nil {
		return unchecked("cronjobs.batch", e.CronJobs.Err)
	}
	var list []Finding
	for i := range e.Certificates.Items {
		c := &e.Certificates.Items[i]
		until, why := c.Status.NotAfter, ""
		for _, condition := range c.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateConditionReady && condition.Status != cmmeta.ConditionTrue {
				why = condition.Reason + ": " + condition.Message
			}
		}
		if until != nil && until.Sub(e.now()) <= 0 {
			why = "valid until " + until.UTC().Format(time.RFC3339)
		}
		if why != "" || until == nil {
			list = append(list, found(Error, cmp.Or(why, "its status has no notAfter"), "Look at the logs of cert-manager, and `kubectl -n "+c.Namespace+" describe certificate,certificaterequest`",
				"certificate %s/%s is not valid", c.Namespace, c.Name))
		}
	}
	for i := range e.CronJobs.Items {
		job := &e.CronJobs.Items[i]
		last, done := job.Status.LastScheduleTime, job.Status.LastSuccessfulTime
		suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
		if suspended || last != nil && (done == nil || done.Before(last)) && e.now().Sub(last.Time) > renewalGrace {
			list = append(list, found(Warning, fmt.Sprintf("suspended: %t; last scheduled at %v, last success at %v", suspended, last, done), "The logs of its last Job: `kubectl -n "+job.Namespace+" get jobs`",
				"CronJob %s/%s, which renews the webhook's certificate, is suspended or fails", job.Namespace, job.Name))
		}
	}
	switch {
	case len(list) > 0:
	case len(e.Certificates.Items)+len(e.CronJobs.Items) == 0:
		list = append(list, found(Info, "there is no Certificate and no CronJob of the chart's", "", "the webhook's certificate is renewed by hand (webhook.caBundle)"))
	default:
		list = append(list, ok("%d certificates are valid and renewed by cert-manager, %d by the chart's CronJob", len(e.Certificates.Items), len(e.CronJobs.Items)))
	}
	return list
}

func checkScheduler(e *Evidence) []Finding {
	return e.checkLeader(v1alpha1.SchedulerName, "Pods that opted in wait.")
}
