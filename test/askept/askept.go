// SPDX-License-Identifier: Apache-2.0

// Package askept has the simulated API server drop unknown fields of a VolumeHold. It is apart from
// test/world, since test/world needs no Kubernetes packages.
package askept

import (
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func init() {
	world.AsKept = func(e ledger.Event) ledger.Event {
		seen, is := e.(ledger.HoldSeen)
		if !is {
			return e
		}
		kept := convert.Hold(convert.HoldObject(convert.HoldContext{Volume: seen.Volume}, seen.Hold))
		kept.Hold.Version = seen.Hold.Version
		return kept
	}
}
