// SPDX-License-Identifier: Apache-2.0

package sandbox

// Scene is a part of the demo: a scenario, and what to say about it.
type Scene struct {
	// Title is the scene's heading, and Short its name in the table at the end.
	Title, Short string
	// Intro is the users' problem, and the scene to come.
	Intro string
	// Scenario is played in mode Standalone.
	Scenario Scenario
	// Fails says in a few words how upstream fails in this scene. If it is empty, upstream
	// does not play the scene. The scenario itself checks the failure.
	Fails string
	// Does is Moorage's way in a few words.
	Does string
	// Stages shows every stage of each pod's path.
	Stages bool
}
