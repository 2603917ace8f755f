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
	// DefaultYieldNotice is how long a ticket that yields has to let go of its volumes.
	DefaultYieldNotice = 30 * time.Second
	// DefaultOperationTimeout is how long a ticket for one of attachFor or detachFor exists at
	// most.
	DefaultOperationTimeout = 15 * time.Minute
	// DefaultAfterNodeDeleted is how long after a node stopped being Ready tickets there end,
	// where there is no Node any more.
	DefaultAfterNodeDeleted = 6 * time.Minute
)

// WithDefaults returns a copy with a value for every field with a default: all except storageClassName,
// slots.max, workers, forceDetach.afterUnreachable, forceDetach.fencedCondition, attachFor, detachFor
// and endTickets.afterNodeUnreachable, whose absence means that there is no such limit or rule. Called
// on a nil pointer it returns the defaults of a driver without a policy. Safe for parallel use.
func (in *AttachPolicySpec) WithDefaults() AttachPolicySpec {
	var out AttachPolicySpec
	if in != nil {
		in.DeepCopyInto(&out)
	}
	setDefault(&out.EmptyAccessModes, EmptyAccessModesShared)
	setDefault(&out.LiveMigration, new(bool))
	setDefault(&out.UnpublishFences, new(bool))
	setDefault(&out.RepairStaged, new(bool))
	setDefault(&out.DetachDelay, &metav1.Duration{})
	setDefault(&out.YieldNotice, &metav1.Duration{Duration: DefaultYieldNotice})
	setDefault(&out.OperationTimeout, &metav1.Duration{Duration: DefaultOperationTimeout})
	setDefault(&out.EndTickets, &EndTicketsPolicy{})
	setDefault(&out.EndTickets.AfterNodeDeleted, &metav1.Duration{Duration: DefaultAfterNodeDeleted})
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
