// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func nodeWith(ready corev1.ConditionStatus, conditions ...corev1.NodeCondition) *corev1.Node {
	out := node()
	out.Status.Conditions = append([]corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready,
		LastHeartbeatTime: metav1.Unix(9, 0)}}, conditions...)
	return out
}

func fencedSince(name string, status corev1.ConditionStatus, seconds int64) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(v1alpha1.FencedConditionPrefix + name), Status: status, LastTransitionTime: metav1.Unix(seconds, 0)}
}

func cutOff(driver string, seconds int64) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(v1alpha1.NetworkFencePrefix + driver), Status: "True", LastTransitionTime: metav1.Unix(seconds, 0)}
}

// To vouch for a machine takes the right to use the condition, not only to write the status.
func TestFencedConditionsAreUsedByRight(t *testing.T) {
	policy := loadPolicy(t, "moorage-fenced-conditions")
	const denied = "may not set the condition fenced.moorage.dev/"
	off, other := fencedSince("ipmi", "True", 7), fencedSince("array", "True", 7)
	const deniedFence = "may not set the condition networkfence.moorage.dev/rbd"
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: "True"}
	for name, test := range map[string]struct {
		now, before *corev1.Node
		want        string // for all without the right to every condition
		ipmi        string // for accounts that may use ipmi only
	}{
		"set":                      {nodeWith("Unknown", off), nodeWith("Unknown"), denied + "ipmi", ""},
		"set to False":             {nodeWith("True", fencedSince("ipmi", "False", 7)), nodeWith("True"), denied, ""},
		"False before":             {nodeWith("Unknown", off), nodeWith("Unknown", fencedSince("ipmi", "False", 7)), denied, ""},
		"another time":             {nodeWith("Unknown", fencedSince("ipmi", "True", 8)), nodeWith("Unknown", off), denied, ""},
		"another one":              {nodeWith("Unknown", other), nodeWith("Unknown"), denied + "array", denied + "array"},
		"one more":                 {nodeWith("Unknown", off, other), nodeWith("Unknown", off), denied + "array", denied + "array"},
		"no name":                  {nodeWith("Unknown", fencedSince("", "True", 7)), nodeWith("Unknown"), denied, denied},
		"with the Node":            {nodeWith("True", off), nil, denied, ""},
		"a Node without":           {nodeWith("True", pressure), nil, "", ""},
		"a Node without a status":  {node(), nil, "", ""},
		"taken away":               {nodeWith("True"), nodeWith("True", off), "", ""},
		"one of two taken away":    {nodeWith("True", other), nodeWith("True", off, other), "", ""},
		"left, by the kubelet":     {nodeWith("True", off), nodeWith("False", off), "", ""},
		"left, in another order":   {nodeWith("True", other, off), nodeWith("False", off, other), "", ""},
		"another condition beside": {nodeWith("Unknown", pressure, off), nodeWith("Unknown", off), "", ""},
		"cut off":                  {nodeWith("Unknown", cutOff("rbd", 7)), nodeWith("Unknown"), deniedFence, deniedFence},
		"cut off, with the Node":   {nodeWith("True", cutOff("rbd", 7)), nil, deniedFence, deniedFence},
		"cut off, left":            {nodeWith("True", cutOff("rbd", 7)), nodeWith("False", cutOff("rbd", 7)), "", ""},
		"let in":                   {nodeWith("True"), nodeWith("True", cutOff("rbd", 7)), "", ""},
		"another condition":        {nodeWith("Unknown", pressure), nodeWith("Unknown"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{resource: nodes, kind: corev1.SchemeGroupVersion.WithKind("Node"), now: test.now}
			if test.before != nil {
				r.before, r.subresource = test.before, "status"
			}
			for user, want := range map[string]string{
				kubelet: test.want, tenant: test.want, controllerUser: test.want, "walt": test.want, "ina": test.want,
				"system:serviceaccount:kube-system:node-controller": test.want, "fern": test.ipmi, "root": "",
			} {
				r.user = user
				check(t, policy.judge(t, r), want)
			}
		})
	}
}

// A kubelet's status is never refused for a Node's conditions.
func TestFencedConditionsCostLittle(t *testing.T) {
	policy := loadPolicy(t, "moorage-fenced-conditions")
	conditions := []corev1.NodeCondition{fencedSince("ipmi", "True", 7)}
	for i := range 100 {
		conditions = append(conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(fmt.Sprint("example.com/", i)), Status: "True"})
	}
	check(t, policy.judge(t, request{user: kubelet, resource: nodes, subresource: "status", kind: corev1.SchemeGroupVersion.WithKind("Node"),
		now: nodeWith("True", conditions...), before: nodeWith("False", conditions...)}), "")
}

// The example's kubectl reads the status before it patches it.
func TestTheRoleOfAFencingScriptIsEnough(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/dead-nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	for block := range strings.SplitSeq(string(page), "\n---\n") {
		text, _, _ := strings.Cut(block, "```")
		if strings.Contains(text, "kind: ClusterRole\n") {
			if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []struct{ verb, group, resource, name string }{
		{"get", "", "nodes", "n"}, {"list", "", "nodes", ""}, {"watch", "", "nodes", ""},
		{"get", "", "nodes/status", "n"}, {"patch", "", "nodes/status", "n"}, {"use", "moorage.dev", "fencedconditions", "ipmi"},
	} {
		allowed := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, want.verb) && slices.Contains(r.APIGroups, want.group) && slices.Contains(r.Resources, want.resource) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, want.name))
		})
		if !allowed {
			t.Errorf("the role of the page does not allow to %s %s %s", want.verb, want.resource, want.name)
		}
	}
}
