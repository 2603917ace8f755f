// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// Setup names the scheduling and attaching side.
type Setup string

// The setups. Each of Moorage's has a counterpart with the same external-attacher; its request
// limit (5 a second by default, three writes per first attach) otherwise hides everything else in a
// burst.
const (
	// Standalone is Moorage in place of the attach/detach controller, and
	// external-attacher with its defaults.
	Standalone Setup = "standalone"
	// StandaloneTuned is the same with external-attacher's limits raised.
	StandaloneTuned Setup = "standalone-tuned"
	// Upstream is Kubernetes and external-attacher with their defaults.
	Upstream Setup = "upstream"
	// UpstreamTuned is the same with the limits of kube-controller-manager and
	// external-attacher raised.
	UpstreamTuned Setup = "upstream-tuned"
)

// Setups lists the compared setups, Moorage's first.
func Setups() []Setup { return []Setup{Standalone, StandaloneTuned, Upstream, UpstreamTuned} }

// QuickSetups is the cut that takes minutes: Moorage and tuned upstream with the same attacher, and
// stock upstream.
func QuickSetups() []Setup { return []Setup{StandaloneTuned, Upstream, UpstreamTuned} }

// pair is a useful ratio.
type pair struct{ ours, theirs Setup }

// pairs lists the ratios, in the order of tables: each of Moorage's to each of upstream's.
func pairs() []pair {
	return []pair{
		{Standalone, Upstream}, {Standalone, UpstreamTuned},
		{StandaloneTuned, Upstream}, {StandaloneTuned, UpstreamTuned},
	}
}

// ParseSetups turns flags into setups.
func ParseSetups(names []string) ([]Setup, error) {
	var out []Setup
	for _, name := range names {
		if !slices.Contains(Setups(), Setup(name)) {
			return nil, fmt.Errorf("no mode %q to measure: use some of %v", name, Setups())
		}
		if !slices.Contains(out, Setup(name)) {
			out = append(out, Setup(name))
		}
	}
	return out, nil
}

// apply chooses the sandbox's mode and options for the setup.
func (s Setup) apply(o sandbox.Options) (sandbox.Options, sandbox.Mode) {
	o.TuneAttacher = s == StandaloneTuned
	switch s {
	case Upstream:
		return o, sandbox.Upstream
	case UpstreamTuned:
		return o, sandbox.UpstreamTuned
	}
	return o, sandbox.Standalone
}

// rotate returns the setups in the order of the i-th case: each is first in turn.
func rotate(setups []Setup, i int) []Setup {
	k := i % len(setups)
	return append(append([]Setup{}, setups[k:]...), setups[:k]...)
}
