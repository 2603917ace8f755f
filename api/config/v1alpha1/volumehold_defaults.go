// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// What an absent field of VolumeHoldArgs means.
const (
	DefaultHeld         = 100
	DefaultNear         = 60
	DefaultBalance      = 20
	DefaultGrantTimeout = 30 * time.Second
	// MaxGrantTimeout is what the scheduling framework lets a pod wait in Permit
	// at most (kubernetes pkg/scheduler/framework/runtime, maxTimeout).
	MaxGrantTimeout = 15 * time.Minute
	// MaxWeight bounds each weight, so that no score overflows.
	MaxWeight = 1000
)

// WithDefaults returns a copy in which every field is set. Called on a nil
// pointer it returns the defaults. Safe for parallel use.
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
	setDefault(&out.GrantTimeout, metav1.Duration{Duration: DefaultGrantTimeout})
	if out.OnControllerDown == "" {
		out.OnControllerDown = v1alpha1.ControllerDownWait
	}
	return out
}

// setDefault points *field to value where it points nowhere.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Validate reports everything that is wrong with args whose defaults are set,
// each with the field and what it may be.
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
	if timeout := in.GrantTimeout.Duration; timeout <= 0 || timeout >= MaxGrantTimeout {
		errs = append(errs, fmt.Errorf("grantTimeout is %s: it must be above 0s and below %s, where the scheduling framework itself gives up", timeout, MaxGrantTimeout))
	}
	switch in.OnControllerDown {
	case v1alpha1.ControllerDownWait, v1alpha1.ControllerDownBindUngranted:
	default:
		errs = append(errs, fmt.Errorf("onControllerDown is %q: it must be %s or %s", in.OnControllerDown, v1alpha1.ControllerDownWait, v1alpha1.ControllerDownBindUngranted))
	}
	return errors.Join(errs...)
}
