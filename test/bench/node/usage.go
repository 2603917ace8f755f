// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/node/result"
)

// readMemory reads how much memory a process has now.
func readMemory(pid int) (result.Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return result.Memory{}, fmt.Errorf("memory of moorage-node: %w", err)
	}
	return memoryOf(string(status))
}

// memoryOf reads the text of /proc/PID/status.
func memoryOf(status string) (result.Memory, error) {
	var m result.Memory
	for _, field := range []struct {
		name string
		into *float64
	}{{"RssAnon", &m.AnonMiB}, {"RssFile", &m.FileMiB}, {"VmRSS", &m.ResidentMiB}, {"VmHWM", &m.PeakMiB}} {
		var err error
		if *field.into, err = mebibytes(status, field.name); err != nil {
			return m, err
		}
	}
	return m, nil
}

// mebibytes reads a line such as "VmRSS:   1024 kB".
func mebibytes(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		if err != nil {
			return 0, fmt.Errorf("memory of a process: %s: %w", name, err)
		}
		return kib / 1024, nil
	}
	return 0, fmt.Errorf("memory of a process: there is no %s", name)
}
