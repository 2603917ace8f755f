// SPDX-License-Identifier: Apache-2.0

package sandbox

type Scene struct {
	Title, Short string
	Intro        string
	Scenario     Scenario
	// Fails says how upstream fails in this scene; the scenario checks it. If it is empty, upstream does
	// not play the scene.
	Fails  string
	Does   string
	Stages bool
}
