// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// request is one that the API server has to judge.
type request struct {
	user        string
	namespace   string
	resource    schema.GroupVersionResource
	subresource string
	kind        schema.GroupVersionKind
	// before is nil on creation.
	now, before runtime.Object
}

// attributes returns the request as admission sees it.
func (r request) attributes() *admission.VersionedAttributes {
	operation := admission.Create
	if r.before != nil {
		operation = admission.Update
	}
	record := admission.NewAttributesRecord(r.now, r.before, r.kind, r.namespace, "", r.resource, r.subresource,
		operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: r.user})
	out := &admission.VersionedAttributes{Attributes: record, VersionedKind: r.kind}
	out.VersionedObject = admission.NewLazyObject(r.now)
	if r.before != nil {
		out.VersionedOldObject = admission.NewLazyObject(r.before)
	}
	return out
}

// conditions adapts match conditions to the compiler.
func conditions(in []admissionregistrationv1.MatchCondition) []cel.ExpressionAccessor {
	out := make([]cel.ExpressionAccessor, len(in))
	for i := range in {
		out[i] = (*matchconditions.MatchCondition)(&in[i])
	}
	return out
}

// compiler is the one that the API server has.
func compiler(t *testing.T) *cel.CompositedCompiler {
	t.Helper()
	out, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// policy is a ValidatingAdmissionPolicy that can judge.
type policy struct {
	object    admissionregistrationv1.ValidatingAdmissionPolicy
	validator validating.Validator
}

// loadPolicy compiles a policy of the manifests as the API server does.
func loadPolicy(t *testing.T, name string) policy { return loadPolicyFrom(t, "policies.yaml", name) }

// loadPolicyFrom is loadPolicy of another file than policies.yaml.
func loadPolicyFrom(t *testing.T, file, name string) policy {
	t.Helper()
	var out policy
	find(t, file, "ValidatingAdmissionPolicy", name, &out.object)
	spec := out.object.Spec
	all := compiler(t)
	variables := make([]cel.NamedExpressionAccessor, len(spec.Variables))
	for i, variable := range spec.Variables {
		variables[i] = &validating.Variable{Name: variable.Name, Expression: variable.Expression}
	}
	var rules, messages []cel.ExpressionAccessor
	for _, validation := range spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: validation.Expression, Message: validation.Message, Reason: validation.Reason})
		if validation.MessageExpression != "" {
			messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression})
		}
	}
	declarations := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	all.CompileAndStoreVariables(variables, declarations, environment.StoredExpressions)
	var matcher matchconditions.Matcher
	if len(spec.MatchConditions) > 0 {
		matcher = matchconditions.NewMatcher(all.CompileCondition(conditions(spec.MatchConditions), declarations, environment.StoredExpressions),
			spec.FailurePolicy, "policy", "validate", name)
	}
	out.validator = validating.NewValidator(
		all.CompileCondition(rules, declarations, environment.StoredExpressions), matcher,
		all.CompileCondition(nil, declarations, environment.StoredExpressions),
		all.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
		spec.FailurePolicy, nil)
	return out
}

// judge returns why the policy denies the request, or "" if it lets it pass. It
// fails if the policy would not be asked, or can't be evaluated.
func (p policy) judge(t *testing.T, r request) string {
	t.Helper()
	if !p.asked(r) {
		t.Fatalf("policy %s is not asked about %s/%s", p.object.Name, r.resource.Resource, r.subresource)
	}
	result := p.validator.Validate(t.Context(), r.resource, r.attributes(), nil, nil, celconfig.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Evaluation == validating.EvalError {
			t.Fatalf("policy %s can't be evaluated: %s", p.object.Name, decision.Message)
		}
		if decision.Action == validating.ActionDeny {
			return decision.Message
		}
	}
	return ""
}

// asked reports whether the policy's rules match the request.
func (p policy) asked(r request) bool {
	operation := admissionregistrationv1.Create
	if r.before != nil {
		operation = admissionregistrationv1.Update
	}
	resource := r.resource.Resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	for _, rule := range p.object.Spec.MatchConstraints.ResourceRules {
		if slices.Contains(rule.APIGroups, r.resource.Group) && slices.Contains(rule.APIVersions, r.resource.Version) &&
			slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, operation) {
			return true
		}
	}
	return false
}
