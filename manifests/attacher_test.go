// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const attachers = `
attacher:
  drivers:
    - {name: disk.moorage.dev, namespace: disk-system, serviceAccount: csi-attacher,
       publishSecrets: [{namespace: vault, name: key}, {namespace: vault, name: other}, {namespace: shop, name: key}]}
    - {name: tape.example.com, namespace: kube-system, serviceAccount: tape-controller, podLabels: {app: tape}, metricsPort: 9810}
metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}
`

// Every scenario runs with the chart's rights, and no call is denied.
func TestAttachersHaveTheRightsThatAreTried(t *testing.T) {
	r := renderRelease(t, attachers)
	var given, tried rbacv1.ClusterRole
	decode(t, r["ClusterRole//moorage-attacher"], &given)
	raw, err := os.ReadFile("../test/sandbox/manifests/driver/driver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(raw), "\n---\n") {
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &role) == nil && role.Kind == "ClusterRole" && role.Name == "disk-csi-attacher" {
			tried = role
		}
	}
	if len(tried.Rules) == 0 || !reflect.DeepEqual(given.Rules, tried.Rules) {
		t.Errorf("the chart gives %+v, the sandbox %+v", given.Rules, tried.Rules)
	}
}

// An account may take its own Lease and read its own Secrets only.
func TestAttachersAreBoundToTheirDrivers(t *testing.T) {
	r := renderRelease(t, attachers)
	for driver, want := range map[string]struct {
		account, namespace, lease string
		secrets                   map[string][]string
	}{
		"disk.moorage.dev": {"csi-attacher", "disk-system", "external-attacher-leader-disk-moorage-dev", map[string][]string{"vault": {"key", "other"}, "shop": {"key"}}},
		"tape.example.com": {"tape-controller", "kube-system", "external-attacher-leader-tape-example-com", nil},
	} {
		name := "moorage-attacher-" + driver
		account := rbacv1.Subject{Kind: "ServiceAccount", Name: want.account, Namespace: want.namespace}
		var everywhere rbacv1.ClusterRoleBinding
		decode(t, r["ClusterRoleBinding//"+name], &everywhere)
		if !slices.Equal(everywhere.Subjects, []rbacv1.Subject{account}) || everywhere.RoleRef.Name != "moorage-attacher" {
			t.Errorf("%s: %+v is bound to %s", driver, everywhere.Subjects, everywhere.RoleRef.Name)
		}
		var lease rbacv1.Role
		decode(t, r["Role/"+want.namespace+"/"+name], &lease)
		if len(lease.Rules) != 2 || !slices.Equal(lease.Rules[0].Verbs, []string{"create"}) ||
			!slices.Equal(lease.Rules[1].ResourceNames, []string{want.lease}) || !slices.Equal(lease.Rules[1].Verbs, []string{"get", "update"}) {
			t.Errorf("%s: its rights to Leases are %+v", driver, lease.Rules)
		}
		bindings := map[string]string{want.namespace: name}
		for namespace, secrets := range want.secrets {
			var role rbacv1.Role
			decode(t, r["Role/"+namespace+"/"+name+"-secrets"], &role)
			if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, secrets) || !slices.Equal(role.Rules[0].Verbs, []string{"get"}) {
				t.Errorf("%s: its rights to Secrets in %s are %+v", driver, namespace, role.Rules)
			}
			bindings[namespace] = name + "-secrets"
		}
		for namespace, role := range bindings {
			var binding rbacv1.RoleBinding
			decode(t, r["RoleBinding/"+namespace+"/"+role], &binding)
			if !slices.Equal(binding.Subjects, []rbacv1.Subject{account}) || binding.RoleRef.Name != role || binding.RoleRef.Kind != "Role" {
				t.Errorf("%s: in %s %+v is bound to %s", driver, namespace, binding.Subjects, binding.RoleRef.Name)
			}
		}
	}
	for key, object := range r {
		rules, _, _ := strings.Cut(key, "/")
		if rules != "Role" && rules != "ClusterRole" || !strings.Contains(key, "attacher") {
			continue
		}
		var role rbacv1.ClusterRole
		decode(t, object, &role)
		for _, rule := range role.Rules {
			if slices.Contains(slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups), "*") ||
				slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
				t.Errorf("%s has the rule %+v", key, rule)
			}
		}
	}
}
