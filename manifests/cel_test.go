// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/moorage-dev/moorage/internal/served"
)

type request struct {
	user        string
	groups      []string
	extra       map[string][]string
	namespace   string
	resource    schema.GroupVersionResource
	subresource string
	kind        schema.GroupVersionKind
	// before is nil on creation, now on deletion.
	now, before runtime.Object
}

func (r request) operation() admission.Operation {
	switch {
	case r.now == nil:
		return admission.Delete
	case r.before == nil:
		return admission.Create
	}
	return admission.Update
}

func (r request) attributes() *admission.VersionedAttributes {
	record := admission.NewAttributesRecord(r.now, r.before, r.kind, r.namespace, "", r.resource, r.subresource,
		r.operation(), &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: r.user, Groups: r.groups, Extra: r.extra})
	out := &admission.VersionedAttributes{Attributes: record, VersionedKind: r.kind}
	if r.now != nil {
		out.VersionedObject = admission.NewLazyObject(r.now)
	}
	if r.before != nil {
		out.VersionedOldObject = admission.NewLazyObject(r.before)
	}
	return out
}

// The API server writes its type findings into a policy's status, where doctor reads them.
func TestPoliciesAreWellTyped(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range clientgoscheme.Scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	checker := validating.TypeChecker{
		SchemaResolver: resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, clientgoscheme.Scheme), RestMapper: mapper,
	}
	for _, file := range []string{"policies.yaml"} {
		for _, object := range objects(t, file) {
			if object.GetKind() != "ValidatingAdmissionPolicy" {
				continue
			}
			var policy admissionregistrationv1.ValidatingAdmissionPolicy
			decode(t, object, &policy)
			for _, warning := range checker.Check(&policy) {
				t.Errorf("%s: %s: %s", policy.Name, warning.FieldRef, warning.Warning)
			}
		}
	}
}

func conditions(in []admissionregistrationv1.MatchCondition) []cel.ExpressionAccessor {
	out := make([]cel.ExpressionAccessor, len(in))
	for i := range in {
		out[i] = (*matchconditions.MatchCondition)(&in[i])
	}
	return out
}

// compiler is the API server's of the oldest release.
func compiler(t *testing.T) *cel.CompositedCompiler {
	t.Helper()
	out, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParse(served.OldestRelease).SubtractMinor(1)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type policy struct {
	object            admissionregistrationv1.ValidatingAdmissionPolicy
	validator         validating.Validator
	conditions, rules cel.ConditionEvaluator
	rights            authorizer.Authorizer
}

func loadPolicy(t *testing.T, name string) policy { return loadPolicyFrom(t, "policies.yaml", name) }

func loadPolicyFrom(t *testing.T, file, name string) policy {
	t.Helper()
	out := policy{rights: authorizerOf(t)}
	find(t, file, "ValidatingAdmissionPolicy", name, &out.object)
	spec := out.object.Spec
	all := compiler(t)
	variables := make([]cel.NamedExpressionAccessor, len(spec.Variables))
	for i, variable := range spec.Variables {
		variables[i] = &validating.Variable{Name: variable.Name, Expression: variable.Expression}
	}
	var rules []cel.ExpressionAccessor
	messages := make([]cel.ExpressionAccessor, len(spec.Validations)) // nil for a rule without one
	for i, validation := range spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: validation.Expression, Message: validation.Message, Reason: validation.Reason})
		if validation.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}
		}
	}
	declarations := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	all.CompileAndStoreVariables(variables, declarations, environment.StoredExpressions)
	out.conditions = all.CompileCondition(conditions(spec.MatchConditions), declarations, environment.StoredExpressions)
	out.rules = all.CompileCondition(rules, declarations, environment.StoredExpressions)
	var matcher matchconditions.Matcher
	if len(spec.MatchConditions) > 0 {
		matcher = matchconditions.NewMatcher(out.conditions, spec.FailurePolicy, "policy", "validate", name)
	}
	out.validator = validating.NewValidator(
		out.rules, matcher,
		all.CompileCondition(nil, declarations, environment.StoredExpressions),
		all.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
		spec.FailurePolicy, nil)
	return out
}

