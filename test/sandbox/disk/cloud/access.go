// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/netip"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// storageNetwork is not the network of the Nodes' own addresses (RFC 2544 keeps it for measurements).
var storageNetwork = netip.MustParseAddr("198.18.0.0")

func (s *State) freeAddress() string {
	a := storageNetwork
	for range len(s.nodes) + 1 {
		a = a.Next()
	}
	return a.String()
}

// As in Ceph's blocklist, a CIDR is let in by exactly the name of its cut; after two cuts it is let in at
// once.
func (s *State) changeAccess(r diskapi.Request) Decision {
	if len(r.CIDRs) == 0 {
		return refuse(codes.InvalidArgument, "cidrs is empty: name at least one")
	}
	for _, text := range r.CIDRs {
		if _, err := netip.ParsePrefix(text); err != nil {
			return refuse(codes.InvalidArgument, "%v: name a CIDR such as 198.18.0.1/32", err)
		}
	}
	return Decision{Do: Start, Effect: effect(r)}
}

func (s *State) cutOff(cidrs []string) {
	for _, p := range diskapi.Prefixes(cidrs) {
		if !slices.Contains(s.cut, p) {
			s.cut = append(s.cut, p)
		}
	}
}

func (s *State) letIn(cidrs []string) {
	gone := diskapi.Prefixes(cidrs)
	s.cut = slices.DeleteFunc(s.cut, func(p netip.Prefix) bool { return slices.Contains(gone, p) })
}

func (s *State) CutOff() []string {
	list := make([]string, 0, len(s.cut))
	for _, p := range s.cut {
		list = append(list, p.String())
	}
	return list
}

func (s *State) isCut(node string) bool {
	n, ok := s.nodes[node]
	if !ok {
		return false
	}
	address, err := netip.ParseAddr(n.Address)
	return err == nil && slices.ContainsFunc(s.cut, func(p netip.Prefix) bool { return p.Contains(address) })
}
