// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const (
	// memoryEach is for a cluster of five nodes, with the page cache of its programs and logs.
	memoryEach = 2 << 30
	// More are no sooner done: the longest scenarios take as long as all others together.
	mostBeside = 6
)

func roomHere() int {
	return room(runtime.GOMAXPROCS(0), memory("/proc/meminfo", "/sys/fs/cgroup/memory.max"))
}

// Scenarios mostly wait, and need all processors while a cluster starts.
func room(processors int, memory uint64) int {
	return max(1, min(processors*3/2, int(memory/memoryEach), mostBeside))
}

// memory is in bytes, limited by our container; 0 if it can't be found out.
func memory(meminfo, limit string) uint64 {
	available := memAvailable(meminfo)
	data, err := os.ReadFile(limit)
	if err != nil {
		return available // not in a container, or in a container of cgroup v1
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return available // "max"
	}
	return min(available, most)
}

// MemAvailable (proc_meminfo(5)) is in KiB.
func memAvailable(path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && fields[0] == "MemAvailable:" {
			n, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
