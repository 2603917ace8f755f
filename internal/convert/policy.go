// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Policy makes a fact of an AttachPolicy.
func Policy(p *v1alpha1.AttachPolicy) ledger.Policy {
	spec := &p.Spec
	fact := ledger.Policy{
		Name: p.Name, Version: p.ResourceVersion, Created: created(p.CreationTimestamp),
		Driver: spec.Driver, Class: spec.StorageClassName,
		DetachDelay:     duration(spec.DetachDelay),
		LiveMigration:   spec.LiveMigration != nil && *spec.LiveMigration,
		UnpublishFences: spec.UnpublishFences != nil && *spec.UnpublishFences,
	}
	if spec.Slots != nil {
		fact.MaxSlots = spec.Slots.Max
		if spec.Slots.Headroom != nil {
			fact.Headroom = *spec.Slots.Headroom
		}
	}
	if spec.ForceDetach != nil {
		fact.AfterPodGone, fact.AfterUnreachable = forced(spec.ForceDetach)
		if name := spec.ForceDetach.FencedCondition; name != nil && strings.HasPrefix(*name, v1alpha1.FencedConditionPrefix) {
			fact.FencedCondition = *name
		}
		if fence := spec.ForceDetach.NetworkFence; fence != nil && spec.StorageClassName == "" {
			fact.NetworkFence = ledger.NetworkFence{Class: fence.ClassName, After: optional(fence.AfterUnreachable)}
		}
	}
	if spec.Workers != nil {
		fact.Workers = int(*spec.Workers)
	}
	fact.AttachFor, fact.DetachFor = operations(spec.AttachFor), operations(spec.DetachFor)
	fact.Says = policyFields(spec)
	return fact
}

// forced has no times with Never. A time that no API server accepts counts as Never.
func forced(p *v1alpha1.ForceDetachPolicy) (afterPodGone, afterUnreachable *time.Duration) {
	if p.AfterPodGone == "" {
		return nil, optional(p.AfterUnreachable)
	}
	after, err := time.ParseDuration(p.AfterPodGone)
	if err != nil {
		never := time.Duration(-1)
		return &never, &never
	}
	return &after, optional(p.AfterUnreachable)
}

// operations ignores names unknown to this release.
func operations(names []v1alpha1.VolumeOperation) ledger.Operations {
	var set ledger.Operations
	for _, o := range ledger.AllOperations() {
		if slices.Contains(names, v1alpha1.VolumeOperation(o.String())) {
			set = set.With(o)
		}
	}
	return set
}

// policyFields are the set fields that the fact's values do not show.
func policyFields(spec *v1alpha1.AttachPolicySpec) ledger.PolicyFields {
	var fields ledger.PolicyFields
	for field, set := range map[ledger.PolicyFields]bool{
		ledger.FieldDetachDelay:     spec.DetachDelay != nil,
		ledger.FieldLiveMigration:   spec.LiveMigration != nil,
		ledger.FieldUnpublishFences: spec.UnpublishFences != nil,
		ledger.FieldOperations:      spec.AttachFor != nil || spec.DetachFor != nil,
		ledger.FieldFencedCondition: spec.ForceDetach != nil && spec.ForceDetach.FencedCondition != nil,
	} {
		if set {
			fields |= field
		}
	}
	return fields
}

// created is in seconds; 0: no time yet.
func created(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func optional(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}
