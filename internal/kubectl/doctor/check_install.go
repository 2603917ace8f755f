// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/served"
)

// needed are the group versions, with their resources, that Moorage can't work without.
func needed() map[string][]string {
	return map[string][]string{
		v1alpha1.SchemeGroupVersion.String(): {v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies},
		"storage.k8s.io/v1":                  {"volumeattachments", "csinodes", "csidrivers", "storageclasses"},
		"admissionregistration.k8s.io/v1":    {"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	}
}

func checkAPI(e *Evidence) []Finding {
	list := checkVersion(e)
	if e.ServedErr != nil {
		return append(list, unchecked("what the API server serves", e.ServedErr)...)
	}
	for _, group := range sortedKeys(needed()) {
		if missing := served.Without(needed()[group], e.Served[group]); len(missing) > 0 {
			fix := switchOn
			if strings.HasPrefix(group, v1alpha1.GroupName) {
				fix = "Install the CRDs: helm upgrade with crds.enabled=true, or `kubectl apply -f manifests/crds.yaml`"
			}
			list = append(list, found(Error, fmt.Sprintf("%s serves %v", group, e.Served[group]), fix, "%s does not serve %s", group, strings.Join(missing, ", ")))
		}
	}
	list = append(list, checkFeatures(e)...)
	if !slices.ContainsFunc(list, func(f Finding) bool { return f.Severity.rank() > Info.rank() }) {
		list = append(list, ok("Kubernetes %s serves all that is needed", e.Version))
	}
	return list
}

const switchOn = "See that the API server's --runtime-config does not switch it off."

func checkVersion(e *Evidence) []Finding {
	if e.VersionErr != nil {
		return unchecked("the API server's version", e.VersionErr)
	}
	fix := "Compare it with docs/operate/quickstart.md."
	v, err := version.ParseGeneric(e.Version)
	switch {
	case err != nil:
		return []Finding{found(Unknown, err.Error(), fix, "the API server's version %q can't be read", e.Version)}
	case v.LessThan(version.MustParseGeneric(served.OldestRelease)):
		return []Finding{found(Warning, "the API server is "+e.Version, fix, "Kubernetes %s is older than %s, the oldest that Moorage was tried with", e.Version, served.OldestRelease)}
	case v.Minor() > version.MustParseGeneric(served.NewestRelease).Minor()+1:
		return []Finding{found(Warning, "the API server is "+e.Version, "Install a Moorage made for it: docs/operate/quickstart.md.",
			"Kubernetes %s is more than one minor newer than moorage-scheduler", e.Version)}
	}
	return nil
}

// checkFeatures names the features that moorage-scheduler leaves out, or waits for, because they are not
// served. Features that are off by default are left out.
func checkFeatures(e *Evidence) []Finding {
	var list []Finding
	for _, f := range served.SchedulerFeatures() {
		missing := e.Served.Missing(f)
		if len(missing) == 0 || !f.ByDefault {
			continue
		}
		evidence := fmt.Sprintf("%s serves %v", f.GroupVersion, e.Served[f.GroupVersion])
		if f.Locked {
			list = append(list, found(Error, evidence, switchOn, "%s does not serve %s, which moorage-scheduler reads before it schedules anything", f.GroupVersion, strings.Join(missing, ", ")))
			continue
		}
		list = append(list, found(Info, evidence, "", "%s does not serve %s: moorage-scheduler leaves out %s", f.GroupVersion, strings.Join(missing, ", "), f.Gate))
	}
	return list
}

func checkCRDs(e *Evidence) []Finding {
	if e.CRDs.Err != nil {
		return unchecked("customresourcedefinitions.apiextensions.k8s.io", e.CRDs.Err)
	}
	var list []Finding
	for _, crd := range e.CRDs.Items {
		for _, c := range crd.Status.Conditions {
			if (c.Type == "Established" || c.Type == "NamesAccepted") && c.Status != "True" {
				list = append(list, found(Error, c.Message, "`kubectl describe crd "+crd.Metadata.Name+"`", "CRD %s is not %s: %s", crd.Metadata.Name, c.Type, c.Reason))
			}
		}
		served := false
		for _, v := range crd.Spec.Versions {
			served = served || v.Name == v1alpha1.SchemeGroupVersion.Version && v.Served
		}
		if !served {
			list = append(list, found(Error, fmt.Sprintf("spec.versions: %v", crd.Spec.Versions), "Apply the CRDs of this version of Moorage.",
				"CRD %s does not serve %s", crd.Metadata.Name, v1alpha1.SchemeGroupVersion.Version))
		}
	}
	if len(list) == 0 && len(e.CRDs.Items) > 0 {
		list = append(list, ok("the CRDs are established and serve %s", v1alpha1.SchemeGroupVersion.Version))
	}
	return list
}

// checkRights names the objects that the user of doctor may not read.
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

// lapsed says for how long a Lease has been over; zero while a component leads.
func (e *Evidence) lapsed(l *coordinationv1.Lease) time.Duration { return facts.Lapsed(l, e.now()) }

func checkController(e *Evidence) []Finding {
	stops := "granted, attached or detached"
	if l := e.lease(v1alpha1.ControllerName); l != nil && modeOf(l) == cooperativeMode {
		stops = "granted" // kube-controller-manager attaches and detaches
	}
	return e.checkLeader(v1alpha1.ControllerName, "Nothing is "+stops+" meanwhile; running pods are untouched.")
}

// checkExtender looks at the extender, where its Service shows that it is installed.
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
	logs := "`kubectl get deployments,pods -A -l app.kubernetes.io/part-of=moorage`. With 0 replicas, scale " + name + " up; else see its logs."
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
	late := e.lapsed(l)
	if who == "" && l.Spec.RenewTime != nil { // given up with this renewal
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

// checkAttachDetach names the component that attaches and detaches: Moorage alone (Standalone), or the
// attach/detach controller beside it (Cooperative). The two must never both act on their own.
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

// stillRunning looks at kube-controller-manager's own arguments, where its pods can be seen.
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

// The modes, as users name them. The label of the controller's Lease has them in lower case.
const (
	standaloneMode  = "Standalone"
	cooperativeMode = "Cooperative"
)

// modes decide which component attaches: the installed mode, by the controller's pods (empty: none seen);
// the mode of the last leading controller; whether it leads now; and whether the policy on volumesAttached
// is there and bound.
type modes struct {
	installed, led       string
	leads, policy, bound bool
	// release is the namespace of the binding's release, and here is the namespace of the controller's
	// Lease; empty if not known.
	release, here string
}

// checkMode reports the cluster's mode, whether the binding of the policy on volumesAttached fits it, and
// the next step.
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

// guarded says whether only Moorage's controller may write volumesAttached: a binding without its policy
// has no effect.
func (e *Evidence) guarded() bool { return e.policy(guardPolicy) != nil && e.denies(guardPolicy) }

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
		service := hook.ClientConfig.Service
		if service == nil {
			list = append(list, e.atURL(hook))
			continue
		}
		list = append(list, e.endpoints(service)...)
	}
	if len(list) == 0 {
		list = append(list, ok("the webhook is registered"))
	}
	return list
}

// atURL is the finding about a webhook at a URL: only the probe shows whether a server answers there.
func (e *Evidence) atURL(hook admissionv1.MutatingWebhook) Finding {
	evidence := hook.Name + ": no Service in its clientConfig"
	if url := hook.ClientConfig.URL; url != nil {
		evidence = hook.Name + ": clientConfig.url " + *url
	}
	if e.Probe.Stamped {
		return Finding{Severity: OK, Message: "the webhook answers at its URL", Evidence: evidence}
	}
	return found(Unknown, evidence, "See that it answers there. Doctor can tell where you may create pods in a namespace that has opted in, without --probe=false.",
		"the webhook is reached at a URL, and whether anybody answers there is not known")
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

// renewSoon is how much life a CA should have left: the chart's lasts for years, a hand-made one is easily
// forgotten.
const renewSoon = 5 * 24 * time.Hour

// checkCertificate looks at the CA that the API server trusts the webhook by. Only the probe shows whether
// the webhook's own certificate is valid: it is in a Secret, and doctor reads no Secrets.
func checkCertificate(e *Evidence) []Finding {
	config := e.webhook()
	if config == nil {
		return nil
	}
	var list []Finding
	for _, hook := range config.Webhooks {
		list = append(list, e.authority(hook)...)
	}
	return list
}

func (e *Evidence) authority(hook admissionv1.MutatingWebhook) []Finding {
	bundle := hook.ClientConfig.CABundle
	injector := "With cert-manager: `kubectl describe certificate -A`, and the logs of its cainjector. Without: set webhook.caBundle."
	if len(bundle) == 0 {
		return []Finding{found(Error, hook.Name+": clientConfig.caBundle is empty", injector, "the API server trusts no certificate of the webhook. %s", unstamped)}
	}
	var latest *x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return []Finding{found(Error, err.Error(), injector, "the webhook's caBundle holds what is no certificate")}
		}
		if latest == nil || cert.NotAfter.After(latest.NotAfter) {
			latest = cert
		}
	}
	if latest == nil {
		return []Finding{found(Error, hook.Name+": no PEM block", injector, "the webhook's caBundle holds no certificate. %s", unstamped)}
	}
	evidence := fmt.Sprintf("CA %q, valid from %s to %s", latest.Subject.CommonName, latest.NotBefore.UTC().Format(time.RFC3339), latest.NotAfter.UTC().Format(time.RFC3339))
	left := latest.NotAfter.Sub(e.now())
	switch {
	case left <= 0:
		return []Finding{found(Error, evidence, injector, "the webhook's CA has expired. %s", unstamped)}
	case latest.NotBefore.After(e.now()):
		return []Finding{found(Error, evidence, "Compare the clocks of the machines.", "the webhook's CA is not valid yet. %s", unstamped)}
	case left < renewSoon:
		return []Finding{found(Warning, evidence, injector, "the webhook's CA expires in %s", left.Round(time.Hour))}
	}
	return []Finding{{Severity: OK, Message: "the webhook's CA is valid", Evidence: evidence}}
}

