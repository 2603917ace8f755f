// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func extended(s sandbox.Scenario) sandbox.Scenario {
	story, _, _ := strings.Cut(s.Doc, " Upstream:")
	s.Name = "extender-" + s.Name
	s.Doc = "With the stock kube-scheduler and Moorage's extender. " + story
	s.Modes = []sandbox.Mode{sandbox.Standalone}
	shape := s.Shape
	s.Shape = func(to *sandbox.Shape) {
		if shape != nil {
			shape(to)
		}
		to.Extender = true
	}
	return s
}
