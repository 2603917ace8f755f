// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/manifests"
)

// Both are more than any bound of an expression.
const few, many = 1100, 2200

// CEL searches its record of all steps in a loop: 16,000 annotations take seconds. Loops need a bound;
// comparing lists is cheap.
func TestCostsDoNotGrowWithObjects(t *testing.T) {
	for _, is := range everyPolicy(t) {
		policy := loadPolicyFrom(t, is.file, is.name)
		t.Run(is.name, func(t *testing.T) {
			measured := 0
			for _, rule := range policy.object.Spec.MatchConstraints.ResourceRules {
				for _, resource := range rule.Resources {
					for _, operation := range rule.Operations {
						measured += grows(t, policy.cost, resource, operation)
					}
				}
			}
			if measured == 0 {
				t.Error("nothing was measured")
			}
		})
	}
	t.Run("the webhook's match conditions", func(t *testing.T) {
		grows(t, webhookCost(t), "pods", admissionregistrationv1.Create)
	})
}

// Each of at most seven policies is evaluated in every matching request.
func TestPoliciesAreFew(t *testing.T) {
	if count := len(everyPolicy(t)); count > 7 {
		t.Errorf("there are %d policies", count)
	}
}

func TestObjectsAreFew(t *testing.T) {
	if count := len(renderRelease(t, "")); count >= 60 {
		t.Errorf("the default installation has %d objects", count)
	}
}

type policyIn struct{ name, file string }

func everyPolicy(t *testing.T) []policyIn {
	t.Helper()
	var all []policyIn
	const file = "policies.yaml"
	for _, object := range objects(t, file) {
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			all = append(all, policyIn{object.GetName(), file})
		}
	}
	return all
}

func grows(t *testing.T, cost func(*testing.T, request) int64, resource string, operation admissionregistrationv1.OperationType) int {
	t.Helper()
	kind, known := grown()[resource]
	if !known {
		t.Fatalf("there is no object to measure %s with", resource)
	}
	count := 0
	for _, user := range []string{tenant, kubelet, controllerUser, schedulerUser, "system:serviceaccount:" + manifests.Namespace + ":moorage-node", "root"} {
		for _, prefix := range []string{"example.com/", "moorage.dev/", "fenced.moorage.dev/", "networkfence.moorage.dev/"} {
			of := func(n int) int64 {
				r := kind.request
				r.user, r.namespace = user, "shop"
				r.now, r.before = kind.of(n, prefix), kind.of(n, prefix)
				r.now.(metav1.Object).SetGeneration(2)
				switch operation {
				case admissionregistrationv1.Create:
					r.before = nil
				case admissionregistrationv1.Delete:
					r.now = nil
				case admissionregistrationv1.Update, admissionregistrationv1.Connect, admissionregistrationv1.OperationAll:
				}
				return cost(t, r)
			}
			count++
			if less, more := of(few), of(many); more-less > many-few {
				t.Errorf("%s %s by %s, entries %s…: %d entries cost %d, %d cost %d", operation, resource, user, prefix, few, less, many, more)
			}
		}
	}
	return count
}

func (p policy) cost(t *testing.T, r request) int64 {
	t.Helper()
	return evaluationCost(t, p.conditions, r, p.rights) + evaluationCost(t, p.rules, r, p.rights)
}

func webhookCost(t *testing.T) func(*testing.T, request) int64 {
	t.Helper()
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	find(t, "webhook.yaml", "MutatingWebhookConfiguration", "moorage-webhook", &configuration)
	filter := compiler(t).CompileCondition(conditions(configuration.Webhooks[0].MatchConditions), cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	return func(t *testing.T, r request) int64 {
		t.Helper()
		return evaluationCost(t, filter, r, nil)
	}
}

func evaluationCost(t *testing.T, expressions cel.ConditionEvaluator, r request, rights authorizer.Authorizer) int64 {
	t.Helper()
	attributes := r.attributes()
	asked := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(r.kind))
	results, left, err := expressions.ForInput(t.Context(), attributes, asked, cel.OptionalVariableBindings{Authorizer: rights}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Error != nil {
			t.Errorf("%s by %s: %v", result.ExpressionAccessor.GetExpression(), r.user, result.Error)
		}
	}
	return celconfig.RuntimeCELCostBudget - left
}

type growing struct {
	request request
	of      func(n int, prefix string) runtime.Object
}

