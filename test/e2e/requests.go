// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const (
	controllerUser   = "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + sandbox.MoorageController
	schedulerUser    = "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + sandbox.MoorageScheduler
	attacherUser     = "system:serviceaccount:disk-system:" + sandbox.Attacher
	attachDetachUser = "system:serviceaccount:kube-system:attachdetach-controller"
)

func (s *story) everyRequest() []audit.Event {
	events, err := s.Audit.Read()
	s.must(err)
	return events
}

// The log may lag behind a watch: a request is in it once it is answered.
func (s *story) requests(user, resource string, verbs ...string) []audit.Event {
	events := slices.DeleteFunc(s.everyRequest(), func(e audit.Event) bool {
		return e.User.Username != user || e.Object.Path() != resource || !slices.Contains(verbs, e.Verb) ||
			e.Stage != "ResponseComplete" || e.Response.Code >= 300
	})
	slices.SortFunc(events, func(a, b audit.Event) int { return a.Received.Compare(b.Received) })
	return events
}

type asked struct {
	times          int
	user, resource string
	verbs          []string
}

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

func once(user, resource string, verbs ...string) asked { return asked{1, user, resource, verbs} }

// causes compares arrivals: a watcher may know a write before its writer is answered.
func (s *story) causes(what string, first, then audit.Event) {
	s.expect(!first.Received.After(then.Received), what, "%s came before %s", then, first)
}