// webhookFails says whether the API server refuses a pod because it could not call Moorage's webhook.
func (e *Evidence) webhookFails(err error) bool {
	config := e.webhook()
	return config != nil && slices.ContainsFunc(config.Webhooks, func(hook admissionv1.MutatingWebhook) bool {
		return strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", hook.Name))
	})
}

// checkProbe reports the result of a pod's creation as a dry run: whether the API server has called the
// webhook and trusted it.
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

// checkOptedIn finds pods with claims in opted-in namespaces that Moorage does not schedule: they were made
// before, or while the webhook was down.
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

// renewalGrace is how long a renewal may be overdue before it is a finding: cert-manager tries again after
// an hour at the latest.
const renewalGrace = 2 * time.Hour

// checkRenewal looks at the renewal of the certificates of Moorage's servers, by cert-manager or the
// chart's CronJob. The certificates themselves are in Secrets, which doctor does not read; cert-manager
// reports their end.
func checkRenewal(e *Evidence) []Finding {
	if e.Certificates.Err != nil {
		return unchecked("certificates.cert-manager.io", e.Certificates.Err)
	}
	if e.CronJobs.Err != nil {
		return unchecked("cronjobs.batch", e.CronJobs.Err)
	}
	var list []Finding
	for _, w := range e.Webhooks.Items {
		namespace, name, named := strings.Cut(w.Annotations[certmanagerv1.WantInjectAnnotation], "/")
		is := func(c certmanagerv1.Certificate) bool { return c.Namespace == namespace && c.Name == name }
		// Where the cluster has no Certificate of the chart's at all, cert-manager may not be in use.
		if w.Name == v1alpha1.WebhookName && named && len(e.Certificates.Items) > 0 && !slices.ContainsFunc(e.Certificates.Items, is) {
			list = append(list, found(Error, "the annotation "+certmanagerv1.WantInjectAnnotation+" of the webhook names it",
				"`helm upgrade` with the values of the install makes it again.", "Certificate %s/%s is missing: nobody renews the webhook's certificate", namespace, name))
		}
	}
	for i := range e.Certificates.Items {
		list = append(list, e.certificate(&e.Certificates.Items[i])...)
	}
	for i := range e.CronJobs.Items {
		list = append(list, e.renewer(&e.CronJobs.Items[i])...)
	}
	if len(list) > 0 {
		return list
	}
	if len(e.Certificates.Items)+len(e.CronJobs.Items) == 0 {
		return []Finding{found(Info, "there is no Certificate and no CronJob of the chart's", "", "the webhook's certificate is renewed by hand (webhook.caBundle)")}
	}
	return []Finding{{
		Severity: OK, Evidence: validUntil(e.Certificates.Items),
		Message: fmt.Sprintf("%d certificates are valid and renewed by cert-manager, %d by the chart's CronJob", len(e.Certificates.Items), len(e.CronJobs.Items)),
	}}
}

