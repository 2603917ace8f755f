// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// policies are the chart's ValidatingAdmissionPolicies that every installation
// has, and what may pass without each. guardPolicy is Standalone's: the check of the
// mode looks at it.
func policies() map[string]string {
	return map[string]string{
		"moorage-tickets":      "tickets of any type and for other people's volumes are let in, and grants can be forged",
		"moorage-own-accounts": "a stolen token of Moorage's can write all of a node's status, and delete any pod",
		fencedGuard:            "a kubelet can call itself fenced, and lose its volumes while it writes to them, where an AttachPolicy has a fencedCondition",
		"moorage-node-volumes": "a node can say what another one has mounted",
		"moorage-strict":       "the label moorage.dev/strict has no effect",
	}
}

// fencedGuard is the policy on conditions by which somebody vouches for a dead machine.
const fencedGuard = "moorage-fenced-conditions"

// policyFix puts policies and bindings back.
const policyFix = "Install the chart with policies.enabled=true."

// checkPolicies looks whether what must never pass is kept out: the policies are
// there, understood by the API server, and bound with Deny.
func checkPolicies(e *Evidence) []Finding {
	if e.Policies.Err != nil {
		return unchecked("validatingadmissionpolicies.admissionregistration.k8s.io", e.Policies.Err)
	}
	if e.Bindings.Err != nil {
		return unchecked("validatingadmissionpolicybindings.admissionregistration.k8s.io", e.Bindings.Err)
	}
	var list []Finding
	for _, name := range sortedKeys(policies()) {
		if e.policy(name) == nil {
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

// denies says whether a policy is bound so that it denies.
func (e *Evidence) denies(policy string) bool {
	return slices.ContainsFunc(e.Bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
		return b.Spec.PolicyName == policy && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
	})
}

// typeWarnings are what the API server's type check of a policy found.
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
