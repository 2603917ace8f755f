// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/moorage-dev/moorage/manifests"
)

type grant struct {
	namespace string
	rule      rbacv1.PolicyRule
}

// Also the names of Kubernetes' roles that the accounts are bound to.
type rights struct {
	grants map[string][]grant
	system map[string][]string
}

func loadRights(t *testing.T) rights {
	t.Helper()
	files := slices.Concat(objects(t, "rbac.yaml"), objects(t, "extender.yaml"))
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range files {
		switch object.GetKind() {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole
			decode(t, object, &role)
			rules[object.GetKind()+"/"+role.Name] = role.Rules
		}
	}
	out := rights{grants: map[string][]grant{}, system: map[string][]string{}}
	for _, object := range files {
		if !strings.HasSuffix(object.GetKind(), "Binding") {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		decode(t, object, &binding)
		for _, subject := range binding.Subjects {
			if subject.Kind != "ServiceAccount" || subject.Namespace != manifests.Namespace {
				t.Errorf("%s %s gives rights to %+v", object.GetKind(), binding.Name, subject)
			}
			own, ok := rules[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
			if !ok {
				out.system[subject.Name] = append(out.system[subject.Name], binding.RoleRef.Name)
			}
			for _, rule := range own {
				out.grants[subject.Name] = append(out.grants[subject.Name], grant{object.GetNamespace(), rule})
			}
		}
	}
	return out
}

// An empty name stands for any object.
func (r rights) may(account, verb, group, resource, namespace, name string) bool {
	return slices.ContainsFunc(r.grants[account], func(g grant) bool {
		return (g.namespace == "" || g.namespace == namespace) &&
			slices.Contains(g.rule.Verbs, verb) && slices.Contains(g.rule.APIGroups, group) && slices.Contains(g.rule.Resources, resource) &&
			(len(g.rule.ResourceNames) == 0 || slices.Contains(g.rule.ResourceNames, name))
	})
}

func TestComponentsMayDoWhatTheyDo(t *testing.T) {
	all := loadRights(t)
	const own, elsewhere = manifests.Namespace, "shop"
	tests := []struct {
		account, verbs, group, resource, namespace, name string
		want                                             bool
	}{
		{"moorage-controller", "get list watch", "", "nodes", "", "", true},
		{"moorage-controller", "get list watch", "", "pods", elsewhere, "", true},
		{"moorage-controller", "get list watch", "", "persistentvolumes", "", "", true},
		{"moorage-controller", "get list watch", "", "persistentvolumeclaims", elsewhere, "", true},
		{"moorage-controller", "list watch", "storage.k8s.io", "csinodes", "", "", true},
		{"moorage-controller", "list watch", "storage.k8s.io", "csidrivers", "", "", true},
		{"moorage-controller", "list watch", "storage.k8s.io", "storageclasses", "", "", true},
		{"moorage-controller", "get list watch create patch delete", "storage.k8s.io", "volumeattachments", "", "", true},
		{"moorage-controller", "patch", "", "nodes/status", "", "", true},
		{"moorage-controller", "get create delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "moorage-volumes-attached", true},
		{"moorage-controller", "update patch delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "another", false},
		{"moorage-controller", "create update patch delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", false},
		{"moorage-controller", "patch", "", "pods/status", elsewhere, "", true},
		{"moorage-controller", "get list watch delete", "moorage.dev", "volumetickets", elsewhere, "", true},
		{"moorage-controller", "update", "moorage.dev", "volumetickets/status", elsewhere, "", true},
		// Tickets for operations, of these types only.
		{"moorage-controller", "create", "moorage.dev", "volumetickets", elsewhere, "", true},
		{"moorage-controller", "use", "moorage.dev", "tickettypes", elsewhere, "Snapshot", true},
		{"moorage-controller", "use", "moorage.dev", "tickettypes", elsewhere, "Clone", true},
		{"moorage-controller", "use", "moorage.dev", "tickettypes", elsewhere, "Expansion", true},
		{"moorage-controller", "use", "moorage.dev", "tickettypes", elsewhere, "Restore", false},
		{"moorage-controller", "use", "moorage.dev", "tickettypes", elsewhere, "Pod", false},
		{"moorage-controller", "list watch", "snapshot.storage.k8s.io", "volumesnapshotcontents", "", "", true},
		{"moorage-controller", "list watch", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents", "", "", true},
		{"moorage-controller", "create update patch delete", "snapshot.storage.k8s.io", "volumesnapshotcontents", "", "", false},
		{"moorage-controller", "get list watch create update delete", "moorage.dev", "volumeholds", "", "", true},
		{"moorage-controller", "get list watch patch", "moorage.dev", "nodemountreports", "", "", true},
		{"moorage-controller", "create update delete", "moorage.dev", "nodemountreports", "", "", false},
		{"moorage-controller", "update patch", "moorage.dev", "nodemountreports/status", "", "", false},
		{"moorage-controller", "list watch", "moorage.dev", "attachpolicies", "", "", true},
		{"moorage-controller", "update", "moorage.dev", "attachpolicies/status", "", "", true},
		{"moorage-controller", "create update patch delete", "moorage.dev", "attachpolicies", "", "", false},
		{"moorage-controller", "create patch", "", "events", elsewhere, "", true},
		{"moorage-controller", "list", "", "events", "default", "", true},
		{"moorage-controller", "get list watch delete", "", "events", elsewhere, "", false},
		{"moorage-controller", "create", "coordination.k8s.io", "leases", own, "", true},
		{"moorage-controller", "get update", "coordination.k8s.io", "leases", own, "moorage-controller", true},
		{"moorage-scheduler", "get list watch", "moorage.dev", "volumetickets", elsewhere, "", true},
		{"moorage-scheduler", "update", "moorage.dev", "volumetickets/status", elsewhere, "", true},
		{"moorage-scheduler", "list watch", "moorage.dev", "volumeholds", "", "", true},
		{"moorage-scheduler", "list watch", "moorage.dev", "attachpolicies", "", "", true},
		{"moorage-scheduler", "get update", "coordination.k8s.io", "leases", own, "moorage-scheduler", true},

		{"moorage-scheduler", "get", "", "services", own, "moorage-extender", true},
		{"moorage-scheduler", "create", "discovery.k8s.io", "endpointslices", own, "", true},
		{"moorage-scheduler", "patch", "discovery.k8s.io", "endpointslices", own, "moorage-extender", true},
		{"moorage-scheduler", "patch delete", "discovery.k8s.io", "endpointslices", own, "moorage-webhook-abcde", false},
		{"moorage-scheduler", "create patch", "discovery.k8s.io", "endpointslices", elsewhere, "moorage-extender", false},
		{"moorage-scheduler", "get", "", "services", own, "moorage-webhook", false},

		// The scheduler writes grants, the controller holds, the attacher an attachment's status.
		{"moorage-scheduler", "patch", "moorage.dev", "volumetickets/status", elsewhere, "", false},
		{"moorage-scheduler", "create update patch delete", "moorage.dev", "volumetickets", elsewhere, "", false},
		{"moorage-scheduler", "use", "moorage.dev", "tickettypes", elsewhere, "Pod", false},
		{"moorage-scheduler", "create update patch delete", "moorage.dev", "volumeholds", "", "", false},
		{"moorage-scheduler", "create delete", "storage.k8s.io", "volumeattachments", "", "", false},
		{"moorage-controller", "update patch", "moorage.dev", "volumetickets", elsewhere, "", false},
		{"moorage-controller", "update patch", "storage.k8s.io", "volumeattachments/status", "", "", false},
		{"moorage-controller", "get list watch", "", "secrets", own, "", false},
		{"moorage-controller", "update patch", "", "pods", elsewhere, "", false},
		{"moorage-controller", "create", "", "pods/binding", elsewhere, "", false},
		{"moorage-controller", "update patch delete", "", "nodes", "", "", false},
		{"moorage-controller", "get update patch", "coordination.k8s.io", "leases", own, "moorage-scheduler", false},
		{"moorage-controller", "get list", "coordination.k8s.io", "leases", "kube-node-lease", "worker-1", true},
		{"moorage-controller", "watch create update patch delete", "coordination.k8s.io", "leases", "kube-node-lease", "worker-1", false},
		{"moorage-scheduler", "get list", "coordination.k8s.io", "leases", "kube-node-lease", "worker-1", true},
		{"moorage-scheduler", "watch create update patch delete", "coordination.k8s.io", "leases", "kube-node-lease", "worker-1", false},
	}
	for _, test := range tests {
		for _, verb := range strings.Fields(test.verbs) {
			if got := all.may(test.account, verb, test.group, test.resource, test.namespace, test.name); got != test.want {
				t.Errorf("%s may %s %s/%s %q in %q: %t, want %t", test.account, verb, test.group, test.resource, test.name, test.namespace, got, test.want)
			}
		}
	}
	if len(all.grants["moorage-webhook"]) > 0 || len(all.system["moorage-webhook"]) > 0 {
		t.Error("the webhook has rights, and talks to nobody")
	}
	if got := all.system["moorage-scheduler"]; !slices.Equal(got, []string{"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader"}) {
		t.Errorf("the scheduler is bound to %v of Kubernetes' roles", got)
	}
	if got := all.system["moorage-controller"]; len(got) > 0 {
		t.Errorf("the controller is bound to %v of Kubernetes' roles", got)
	}
}

func TestNoWildcards(t *testing.T) {
	for account, grants := range loadRights(t).grants {
		for _, g := range grants {
			if slices.Contains(slices.Concat(g.rule.Verbs, g.rule.Resources, g.rule.APIGroups), "*") || len(g.rule.NonResourceURLs) > 0 {
				t.Errorf("%s has the rule %+v", account, g.rule)
			}
		}
	}
}