// judge returns "" if the policy lets the request pass. It fails if the policy would not be asked.
func (p policy) judge(t *testing.T, r request) string {
	t.Helper()
	if !p.asked(r) {
		t.Fatalf("policy %s is not asked about %s/%s", p.object.Name, r.resource.Resource, r.subresource)
	}
	result := p.validator.Validate(t.Context(), r.resource, r.attributes(), nil, nil, celconfig.RuntimeCELCostBudget, p.rights)
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

// Rights: tess has moorage-tickets and walt wildcards in shop, mallory cluster-admin there, ina
// moorage-tickets-all everywhere, fern the condition fenced.moorage.dev/ipmi, root everything.
func authorizerOf(t *testing.T) authorizer.Authorizer {
	t.Helper()
	var all rbacObjects
	all.read(t, "rbac.yaml")
	wildcard := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	all.roles = append(all.roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Rules: wildcard})
	all.clusterRoles = append(all.clusterRoles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}, Rules: wildcard})
	all.clusterRoles = append(all.clusterRoles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fence-ipmi"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"moorage.dev"}, Resources: []string{"fencedconditions"}, ResourceNames: []string{"ipmi"}, Verbs: []string{"use"}}}})
	for user, role := range map[string]rbacv1.RoleRef{
		"tess": {Kind: "ClusterRole", Name: "moorage-tickets"}, "walt": {Kind: "Role", Name: "all"},
		"mallory": {Kind: "ClusterRole", Name: "cluster-admin"}, "ingo": {Kind: "ClusterRole", Name: "moorage-tickets-all"},
	} {
		all.roleBindings = append(all.roleBindings, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: user}, RoleRef: role,
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}})
	}
	for user, role := range map[string]string{"ina": "moorage-tickets-all", "fern": "fence-ipmi", "root": "cluster-admin"} {
		all.clusterRoleBindings = append(all.clusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}})
	}
	_, getter := validation.NewTestRuleResolver(all.roles, all.roleBindings, all.clusterRoles, all.clusterRoleBindings)
	return rbac.New(getter, getter, getter, getter)
}

type rbacObjects struct {
	roles               []*rbacv1.Role
	roleBindings        []*rbacv1.RoleBinding
	clusterRoles        []*rbacv1.ClusterRole
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
}

func (r *rbacObjects) read(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		for _, object := range objects(t, file) {
			switch object.GetKind() {
			case "Role":
				r.roles = append(r.roles, new(rbacv1.Role))
				decode(t, object, r.roles[len(r.roles)-1])
			case "RoleBinding":
				r.roleBindings = append(r.roleBindings, new(rbacv1.RoleBinding))
				decode(t, object, r.roleBindings[len(r.roleBindings)-1])
			case "ClusterRole":
				r.clusterRoles = append(r.clusterRoles, new(rbacv1.ClusterRole))
				decode(t, object, r.clusterRoles[len(r.clusterRoles)-1])
			case "ClusterRoleBinding":
				r.clusterRoleBindings = append(r.clusterRoleBindings, new(rbacv1.ClusterRoleBinding))
				decode(t, object, r.clusterRoleBindings[len(r.clusterRoleBindings)-1])
			}
		}
	}
}

func (p policy) asked(r request) bool {
	operation := admissionregistrationv1.OperationType(r.operation())
	resource := r.resource.Resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	for _, rule := range p.object.Spec.MatchConstraints.ResourceRules {
		if slices.Contains(rule.APIGroups, r.resource.Group) && (slices.Contains(rule.APIVersions, r.resource.Version) || slices.Contains(rule.APIVersions, "*")) &&
			slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, operation) {
			return true
		}
	}
	return false
}
