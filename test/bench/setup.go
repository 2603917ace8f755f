// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type Setup string

// Each of Moorage's setups has a counterpart with the same external-attacher: its request limit hides
// everything else.
const (
	// Standalone is Moorage, with external-attacher's defaults.
	Standalone Setup = "standalone"
	// StandaloneTuned raises external-attacher's limits.
	StandaloneTuned Setup = "standalone-tuned"
	// Upstream is Kubernetes and external-attacher with their defaults.
	Upstream Setup = "upstream"
	// UpstreamTuned raises the limits of kube-controller-manager and external-attacher.
	UpstreamTuned Setup = "upstream-tuned"
)

func Setups() []Setup { return []Setup{Standalone, StandaloneTuned, Upstream, UpstreamTuned} }

func QuickSetups() []Setup { return []Setup{StandaloneTuned, Upstream, UpstreamTuned} }

type pair struct{ ours, theirs Setup }

func pairs() []pair {
	return []pair{
		{Standalone, Upstream}, {Standalone, UpstreamTuned},
		{StandaloneTuned, Upstream}, {StandaloneTuned, UpstreamTuned},
	}
}

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

// Each setup is first in turn.
func rotate(setups []Setup, i int) []Setup {
	k := i % len(setups)
	return append(append([]Setup{}, setups[k:]...), setups[:k]...)
}
