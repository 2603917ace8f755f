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
	// Standalone replaces kube-controller-manager's attach/detach controller
	// by Moorage's, and kube-scheduler by moorage-scheduler.
	Standalone Mode = "standalone"
	// Cooperative keeps kube-controller-manager's attach/detach controller
	// beside Moorage's, and kube-scheduler beside moorage-scheduler.
	Cooperative Mode = "cooperative"
	// Upstream has no Moorage: stock scheduler, stock attach/detach
	// controller, external-attacher with its defaults.
	Upstream Mode = "upstream"
	// UpstreamTuned is Upstream with request limits and workers raised until
	// they no longer matter.
	UpstreamTuned Mode = "upstream-tuned"
)

// Modes lists every mode, the default first.
func Modes() []Mode { return []Mode{Standalone, Cooperative, Upstream, UpstreamTuned} }

// ParseMode turns a flag's value into a Mode.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains(Modes(), m) {
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: use one of %s", s, joinModes(Modes()))
}

// Moorage says whether Moorage's components run in this mode.
func (m Mode) Moorage() bool { return m == Standalone || m == Cooperative }

func joinModes(modes []Mode) string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}
