// SPDX-License-Identifier: Apache-2.0

// Package memory keeps a process within its container's memory. It reads the limit of the cgroup, and sets
// the heap size at which the garbage collector works harder.
package memory

import (
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

func memoryFiles() []string {
	return []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}
}

// unlimited: v1 without a limit says a number above this.
const unlimited = 1 << 60

// memoryLimit is this container's memory in bytes; false if unlimited.
func memoryLimit(root fs.FS) (int64, bool) {
	for _, name := range memoryFiles() {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return limit, err == nil && limit > 0 && limit < unlimited // "max" is no number
	}
	return 0, false
}

// KeepWithinLimit has the garbage collector work harder as the heap nears nine tenths of the container's
// memory, unless GOMEMLIMIT is set. Otherwise the heap could double first.
func KeepWithinLimit(log klog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, ok := memoryLimit(os.DirFS("/")); ok {
		debug.SetMemoryLimit(limit / 10 * 9)
		log.V(1).Info("The heap is kept within nine tenths of the container's memory", "bytes", limit)
	}
}
