// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

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

// atURL is what is known of a webhook that is reached at a URL: whether anybody answers there
// only the probe shows.
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

// endpoints says whether anybody is ready to answer behind the webhook's
// Service.
func (e *Evidence) endpoints(service *admissionv1.ServiceReference) []Finding {
	if e.Slices.Err != nil {
		return unchecked("endpointslices.discovery.k8s.io", e.Slices.Err)
	}
	ready := e.ready(service.Namespace, service.Name)
	if ready == 0 {
		return []Finding{found(Error, fmt.Sprintf("Service %s/%s has no ready endpoint", service.Namespace, service.Name),
			fmt.Sprintf("kubectl -n %s get pods -l app.kubernetes.io/component=webhook", service.Namespace), "nobody answers for the webhook. %s", unstamped)}
	}
	return []Finding{{Severity: OK, Message: fmt.Sprintf("the webhook has %s", facts.Count(ready, "ready endpoint")), Evidence: "EndpointSlices of " + service.Namespace + "/" + service.Name}}
}

// ready is how many endpoints of a Service answer.
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

// renewSoon is how much life a CA should have left: the chart's lasts for
// years, a hand-made one is easily forgotten.
const renewSoon = 5 * 24 * time.Hour

// checkCertificate looks at the CA by which the API server knows the webhook.
// Whether the certificate behind it is valid is what the probe shows: it is in
// a Secret, which doctor has no business to read.
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
	injector := "With cert-manager: kubectl describe certificate -A, and the logs of its cainjector. Without: set webhook.caBundle."
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

// checkProbe says what a pod that was created as a dry run has shown: the API
// server has called the webhook, and trusted it, or not.
func checkProbe(e *Evidence) []Finding {
	p := e.Probe
	switch {
	case p.Skipped != "":
		return []Finding{found(Info, "", "", "no pod was tried: %s", p.Skipped)}
	case p.Err != nil && e.webhookFails(p.Err):
		return []Finding{found(Error, p.Err.Error(), "See why nobody answers there, or what the API server's words say: kubectl get pods -A -l app.kubernetes.io/component=webhook",
			"the API server does not reach the webhook, or does not trust it, and refuses pods with volumes of namespaces that opted in (failurePolicy: Fail)")}
	case p.Err != nil:
		return []Finding{found(Unknown, p.Err.Error(), "Create a pod with a claim in the namespace by hand.", "a dry run of a pod in namespace %s was refused", p.Namespace)}
	case !p.Stamped:
		return []Finding{found(Error, "a pod with a claim, created as a dry run in namespace "+p.Namespace+", has no annotation "+v1alpha1.AnnotationVolumeStatus,
			"kubectl get --raw /metrics | grep apiserver_admission_webhook_fail_open_count; the API server's log says why: a network policy, a name, a certificate.",
			"the API server does not reach the webhook, or does not trust it. %s", unstamped)}
	}
	return []Finding{{Severity: OK, Message: "the API server calls the webhook and trusts its certificate",
		Evidence: fmt.Sprintf("a dry run of a pod in namespace %s was stamped, schedulerName %s", p.Namespace, p.Scheduler)}}
}

// checkOptedIn finds pods with claims in namespaces that have opted in, which
// Moorage does not schedule: they were made before, or while the webhook was
// down.
func checkOptedIn(e *Evidence) []Finding {
	if e.Namespaces.Err != nil {
		return unchecked("namespaces", e.Namespaces.Err)
	}
	if len(e.Mislabelled) > 0 {
		return append(e.mislabelled(), e.optedIn()...)
	}
	return e.optedIn()
}

// mislabelled says of which namespaces the label is ignored.
func (e *Evidence) mislabelled() []Finding {
	var names []string
	for _, n := range e.Mislabelled {
		names = append(names, n.Name+": "+v1alpha1.LabelEnforce+"="+n.Labels[v1alpha1.LabelEnforce])
	}
	return []Finding{found(Warning, some(names), "kubectl label --overwrite namespace NAME "+v1alpha1.LabelEnforce+"=true, or remove the label.",
		"namespaces that have not opted in, since another value than true of the label %s is ignored: %d", v1alpha1.LabelEnforce, len(names))}
}

// optedIn looks at the namespaces that have opted in.
func (e *Evidence) optedIn() []Finding {
	if len(e.Namespaces.Items) == 0 {
		return []Finding{found(Info, "", "kubectl label namespace NAME "+v1alpha1.LabelEnforce+"=true", "no namespace has opted in: Moorage schedules no pod")}
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
		return []Finding{found(Warning, "without annotation "+v1alpha1.AnnotationVolumeStatus+": "+some(missed), "Delete them, so that their controllers create them again: docs/operate/adopt.md.",
			"pods without a node that were created before their namespace opted in, or while the webhook did not answer: %d", len(missed))}
	}
	return []Finding{ok("namespaces that have opted in: %d", len(e.Namespaces.Items))}
}

// some names the first few of a list.
func some(names []string) string {
	const few = 5
	slices.Sort(names)
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
