// SPDX-License-Identifier: Apache-2.0

package sandbox

// Scene is a part of the demo: a scenario, and what to say about it first.
type Scene struct {
	// Title is the scene's heading.
	Title string
	// Intro says what users meet and what they are about to see.
	Intro string
	// Scenario is what is played, in mode Standalone.
	Scenario Scenario
	// Upstream plays it in mode Upstream, too, for comparison.
	Upstream bool
	// Stages shows every stage of each pod's path.
	Stages bool
}
