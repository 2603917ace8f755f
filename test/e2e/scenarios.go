// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"github.com/moorage-dev/moorage/test/sandbox"
)

// Scenarios lists every scenario, in the order in which they are worth reading.
// Those that leave their cluster as they found it, and need the same one, stand
// together, so that they share it.
func Scenarios() []sandbox.Scenario {
	return append([]sandbox.Scenario{
		path(),
		rollout(),
		limit(),
		handover(),
		handoverFailing(),
		readd(),
		readdHalf(),
		readdKilled(),
		fullNode(),
		drained(),
		DrainMany(),
		PowerOffTimes(),
		noRoom(),
		volumeKinds(),
		kubectlMoorage(),
		tickets(),
		volumeWait(),
		podGroups(),
		kubeletRestart(),
		kubeletHole(),
		nodeMadeAgain(),
		kubeletHoleRepaired(),
		kubeletHoleStopped(),
		KubeletKills(76),
		managerRestarts(),
		boundElsewhere(),
		attachedByMoorage(path()),
		attachedByMoorage(handover()),
		attachedByMoorage(handoverFailing()),
		readdStays(),
		attacherReason(),
		swap(),
		attacherFaults(),
		attacherLies(),
		migration(),
		extended(rollout()),
		extended(limit()),
		extended(fullNode()),
		nodeFailure(),
		nodeFailureWait(),
		forcedDetach(),
		forcedUnreachable(),
		manyUnreachable(),
		nodeDeleted(),
		deadTogether(),
		fencedCondition(),
		networkFence(),
		networkFenceFails(),
		adoptAndLeave(),
		adoptMany(),
		adoptThousands(),
		stockReturns(),
		crash(),
		bindAtOnce(),
		upgrade(),
		beside(path()),
		beside(rollout()),
		beside(limit()),
		beside(handover()),
		chaosShort(),
		Chaos(),
		unprivileged(),
		isolation(),
	}, skew()...)
}
