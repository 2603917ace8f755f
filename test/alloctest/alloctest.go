// SPDX-License-Identifier: Apache-2.0

// Package alloctest measures what code allocates, for tests that costs are in proportion.
package alloctest

import "runtime"

// Bytes counts what the process allocates during do, live or not.
func Bytes(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
