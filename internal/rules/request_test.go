// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The order is by priority, age, namespace, name and UID.
func TestRequestsHaveOneOrder(t *testing.T) {
	request := func(kind ledger.TicketType, created int64, namespace, name, uid string) rules.Request {
		return rules.Request{Type: kind, Created: created, Who: ledger.Requester{Namespace: namespace, Name: name, UID: uid}}
	}
	ordered := []rules.Request{
		request(ledger.TypeExpansion, 9, "z", "z", "z"),
		request(ledger.TypeManual, 1, "z", "z", "z"),
		request(ledger.TypeManual, 2, "team", "a", "9"),
		request(ledger.TypeSalvage, 2, "team", "b", "1"),
		request(ledger.TypeManual, 2, "team", "b", "2"),
		request(ledger.TypeManual, 2, "team-a", "a", "0"),
		request(ledger.TypeBackup, 1, "a", "a", "a"),
		request("Unheard", 0, "a", "a", "a"),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := rules.CompareRequests(a, b); got > 0 != (i > j) || got < 0 != (i < j) {
				t.Errorf("%+v and %+v compare as %d", a, b, got)
			}
		}
	}
	mixed := slices.Clone(ordered)
	slices.Reverse(mixed)
	slices.SortFunc(mixed, rules.CompareRequests)
	for i := range mixed {
		if mixed[i].Who != ordered[i].Who || mixed[i].Type != ordered[i].Type {
			t.Errorf("sorted, %d is %+v", i, mixed[i])
		}
	}
}
