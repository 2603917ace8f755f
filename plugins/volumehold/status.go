// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// nodeStatus makes the status of a node from the arbiter's verdict on it; nil
// when it is allowed. kube-scheduler counts equal reasons over the nodes and
// writes "3 <reason>", so the reasons name what is wrong, and the node only
// where it is another one.
func nodeStatus(v arbiter.Verdict, n ledger.NodeName) *fwk.Status {
	if v.Allowed() {
		return nil
	}
	code := fwk.Unschedulable
	messages := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		if !evictable(r, n) {
			code = fwk.UnschedulableAndUnresolvable
		}
		messages = append(messages, nodeMessage(r))
	}
	return fwk.NewStatus(code, messages...)
}

// evictable says whether fewer pods on the node could lift a reason: only then
// is preemption worth a try.
func evictable(r arbiter.Reason, n ledger.NodeName) bool {
	switch r.Code {
	case arbiter.NoFreeSlot, arbiter.NodeExhausted:
		return true
	case arbiter.UsedByOtherPod:
		return r.Node == n
	}
	return false
}

// nodeMessage puts a reason behind kube-scheduler's count of nodes.
func nodeMessage(r arbiter.Reason) string {
	switch r.Code {
	case arbiter.NoFreeSlot:
		return "node(s) have " + r.Message()
	case arbiter.HeldElsewhere, arbiter.Outranked:
		return "node(s) " + r.Message()
	case arbiter.DriverNotRegistered, arbiter.NodeExhausted:
		return "node(s) where " + r.Message()
	}
	return "node(s) unfit: " + r.Message()
}

// podStatus makes the status of a pod that no node will do for; nil when the
// verdict is Allow.
func podStatus(v arbiter.Verdict) *fwk.Status {
	if v.Allowed() {
		return nil
	}
	messages := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		messages = append(messages, r.Message())
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, messages...)
}
