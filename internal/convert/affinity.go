// SPDX-License-Identifier: Apache-2.0

package convert

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func nodeAffinity(a *corev1.VolumeNodeAffinity) ledger.NodeAffinity {
	if a == nil || a.Required == nil {
		return ledger.NodeAffinity{}
	}
	var terms []ledger.NodeTerm
	for _, t := range a.Required.NodeSelectorTerms {
		terms = append(terms, ledger.NodeTerm{Labels: requirements(t.MatchExpressions), Fields: requirements(t.MatchFields)})
	}
	return ledger.NewNodeAffinity(terms...)
}

func requirements(list []corev1.NodeSelectorRequirement) []ledger.NodeRequirement {
	var out []ledger.NodeRequirement
	for _, r := range list {
		out = append(out, ledger.NodeRequirement{Key: r.Key, Operator: operator(r.Operator), Values: r.Values})
	}
	return out
}

// operator is 0 for an unknown operator, which matches no node.
func operator(o corev1.NodeSelectorOperator) ledger.NodeOperator {
	switch o {
	case corev1.NodeSelectorOpIn:
		return ledger.NodeIn
	case corev1.NodeSelectorOpNotIn:
		return ledger.NodeNotIn
	case corev1.NodeSelectorOpExists:
		return ledger.NodeExists
	case corev1.NodeSelectorOpDoesNotExist:
		return ledger.NodeDoesNotExist
	case corev1.NodeSelectorOpGt:
		return ledger.NodeGt
	case corev1.NodeSelectorOpLt:
		return ledger.NodeLt
	}
	return 0
}
