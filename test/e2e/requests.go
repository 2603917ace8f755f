// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

// Users of the API server, as its audit log names them.
const (
	controllerUser = "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + sandbox.MoorageController
	schedulerUser  = "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + sandbox.MoorageScheduler
	attacherUser   = "system:serviceaccount:disk-system:" + sandbox.Attacher
	// attachDetachUser is kube-controller-manager's attach/detach controller.
	attachDetachUser = "system:serviceaccount:kube-system:attachdetach-controller"
)

// everyRequest lists what the API server was asked since the scenario began.
func (s *story) everyRequest() []audit.Event {
	events, err := s.Audit.Read()
	s.must(err)
	return events
}

// requests lists what a user successfully asked of a resource (such as
// nodes/status) since the scenario began, in the API server's order.
func (s *story) requests(user, resource string, verbs ...string) []audit.Event {
	events := slices.DeleteFunc(s.everyRequest(), func(e audit.Event) bool {
		return e.User.Username != user || e.Object.Path() != resource || !slices.Contains(verbs, e.Verb) ||
			e.Stage != "ResponseComplete" || e.Response.Code >= 300
	})
	slices.SortFunc(events, func(a, b audit.Event) int { return a.Received.Compare(b.Received) })
	return events
}

// causes fails unless the first request of one list was answered before the
// first one of the other was asked, by the API server's clock. That is the
// order of cause and effect, and not a race, where the second is only made
// once the first is known to be done.
func (s *story) causes(what string, first, then []audit.Event) {
	s.expect(len(first) > 0 && len(then) > 0, what, "there were %d of the one and %d of the other", len(first), len(then))
	s.expect(!first[0].Finished.After(then[0].Received), what, "%s came before %s", then[0], first[0])
}
