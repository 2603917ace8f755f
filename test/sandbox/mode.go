// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says which parts attach, detach and schedule in a cluster.
type Mode string

const (
	// Standalone has Moorage replace the attach/detach controller and kube-scheduler.
	Standalone Mode = "standalone"
	// Cooperative keeps the attach/detach controller and kube-scheduler beside Moorage.
	Cooperative Mode = "cooperative"
	Upstream    Mode = "upstream"
	// UpstreamTuned is Upstream with request limits and workers raised until
	// they no longer matter.
	UpstreamTuned Mode = "upstream-tuned"
)

func Modes() []Mode { return []Mode{Standalone, Cooperative, Upstream, UpstreamTuned} }

func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains(Modes(), m) {
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: use one of %s", s, joinModes(Modes()))
}

func (m Mode) Moorage() bool { return m == Standalone || m == Cooperative }

func joinModes(modes []Mode) string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}
