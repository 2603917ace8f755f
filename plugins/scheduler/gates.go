// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// SetDefaults turns off NominatedNodeNameForExpectation, which would write status.nominatedNodeName of
// every pod that waits in Permit, though the reservation in memory counts it already. Call it before the
// flags are registered; --feature-gates has the last word.
//
// An error means that the gate is still on: the flags were registered before, or Kubernetes has locked the
// gate.
func SetDefaults() error { return setDefaults(feature.DefaultMutableFeatureGate) }

func setDefaults(gates featuregate.MutableFeatureGate) error {
	if !gates.Enabled(features.NominatedNodeNameForExpectation) {
		return nil
	}
	if err := gates.OverrideDefault(features.NominatedNodeNameForExpectation, false); err != nil {
		return fmt.Errorf("defaults of %s: %w", features.NominatedNodeNameForExpectation, err)
	}
	return nil
}
