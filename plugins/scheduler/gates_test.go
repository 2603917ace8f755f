// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// gates are kube-scheduler's, apart from those of the process.
func gates() featuregate.MutableVersionedFeatureGate {
	return feature.DefaultMutableFeatureGate.DeepCopyAndReset()
}

// Nobody but who asks for it pays for a write that says what the ticket says.
// The day on which Kubernetes locks the gate, this fails.
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

// The command line of moorage-scheduler has the default, and takes another.
func TestCommandSetsDefaults(t *testing.T) {
	command := NewCommand()
	if feature.DefaultFeatureGate.Enabled(features.NominatedNodeNameForExpectation) {
		t.Error("the gate is on in the command")
	}
	if command.Flags().Lookup("feature-gates") == nil {
		t.Fatal("there is no flag --feature-gates")
	}
}
