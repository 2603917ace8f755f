// SPDX-License-Identifier: Apache-2.0

package e2e

import "github.com/moorage-dev/moorage/test/sandbox"

// Scenarios lists every scenario, in the order in which they are worth reading.
func Scenarios() []sandbox.Scenario {
	return []sandbox.Scenario{
		path(),
		rollout(),
		isolation(),
		unprivileged(),
	}
}

// Demo names the scenarios that the demo plays, in order.
func Demo() []string {
	return []string{"path", "rollout"}
}
