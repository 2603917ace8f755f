// SPDX-License-Identifier: Apache-2.0

package diskapi

import "net/netip"

// Prefixes reads CIDRs, without host bits and without invalid CIDRs.
func Prefixes(cidrs []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range cidrs {
		if p, err := netip.ParsePrefix(text); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list
}
