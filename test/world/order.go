// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A pod that opted in comes before a pod that did not; then the pod that was bound first.
func ComesFirst(a, b ledger.Pod) bool {
	if a.OptedOut != b.OptedOut {
		return b.OptedOut
	}
	bound := func(p ledger.Pod) int64 { return cmp.Or(p.Bound, p.Created) }
	return cmp.Or(cmp.Compare(bound(a), bound(b)), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name)) < 0
}