func (e *Evidence) certificate(c *certmanagerv1.Certificate) []Finding {
	name := c.Namespace + "/" + c.Name
	why := "the logs of cert-manager, and `kubectl -n " + c.Namespace + " describe certificate,certificaterequest`"
	for _, condition := range c.Status.Conditions {
		if condition.Type == certmanagerv1.CertificateConditionReady && condition.Status != cmmeta.ConditionTrue {
			evidence, message := condition.Reason+": "+condition.Message, ""
			if cause := e.requestFailure(c); cause != "" {
				evidence, message = cause, ": "+condition.Message
			}
			return []Finding{found(Error, evidence, "Look at "+why, "certificate %s is not ready%s", name, message)}
		}
	}
	switch until := c.Status.NotAfter; {
	case until == nil:
		return []Finding{found(Warning, "its status has no notAfter", "Is cert-manager running? Look at "+why, "certificate %s has not been issued yet", name)}
	case !until.After(e.now()):
		return []Finding{found(Error, "valid until "+until.UTC().Format(time.RFC3339), "Look at "+why, "certificate %s has expired", name)}
	}
	if due := c.Status.RenewalTime; due != nil && e.now().Sub(due.Time) > renewalGrace {
		return []Finding{found(Warning, fmt.Sprintf("due at %s, valid until %s", due.UTC().Format(time.RFC3339), c.Status.NotAfter.UTC().Format(time.RFC3339)),
			"Look at "+why, "certificate %s should have been renewed %s ago", name, e.now().Sub(due.Time).Round(time.Hour))}
	}
	return nil
}

