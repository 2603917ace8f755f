// SPDX-License-Identifier: Apache-2.0

package diskapi

import "net/netip"

// Prefixes reads CIDRs, without their host bits; invalid ones are left out.
func Prefixes(cidrs []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range cidrs {
		if p, err := netip.ParsePrefix(text); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list
}
