// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

func gates() featuregate.MutableVersionedFeatureGate {
	return feature.DefaultMutableFeatureGate.DeepCopyAndReset()
}

// Nomination writes a fact that the ticket has. This test fails once Kubernetes locks the gate.
func TestPodsAreNotNominatedByDefault(t *testing.T) {
	own := gates()
	if err := setDefaults(own); err != nil {
		t.Fatal(err)
	}
	if own.Enabled(features.NominatedNodeNameForExpectation) {
		t.Error("the gate is on")
	}
	if err := own.Set("NominatedNodeNameForExpectation=true"); err != nil {
		t.Fatal(err)
	}
	if !own.Enabled(features.NominatedNodeNameForExpectation) {
		t.Error("the gate is off although it was asked for")
	}
}

func TestCommandSetsDefaults(t *testing.T) {
	command := NewCommand()
	if feature.DefaultFeatureGate.Enabled(features.NominatedNodeNameForExpectation) {
		t.Error("the gate is on in the command")
	}
	if command.Flags().Lookup("feature-gates") == nil {
		t.Fatal("there is no flag --feature-gates")
	}
}