func grown() map[string]growing {
	core := func(resource, subresource, kind string, of func(int, string) runtime.Object) growing {
		return growing{request{resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, subresource: subresource, kind: corev1.SchemeGroupVersion.WithKind(kind)}, of}
	}
	ours := func(resource, subresource, kind string, of func(int, string) runtime.Object) growing {
		return growing{request{resource: v1alpha1.SchemeGroupVersion.WithResource(resource), subresource: subresource, kind: v1alpha1.SchemeGroupVersion.WithKind(kind)}, of}
	}
	lease := growing{request{resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), kind: coordinationv1.SchemeGroupVersion.WithKind("Lease")},
		func(n int, prefix string) runtime.Object {
			return &coordinationv1.Lease{ObjectMeta: grownMeta(n, prefix)}
		}}
	binding := func(n int, prefix string) runtime.Object { return &corev1.Binding{ObjectMeta: grownMeta(n, prefix)} }
	hold := func(n int, prefix string) runtime.Object {
		return &v1alpha1.VolumeHold{ObjectMeta: grownMeta(n, prefix)}
	}
	return map[string]growing{
		"pods": core("pods", "", "Pod", grownPod), "pods/status": core("pods", "status", "Pod", grownPod),
		"pods/ephemeralcontainers": core("pods", "ephemeralcontainers", "Pod", grownPod), "pods/resize": core("pods", "resize", "Pod", grownPod),
		"pods/binding": core("pods", "binding", "Binding", binding), "bindings": core("bindings", "", "Binding", binding),
		"nodes": core("nodes", "", "Node", grownNode), "nodes/status": core("nodes", "status", "Node", grownNode),
		"volumetickets":           ours(v1alpha1.ResourceVolumeTickets, "", v1alpha1.KindVolumeTicket, grownTicket),
		"volumetickets/status":    ours(v1alpha1.ResourceVolumeTickets, "status", v1alpha1.KindVolumeTicket, grownTicket),
		"nodemountreports":        ours(v1alpha1.ResourceNodeMountReports, "", v1alpha1.KindNodeMountReport, grownNodeMountReport),
		"nodemountreports/status": ours(v1alpha1.ResourceNodeMountReports, "status", v1alpha1.KindNodeMountReport, grownNodeMountReport),
		"volumeholds":             ours(v1alpha1.ResourceVolumeHolds, "", v1alpha1.KindVolumeHold, hold),
		"leases":                  lease, "leasecandidates": lease,
	}
}

func grownMeta(n int, prefix string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: "shop", Name: "grown", Annotations: map[string]string{}, Labels: map[string]string{}}
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		out.Annotations[name], out.Labels[name] = "", ""
		out.Finalizers = append(out.Finalizers, name)
		out.OwnerReferences = append(out.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID(name)})
	}
	return out
}

func grownPod(n int, prefix string) runtime.Object {
	out := &corev1.Pod{ObjectMeta: grownMeta(n, prefix)}
	for i := range n {
		out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprintf("%s%d", prefix, i)), Status: "True"})
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprint(i)})
	}
	return out
}

func grownNode(n int, prefix string) runtime.Object {
	out := &corev1.Node{ObjectMeta: grownMeta(n, prefix)}
	for i := range n {
		name := corev1.UniqueVolumeName(fmt.Sprintf("v%d", i))
		out.Status.Conditions = append(out.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(fmt.Sprintf("%s%d", prefix, i)), Status: "True"})
		out.Status.VolumesAttached = append(out.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
		out.Status.VolumesInUse = append(out.Status.VolumesInUse, name)
		out.Status.Images = append(out.Status.Images, corev1.ContainerImage{Names: []string{string(name)}})
	}
	return out
}

func grownTicket(n int, prefix string) runtime.Object {
	out := &v1alpha1.VolumeTicket{ObjectMeta: grownMeta(n, prefix), Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n"}}
	for i := range n {
		claim := fmt.Sprintf("c%d", i)
		out.Spec.Volumes = append(out.Spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: claim}})
		out.Status.Volumes = append(out.Status.Volumes, v1alpha1.TicketVolumeStatus{Claim: claim})
	}
	return out
}

func grownNodeMountReport(n int, prefix string) runtime.Object {
	out := &v1alpha1.NodeMountReport{ObjectMeta: grownMeta(n, prefix)}
	for i := range n {
		handle := fmt.Sprint(i)
		out.Status.Volumes = append(out.Status.Volumes, v1alpha1.ReportedVolume{Path: handle, Driver: "d", Handle: handle})
	}
	return out
}
