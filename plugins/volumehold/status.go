// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// nil: allowed.
func nodeStatus(v rules.Verdict, n ledger.NodeName) *fwk.Status {
	if v.Allowed() {
		return nil
	}
	messages, evictable := words.Node(v, n)
	if evictable {
		return fwk.NewStatus(fwk.Unschedulable, messages...)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, messages...)
}

// nil: Allow.
func podStatus(v rules.Verdict) *fwk.Status {
	if v.Allowed() {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, words.Pod(v)...)
}