// requestFailure is why the newest CertificateRequest of a Certificate fails, in cert-manager's words: the
// Certificate itself only reports that its Secret is missing. Empty if no request has a reason.
func (e *Evidence) requestFailure(c *certmanagerv1.Certificate) string {
	var newest *certmanagerv1.CertificateRequest
	for i := range e.Requests.Items {
		r := &e.Requests.Items[i]
		if metav1.IsControlledBy(r, c) && (newest == nil || newest.CreationTimestamp.Before(&r.CreationTimestamp)) {
			newest = r
		}
	}
	if newest == nil {
		return ""
	}
	for _, condition := range newest.Status.Conditions {
		unready := condition.Type == certmanagerv1.CertificateRequestConditionReady && condition.Status != cmmeta.ConditionTrue
		denied := condition.Type == certmanagerv1.CertificateRequestConditionDenied && condition.Status == cmmeta.ConditionTrue
		if unready || denied {
			return fmt.Sprintf("CertificateRequest %s: %s: %s", newest.Name, condition.Reason, condition.Message)
		}
	}
	return ""
}

func validUntil(certificates []certmanagerv1.Certificate) string {
	byEnd := slices.SortedFunc(slices.Values(certificates), func(a, b certmanagerv1.Certificate) int {
		return a.Status.NotAfter.Compare(b.Status.NotAfter.Time)
	})
	var list []string
	for _, c := range byEnd {
		list = append(list, fmt.Sprintf("%s/%s until %s", c.Namespace, c.Name, c.Status.NotAfter.UTC().Format(time.DateOnly)))
	}
	return strings.Join(list, ", ")
}

