// SPDX-License-Identifier: Apache-2.0

// Package askept has the simulated API server keep of a VolumeHold what its object has room for, in every
// test that imports it. It stands apart from test/world, which needs none of Kubernetes' packages.
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
