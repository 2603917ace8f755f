// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

type right struct{ account, verb, group, resource string }

func (r right) String() string {
	group := r.group
	if group == "" {
		group = "core"
	}
	return fmt.Sprintf("%s: %s %s (%s)", r.account, r.verb, r.resource, group)
}

// rights fails if Moorage was refused anything, or if a role of the chart grants an unused right that isn't
// known to be rare.
func (s *story) rights(ctx context.Context) error {
	return s.rightsOf(ctx, func(string) bool { return true })
}

func (s *story) beforeUpgrade(e audit.Event) bool { return e.Received.Before(s.upgraded) }

func (s *story) rightsOf(ctx context.Context, chosen func(account string) bool) error {
	events, err := s.audit.Read()
	if err != nil {
		return err
	}
	refused := slices.DeleteFunc(audit.Denied(events, sandbox.IsMoorage), s.beforeUpgrade)
	if len(refused) > 0 {
		return fmt.Errorf("%d calls of Moorage's were denied, the first: %s", len(refused), refused[0])
	}
	granted, err := s.grantedRights(ctx)
	if err != nil {
		return err
	}
	used := usedRights(events)
	var unused []string
	maps.DeleteFunc(granted, func(r right, _ bool) bool { return !chosen(r.account) })
	for r := range granted {
		if !used[r] && !streamed(r, used) && rare()[right{"", r.verb, r.group, r.resource}] == "" {
			unused = append(unused, r.String())
		}
	}
	fmt.Printf("     %d rights granted, %d used\n", len(granted), len(granted)-len(unused))
	if len(unused) > 0 {
		slices.Sort(unused)
		return fmt.Errorf("rights that nothing uses:\n%s", strings.Join(unused, "\n"))
	}
	return nil
}

func rare() map[right]string {
	const (
		elsewhere = "looked up again before a write in doubt: scenarios crash, node-failure, readd-half"
		refused   = "withdrawn where the node is refused: scenario full-node"
		events    = "written of what needs attention: scenario handover-failing"
		operating = "where a policy has attachFor or detachFor: scenarios operation-snapshot, operation-expansion"
	)
	return map[right]string{
		{"", "get", "", "nodes"}:                                                            elsewhere,
		{"", "get", "", "pods"}:                                                             elsewhere,
		{"", "get", "", "persistentvolumeclaims"}:                                           elsewhere,
		{"", "get", "", "persistentvolumes"}:                                                elsewhere,
		{"", "get", "storage.k8s.io", "volumeattachments"}:                                  elsewhere,
		{"", "patch", "storage.k8s.io", "volumeattachments"}:                                elsewhere,
		{"", "get", "moorage.dev", "volumeholds"}:                                           elsewhere,
		{"", "get", "moorage.dev", "volumetickets"}:                                         elsewhere,
		{"", "get", "moorage.dev", "nodemountreports"}:                                      elsewhere,
		{"", "patch", "moorage.dev", "nodemountreports"}:                                    "asks a node to look again before a volume leaves it: TestAskNode in internal/write",
		{"", "create", "moorage.dev", "volumetickets"}:                                      operating,
		{"", "list", "snapshot.storage.k8s.io", "volumesnapshotcontents"}:                   operating,
		{"", "watch", "snapshot.storage.k8s.io", "volumesnapshotcontents"}:                  operating,
		{"", "list", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents"}:         operating,
		{"", "watch", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents"}:        operating,
		{"", "delete", "moorage.dev", "volumetickets"}:                                      refused,
		{"", "update", "moorage.dev", "attachpolicies/status"}:                              "of a policy that has no effect: TestJudge in controller/policy",
		{"", "list", "coordination.k8s.io", "leases"}:                                       "of nodes that are not Ready, when there are many: TestLeasesOfNodesThatAreNotReady in internal/watch",
		{"", "delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: "when Standalone mode is handed over: a later chapter",
		{"", "delete", "", "pods"}:                                                          "of a node that is out of service: scenario node-failure",
		{"", "create", "", "events"}:                                                        events,
		{"", "patch", "", "events"}:                                                         events,
		{"", "list", "", "events"}:                                                          "by a leader that finds detaches by force: TestForcedDetachesAreToldOnceByAllLeaders in controller/attachment",
		{"", "use", "moorage.dev", "tickettypes"}:                                           "asked for by the policy moorage-tickets, not by a request",
		{"", "list", "scheduling.x-k8s.io", "podgroups"}:                                    "of pods that name a group",
		{"", "watch", "scheduling.x-k8s.io", "podgroups"}:                                   "of pods that name a group",
	}
}

// Where the API server streams lists, clients get their first list by a watch.
func streamed(r right, used map[right]bool) bool {
	watch := r
	watch.verb = "watch"
	return r.verb == "list" && used[watch]
}

func usedRights(events []audit.Event) map[right]bool {
	out := map[right]bool{}
	for _, e := range events {
		if e.Object != nil && sandbox.IsMoorage(e.User.Username) && !e.Denied() {
			_, account, _ := strings.Cut(e.User.Username, sandbox.MoorageNamespace+":")
			out[right{account, e.Verb, e.Object.APIGroup, e.Object.Path()}] = true
		}
	}
	return out
}

func (s *story) grantedRights(ctx context.Context) (map[right]bool, error) {
	rules, bound := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.Subject{}
	clusterRoles, err := s.client.RbacV1().ClusterRoles().List(ctx, ofMoorage)
	if err != nil {
		return nil, err
	}
	for _, role := range clusterRoles.Items {
		rules["ClusterRole/"+role.Name] = role.Rules
	}
	roles, err := s.client.RbacV1().Roles(metav1.NamespaceAll).List(ctx, ofMoorage)
	if err != nil {
		return nil, err
	}
	for _, role := range roles.Items {
		rules["Role/"+role.Name] = role.Rules
	}
	clusterBindings, err := s.client.RbacV1().ClusterRoleBindings().List(ctx, ofMoorage)
	if err != nil {
		return nil, err
	}
	for _, b := range clusterBindings.Items {
		bound["ClusterRole/"+b.RoleRef.Name] = append(bound["ClusterRole/"+b.RoleRef.Name], b.Subjects...)
	}
	bindings, err := s.client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, ofMoorage)
	if err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		bound[b.RoleRef.Kind+"/"+b.RoleRef.Name] = append(bound[b.RoleRef.Kind+"/"+b.RoleRef.Name], b.Subjects...)
	}
	out := map[right]bool{}
	for _, role := range slices.Sorted(maps.Keys(bound)) {
		for _, subject := range bound[role] {
			for _, rule := range rules[role] {
				spread(out, subject.Name, rule)
			}
		}
	}
	return out, nil
}

func spread(out map[right]bool, account string, rule rbacv1.PolicyRule) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				out[right{account, verb, group, resource}] = true
			}
		}
	}
}