func (e *Evidence) renewer(job *batchv1.CronJob) []Finding {
	name := job.Namespace + "/" + job.Name
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return []Finding{found(Warning, "spec.suspend is true", "`kubectl -n "+job.Namespace+" patch cronjob "+job.Name+` -p '{"spec":{"suspend":false}}'`+"`",
			"CronJob %s, which renews the webhook's certificate, is suspended", name)}
	}
	last := job.Status.LastScheduleTime
	if last == nil {
		return nil // the release's own Job has made the first certificate
	}
	if done := job.Status.LastSuccessfulTime; (done == nil || done.Before(last)) && e.now().Sub(last.Time) > renewalGrace {
		return []Finding{found(Warning, "last scheduled at "+last.UTC().Format(time.RFC3339)+", and has not succeeded since", "The logs of its last Job: `kubectl -n "+job.Namespace+" get jobs`",
			"CronJob %s, which renews the webhook's certificate, fails", name)}
	}
	return nil
}

// The plugins that count slots: Moorage's, and the default plugin that it replaces.
const (
	ourPlugin   = "VolumeHold"
	limitPlugin = "NodeVolumeLimits"
)

type schedulerConfig struct {
	Kind     string    `json:"kind"`
	Profiles []profile `json:"profiles"`
}

type profile struct {
	SchedulerName string               `json:"schedulerName"`
	Plugins       map[string]pluginSet `json:"plugins"` // by extension point
}

type pluginSet struct {
	Enabled  []plugin `json:"enabled"`
	Disabled []plugin `json:"disabled"`
}

type plugin struct {
	Name string `json:"name"`
}

// enables says whether a profile has a plugin that no profile has by default.
func (p profile) enables(name string) bool {
	for _, set := range p.Plugins {
		if slices.Contains(set.Enabled, plugin{name}) {
			return true
		}
	}
	return false
}

// keeps says whether a profile still has a default plugin: it is disabled by its name or by *, at its point
// or at all, unless it is enabled again there.
func (p profile) keeps(name, point string) bool {
	for _, at := range []string{point, "multiPoint"} {
		set := p.Plugins[at]
		if slices.Contains(set.Enabled, plugin{name}) {
			return true
		}
		if slices.Contains(set.Disabled, plugin{name}) || slices.Contains(set.Disabled, plugin{"*"}) {
			return false
		}
	}
	return true
}

// bindsFirst says whether a plugin is the first to bind: only the plugins that the bind point itself names
// come before DefaultBinder.
func (p profile) bindsFirst(name string) bool {
	named := p.Plugins["bind"].Enabled
	return len(named) > 0 && named[0].Name == name
}

func checkScheduler(e *Evidence) []Finding {
	list := e.checkLeader(v1alpha1.SchedulerName, "Pods that opted in wait.")
	if e.Configs.Err != nil {
		return append(list, unchecked("configmaps", e.Configs.Err)...)
	}
	seen := false
	for _, config := range e.Configs.Items {
		for _, key := range sortedKeys(config.Data) {
			var parsed schedulerConfig
			if err := yaml.Unmarshal([]byte(config.Data[key]), &parsed); err != nil || parsed.Kind != "KubeSchedulerConfiguration" {
				continue // of another kind
			}
			for _, p := range parsed.Profiles {
				if p.SchedulerName == v1alpha1.SchedulerName {
					seen = true
					where := fmt.Sprintf("ConfigMap %s/%s, %s", config.Namespace, config.Name, key)
					list = append(list, checkProfile(p, where))
				}
			}
		}
	}
	if l := e.lease(v1alpha1.SchedulerName); !seen && len(e.Configs.Items) == 0 && l != nil && e.lapsed(l) == 0 {
		return append(list, found(Info, "no ConfigMap is labelled app.kubernetes.io/part-of=moorage", "",
			"the scheduler runs with a configuration that is not in the cluster, as the sandbox's does: it does not start with a profile that lacks VolumeHold"))
	}
	if !seen {
		list = append(list, found(Unknown, "no ConfigMap labelled app.kubernetes.io/part-of=moorage has a KubeSchedulerConfiguration with it",
			"If the scheduler is configured elsewhere, see that its profile has VolumeHold in place of NodeVolumeLimits.", "the profile %s was not found", v1alpha1.SchedulerName))
	}
	return list
}

