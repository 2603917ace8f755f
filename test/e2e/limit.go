// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// limit guards I2. Upstream keeps the limit too (1.37 counts VolumeAttachments), but its message names
// neither driver nor use.
func limit() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "limit",
		Doc: "3 nodes with 4 slots each, 20 pods with a volume each: 12 run, 8 wait and are told the driver, its limit and its use; as pods go, they come; never a fifth. " +
			"Upstream: the same, told less.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const pods, room = 20, 12
			var waiting, running []string
			for i := range pods {
				name := fmt.Sprintf("p%02d", i+1)
				s.claim(name)
				s.pod(name, name)
				waiting = append(waiting, name)
			}
			message := "no free slot of driver " + sandbox.DriverName + " (4 of 4 used)"
			if !s.moorage() {
				message = "exceed max volume count"
			}
			for len(waiting) > 0 {
				come := min(len(waiting), room-len(running))
				fresh := s.fill(waiting, come, message)
				running = append(running, fresh...)
				waiting = slices.DeleteFunc(waiting, func(name string) bool { return slices.Contains(fresh, name) })
				s.say("%d run, %d wait: %q", len(running), len(waiting), message)
				leave := min(len(running), 4)
				for _, name := range running[:leave] {
					s.remove(name)
				}
				running = running[leave:]
			}
		}),
	}
}

func (s *story) fill(pods []string, room int, message string) []string {
	var running []string
	s.until(fmt.Sprintf("%d of the pods run and %d wait with %q", room, len(pods)-room, message), func() error {
		var bound, waiting []string
		running = nil
		for _, name := range pods {
			if s.Running(name) == nil {
				running = append(running, name)
			}
			if pod := s.View.Pod(s.Namespace, name); pod != nil && pod.Spec.NodeName != "" {
				bound = append(bound, name)
			} else {
				waiting = append(waiting, name)
			}
		}
		switch {
		case len(bound) > room:
			return sandbox.Never("%d pods have a node: %v", len(bound), bound)
		case len(running) < room:
			return fmt.Errorf("%d run", len(running))
		}
		for _, name := range waiting {
			if err := unscheduled(s.View.Pod(s.Namespace, name), message); err != nil {
				return fmt.Errorf("pod %s: %w", name, err)
			}
		}
		return nil
	})
	return running
}
