// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Mounts of a refused node read and write nothing, and its calls fail.
func (j *Judge) isCut(node string) bool { return contains(j.cut, j.node(node).address) }

func contains(cidrs []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return p.Contains(a) })
}

func without(list []netip.Prefix, cidrs []string) []netip.Prefix {
	gone := diskapi.Prefixes(cidrs)
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return slices.Contains(gone, p) })
}

// checkLetIn looks for mounts of nodes that are let in: they would write, regardless of others' writes
// meanwhile.
func (j *Judge) checkLetIn(e diskapi.Entry) {
	left := without(j.cut, e.CIDRs)
	for _, volume := range slices.Sorted(maps.Keys(j.places)) {
		for _, id := range slices.Sorted(maps.Keys(j.places[volume])) {
			p := j.places[volume][id]
			if !p.inUse() || !j.isCut(id) || contains(left, j.node(id).address) {
				continue
			}
			at := e
			at.Volume, at.Node = volume, id
			switch others := j.others(volume, id); {
			case len(others) > 0 && diskapi.Exclusive(p.mode):
				j.report(at, diskapi.LetInMounted, "node %s is let in with volume %s mounted, which is at node %s", id, volume, others[0])
			case !p.at():
				j.report(at, diskapi.LetInMounted, "node %s is let in with volume %s mounted, which was detached from it", id, volume)
			}
		}
	}
}