func checkProfile(p profile, where string) Finding {
	switch {
	case !p.enables(ourPlugin):
		return found(Error, where, "Enable VolumeHold under plugins.multiPoint.", "the profile %s does not have the plugin VolumeHold", p.SchedulerName)
	case !p.bindsFirst(ourPlugin):
		return found(Error, where, "Name VolumeHold first under plugins.bind.enabled of the profile, as the chart does.",
			"the profile %s does not have VolumeHold as its first Bind plugin, and moorage-scheduler does not start with it", p.SchedulerName)
	case p.keeps(limitPlugin, "filter"):
		return found(Warning, where, "Disable NodeVolumeLimits in the profile: VolumeHold counts slots itself.",
			"the profile has NodeVolumeLimits beside VolumeHold, which counts a pod's own attachment twice and refuses it its own full node")
	}
	return Finding{Severity: OK, Message: "the profile has VolumeHold in place of NodeVolumeLimits, and first to bind", Evidence: where}
}

// policies are the ValidatingAdmissionPolicies of every installation, with the danger without each.
// guardPolicy belongs to Standalone: the check of the mode looks at it.
func policies() map[string]string {
	return map[string]string{
		"moorage-tickets":      "tickets of any type and for other people's volumes are let in, and grants can be forged",
		"moorage-own-accounts": "a stolen token of Moorage's can write all of a node's status, and delete any pod",
		fencedGuard:            "a kubelet can call itself fenced, and lose its volumes while it writes to them, where an AttachPolicy has a fencedCondition",
		"moorage-node-volumes": "a node can say what another one has mounted",
		"moorage-strict":       "the label moorage.dev/strict has no effect",
	}
}

// fencedGuard is the policy on conditions that vouch for a dead machine.
const fencedGuard = "moorage-fenced-conditions"

const policyFix = "Install the chart with policies.enabled=true."

// checkPolicies checks that forbidden writes are refused: the policies are there, understood by the API
// server, and bound with Deny.
func checkPolicies(e *Evidence) []Finding {
	if e.Policies.Err != nil {
		return unchecked("validatingadmissionpolicies.admissionregistration.k8s.io", e.Policies.Err)
	}
	if e.Bindings.Err != nil {
		return unchecked("validatingadmissionpolicybindings.admissionregistration.k8s.io", e.Bindings.Err)
	}
	var list []Finding
	for _, name := range sortedKeys(policies()) {
		// The chart has the policy about moorage-node only where moorage-node runs.
		idle := name == "moorage-node-volumes" && e.Agents.Err == nil && len(e.Agents.Items) == 0
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
		if warnings := typeWarnings(p); warnings != "" {
			list = append(list, found(Warning, warnings, "Use the policies of this version of Moorage with this version of Kubernetes.",
				"the API server does not understand all of policy %s", p.Name))
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

// typeWarnings are the results of the API server's type check of a policy.
func typeWarnings(p admissionv1.ValidatingAdmissionPolicy) string {
	if p.Status.TypeChecking == nil {
		return ""
	}
	var all []string
	for _, w := range p.Status.TypeChecking.ExpressionWarnings {
		all = append(all, fmt.Sprintf("%s: %s", w.FieldRef, w.Warning))
	}
	return strings.Join(all, "; ")
}
