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
	// memoryEach is the memory of a scenario's cluster: with five nodes, and with its programs' and
	// logs' page cache.
	memoryEach = 2 << 30
	// mostBeside is when more side by side are no sooner done: the longest
	// scenarios take as long as all others together.
	mostBeside = 6
)

// roomHere is how many scenarios this machine can take side by side.
func roomHere() int {
	return room(runtime.GOMAXPROCS(0), memory("/proc/meminfo", "/sys/fs/cgroup/memory.max"))
}

// room is how many scenarios a machine can take side by side: three for two processors, each with a
// fifth, since it mostly waits, and with all while its cluster starts.
func room(processors int, memory uint64) int {
	return max(1, min(processors*3/2, int(memory/memoryEach), mostBeside))
}

// memory is how many bytes are available: to the machine, and to the container
// that we may be in. It is 0 if that can't be found out.
func memory(meminfo, limit string) uint64 {
	available := memAvailable(meminfo)
	data, err := os.ReadFile(limit)
	if err != nil {
		return available // not in a container, or one of cgroup v1
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return available // "max"
	}
	return min(available, most)
}

// memAvailable reads MemAvailable (proc_meminfo(5)), which is in KiB.
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
