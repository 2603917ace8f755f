// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// USER_HZ in /proc is 100 on every architecture that Go runs on.
const clockTick = time.Second / 100

// CPU includes user and kernel time, and children that are gone.
func (g *Group) CPU() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	total := g.spent
	for _, c := range g.children {
		select {
		case <-c.gone: // and counted
		default:
			total += taken(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		}
	}
	return total
}

func taken(path string) time.Duration {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	// utime and stime are the 14th and 15th field (proc_pid_stat(5)). The program's name in parentheses may
	// hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks uint64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
