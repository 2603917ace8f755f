// SPDX-License-Identifier: Apache-2.0

package karpenter

import "testing"

// Moorage writes these on pods that wait (plugins/scheduler).
const (
	noSlot     = "Unschedulable"
	volumeWait = "VolumeWait"
)

func TestKarpenter(t *testing.T) {
	for name, c := range map[string]struct {
		situation
		want decision
	}{
		"the driver's own limit is reached: a node is added": {
			situation{used: 4, count: 4, reason: noSlot}, decision{newNodes: 1}},
		"an AttachPolicy leaves fewer slots than the CSINode states: none is added, the pod is taken to fit": {
			situation{used: 4, count: 8, reason: noSlot}, decision{existing: nodeName}},
		"the CSINode states no limit: none is added": {
			situation{used: 4, reason: noSlot}, decision{existing: nodeName}},
		"attachments of nobody's pods take the slots: they are not counted, none is added": {
			situation{used: 4, count: 6, foreign: 2, reason: noSlot}, decision{existing: nodeName}},
		"the driver states what the policy leaves: a node is added": {
			situation{used: 4, count: 4, foreign: 2, reason: noSlot}, decision{newNodes: 1}},
		"no node would help: the pod is not looked at": {
			situation{used: 4, count: 4, reason: volumeWait}, decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := simulate(t, c.situation); got != c.want {
				t.Errorf("Karpenter decides %+v, want %+v", got, c.want)
			}
		})
	}
}
