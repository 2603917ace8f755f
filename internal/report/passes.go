// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Passes says whether a wait for this reason usually ends by itself, soon, so
// that it is told only when it has lasted for a while.
func Passes(c ledger.Code) bool {
	switch c {
	case arbiter.Attaching, arbiter.NotReported, arbiter.NotGranted, arbiter.Detaching, arbiter.InUse,
		arbiter.DetachDelayed, arbiter.ClaimUnbound:
		return true
	}
	return false
}
