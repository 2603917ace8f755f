// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

func TestRightsAreGrantedAndUsedByTheSameName(t *testing.T) {
	granted := map[right]bool{}
	spread(granted, "moorage-controller", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes/status"}, Verbs: []string{"get", "patch"}})
	event := audit.Event{Verb: "patch", Object: &audit.Object{Resource: "nodes", Subresource: "status", Name: "worker-1"}}
	event.User.Username = "system:serviceaccount:" + sandbox.MoorageNamespace + ":moorage-controller"
	refused := event
	refused.Verb = "get"
	refused.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
	stranger := event
	stranger.Verb, stranger.User.Username = "get", "system:serviceaccount:shop:moorage-controller"
	used := usedRights([]audit.Event{event, refused, stranger})
	if len(granted) != 4 || len(used) != 1 || !granted[right{"moorage-controller", "patch", "", "nodes/status"}] || !used[right{"moorage-controller", "patch", "", "nodes/status"}] {
		t.Errorf("granted %v, used %v", granted, used)
	}
}
