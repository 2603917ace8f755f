// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const loadUser = "sandbox-admin"

// Write counts all kubelets as one user, system:node:*.
type Write = audit.Write

// from is included
type window struct{ from, to time.Time }

func (w window) contains(t time.Time) bool { return !t.Before(w.from) && t.Before(w.to) }

func writesIn(events []audit.Event, w window) []Write {
	var in []audit.Event
	for _, e := range events {
		if e.User.Username == loadUser || !w.contains(e.Received) {
			continue
		}
		e.User.Username = userName(e.User.Username)
		in = append(in, e)
	}
	return audit.Writes(in)
}

func mergeWrites(lists ...[]Write) []Write {
	type key struct{ user, verb, resource string }
	sums := map[key]Write{}
	for _, list := range lists {
		for _, w := range list {
			k := key{w.User, w.Verb, w.Resource}
			sum := sums[k]
			w.Count, w.Failed = w.Count+sum.Count, w.Failed+sum.Failed
			sums[k] = w
		}
	}
	out := make([]Write, 0, len(sums))
	for _, w := range sums {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Write) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

func total(list []Write) int {
	n := 0
	for _, w := range list {
		n += w.Count
	}
	return n
}
