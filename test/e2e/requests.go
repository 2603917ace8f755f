// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"

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
// nodes/status) since the scenario began, in the API server's order. The log may
// lag behind what a watch shows: a request is in it once it is answered.
func (s *story) requests(user, resource string, verbs ...string) []audit.Event {
	events := slices.DeleteFunc(s.everyRequest(), func(e audit.Event) bool {
		return e.User.Username != user || e.Object.Path() != resource || !slices.Contains(verbs, e.Verb) ||
			e.Stage != "ResponseComplete" || e.Response.Code >= 300
	})
	slices.SortFunc(events, func(a, b audit.Event) int { return a.Received.Compare(b.Received) })
	return events
}

// asked is how often a user has to ask something of a resource.
type asked struct {
	times          int
	user, resource string
	verbs          []string
}

// were waits until the log has them all, and returns them.
func (a asked) were(s *story) []audit.Event {
	var out []audit.Event
	s.until(fmt.Sprintf("%s asks to %s %s, %d times", a.user, strings.Join(a.verbs, " or "), a.resource, a.times), func() error {
		if out = s.requests(a.user, a.resource, a.verbs...); len(out) < a.times {
			return fmt.Errorf("it did %d times", len(out))
		}
		return nil
	})
	return out
}

// once is what a user asks at least once.
func once(user, resource string, verbs ...string) asked { return asked{1, user, resource, verbs} }

// causes fails unless a request came before another, by the API server's clock. Nothing is asked before
// its cause, while the end of the cause may be noted later: a watcher knows a write before its writer
// is answered.
func (s *story) causes(what string, first, then audit.Event) {
	s.expect(!first.Received.After(then.Received), what, "%s came before %s", then, first)
}
