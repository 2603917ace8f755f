// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is from /proc/PID/status, in MiB, by field names such as VmRSS.
type Memory map[string]float64

func ProcessMemory(pid int, fields ...string) (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("memory of a process: %w", err)
	}
	return memoryOf(string(status), fields...)
}

func memoryOf(status string, fields ...string) (Memory, error) {
	m := Memory{}
	for line := range strings.Lines(status) {
		name, rest, _ := strings.Cut(line, ":")
		for _, field := range fields {
			if name != field {
				continue
			}
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				return nil, fmt.Errorf("memory of a process: %s: %w", name, err)
			}
			m[name] = kib / 1024
		}
	}
	for _, field := range fields {
		if _, found := m[field]; !found {
			return nil, fmt.Errorf("memory of a process: there is no %s", field)
		}
	}
	return m, nil
}
