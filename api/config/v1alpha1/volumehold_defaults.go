// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of VolumeHoldArgs.
const (
	DefaultHeld    = 100
	DefaultNear    = 60
	DefaultBalance = 20
	// MaxWeight bounds each weight, so that no score overflows.
	MaxWeight = 1000
)

// WithDefaults returns a copy with every field set. Called on a nil pointer it returns the defaults.
// Safe for parallel use.
func (in *VolumeHoldArgs) WithDefaults() VolumeHoldArgs {
	var out VolumeHoldArgs
	if in != nil {
		in.DeepCopyInto(&out)
	}
	if out.TypeMeta == (metav1.TypeMeta{}) {
		out.APIVersion, out.Kind = GroupVersion, KindVolumeHoldArgs
	}
	setDefault(&out.Weights, VolumeHoldWeights{})
	setDefault(&out.Weights.Held, DefaultHeld)
	setDefault(&out.Weights.Near, DefaultNear)
	setDefault(&out.Weights.Balance, DefaultBalance)
	return out
}

// setDefault points *field to value where it points nowhere.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Validate reports all faults of args with defaults, each with the field and its permitted values.
func (in *VolumeHoldArgs) Validate() error {
	var errs []error
	if in.APIVersion != GroupVersion || in.Kind != KindVolumeHoldArgs {
		errs = append(errs, fmt.Errorf("args are of %s %s: leave apiVersion and kind out, or write %s %s", in.APIVersion, in.Kind, GroupVersion, KindVolumeHoldArgs))
	}
	sum := int64(0)
	for _, weight := range []struct {
		field string
		value int64
	}{{"held", *in.Weights.Held}, {"near", *in.Weights.Near}, {"balance", *in.Weights.Balance}} {
		if weight.value < 0 || weight.value > MaxWeight {
			errs = append(errs, fmt.Errorf("weights.%s is %d: it must be from 0 to %d", weight.field, weight.value, MaxWeight))
		}
		sum += weight.value
	}
	if sum == 0 {
		errs = append(errs, errors.New("weights are all 0: to score no node, disable the plugin VolumeHold at score and preScore instead"))
	}
	return errors.Join(errs...)
}
