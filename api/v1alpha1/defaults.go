// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of an AttachPolicy.
const (
	// DefaultAfterPodGone is the attach/detach controller's wait for an unmount
	// (kubernetes pkg/controller/volume/attachdetach, 6 minutes).
	DefaultAfterPodGone = 6 * time.Minute
)

// WithDefaults returns a copy with a value for every field with a default: all except storageClassName,
// slots.max, workers, forceDetach.afterUnreachable, forceDetach.fencedCondition, attachFor and detachFor,
// whose absence means that there is no such limit or rule. Called on a nil pointer it returns the defaults
// of a driver without a policy. Safe for parallel use.
func (in *AttachPolicySpec) WithDefaults() AttachPolicySpec {
	var out AttachPolicySpec
	if in != nil {
		in.DeepCopyInto(&out)
	}
	setDefault(&out.LiveMigration, new(bool))
	setDefault(&out.UnpublishFences, new(bool))
	setDefault(&out.DetachDelay, &metav1.Duration{})
	setDefault(&out.Slots, &SlotPolicy{})
	setDefault(&out.Slots.Headroom, new(int32))
	setDefault(&out.ForceDetach, &ForceDetachPolicy{})
	setDefault(&out.ForceDetach.AfterPodGone, DefaultAfterPodGone.String())
	return out
}

// setDefault sets *field to value where it is unset.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}
