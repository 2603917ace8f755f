// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// check is a question with a name. It returns nothing when it does not apply.
type check struct {
	name string
	find func(*Evidence) []Finding
	// world: it stands on the objects in the ledger, so that without some of
	// them a good answer means nothing.
	world bool
}

// checks lists them in the order in which a reader wants the answers: whether
// it is there, whether it runs, whether it works well.
func checks() []check {
	return []check{
		{name: "api", find: checkAPI},
		{name: "crds", find: checkCRDs},
		{name: "rights", find: checkRights},
		{name: "controller", find: checkController},
		{name: "mode", find: checkMode},
		{name: "attach-detach", find: checkAttachDetach},
		{name: "webhook", find: checkWebhook},
		{name: "certificate", find: checkCertificate},
		{name: "renewal", find: checkRenewal},
		{name: "probe", find: checkProbe},
		{name: "scheduler", find: checkScheduler},
		{name: "extender", find: checkExtender},
		{name: "opted-in", find: checkOptedIn, world: true},
		{name: "policies", find: checkPolicies},
		{name: "rbac", find: checkRBAC},
		{name: "clock", find: checkClock},
		{name: "kubelets", find: checkKubelets},
		{name: "taints", find: checkTaints, world: true},
		{name: "attach-policies", find: checkAttachPolicies, world: true},
		{name: "fencing", find: checkFencing, world: true},
		{name: "limits", find: checkLimits, world: true},
		{name: "attachers", find: checkAttachers, world: true},
		{name: "attachments", find: checkAttachments, world: true},
		{name: "node-volumes", find: checkNodeVolumes, world: true},
		{name: "waits", find: checkWaits, world: true},
		{name: "invariants", find: checkInvariants, world: true},
	}
}

// absent says whether nothing of Moorage is in the cluster: not its kinds, nor a
// webhook or a policy that was left behind, which a check has to name.
func (e *Evidence) absent() bool {
	missing := 0
	for _, u := range e.World.Unseen {
		if u.Missing && slices.Contains(facts.OwnResources(), u.Resource) {
			missing++
		}
	}
	left := slices.ContainsFunc(e.Webhooks.Items, func(w admissionv1.MutatingWebhookConfiguration) bool { return strings.HasPrefix(w.Name, "moorage") }) ||
		slices.ContainsFunc(e.Policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return strings.HasPrefix(p.Name, "moorage") }) ||
		e.binding(guardPolicy) != nil
	return missing == len(facts.OwnResources()) && !left
}

// examine asks every question of the evidence.
func examine(e *Evidence) Report {
	if e.absent() {
		f := found(Error, "the cluster serves none of its kinds, and no webhook or policy of its is seen",
			"Install it: docs/operate/quickstart.md. explain, volumes, nodes, top and drain-plan work without it.",
			"Moorage is not installed in this cluster; what follows is what it would change here")
		f.Check = "api"
		return newReport(append([]Finding{f}, ask(e, stockChecks())...))
	}
	return newReport(ask(e, checks()))
}

// ask asks the questions of checks.
func ask(e *Evidence, list []check) []Finding {
	var findings []Finding
	partial := slices.ContainsFunc(e.World.Unseen, func(u facts.Unseen) bool { return !u.Missing || !e.absent() })
	for _, c := range list {
		for _, f := range c.find(e) {
			f.Check = c.name
			if f.Severity == OK && c.world && partial {
				f = Finding{Check: c.name, Severity: Unknown, Message: "nothing bad is seen, in what may be seen"}
			}
			findings = append(findings, f)
		}
	}
	return findings
}

// checkNames are the checks' names, for documentation and its test.
func checkNames() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return slices.Clip(names)
}
