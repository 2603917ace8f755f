// SPDX-License-Identifier: Apache-2.0

package cloud

import "fmt"

// RefuseWrite returns why a write is refused; empty if it is carried out: the disk is attached, the machine
// runs, and the storage lets it in. A lenient cloud takes the writes of two nodes.
func (s *State) RefuseWrite(volume, node string) string {
	d, ok := s.disks[volume]
	if !ok {
		return fmt.Sprintf("volume %q does not exist", volume)
	}
	n, ok := s.nodes[node]
	if !ok {
		return fmt.Sprintf("node %q does not exist", node)
	}
	if n.Fenced {
		return fmt.Sprintf("node %s is switched off", node)
	}
	if s.isCut(node) {
		return fmt.Sprintf("volume %s: the storage refuses node %s", volume, node)
	}
	if _, ok := d.at[node]; !ok {
		return fmt.Sprintf("volume %s: no such device at node %s", volume, node)
	}
	return ""
}
