// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/test/world"
)

// The simulated API server keeps of a VolumeHold what its object has room for.
func init() {
	world.AsKept = func(e ledger.Event) ledger.Event {
		seen, is := e.(ledger.HoldSeen)
		if !is {
			return e
		}
		kept := translate.Hold(translate.HoldObject(translate.HoldContext{Volume: seen.Volume}, seen.Hold))
		kept.Hold.Version = seen.Hold.Version
		return kept
	}
}
