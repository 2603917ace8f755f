// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// processes are the ones that an attach goes through.
func processes() []string {
	return []string{sandbox.Attacher, sandbox.APIServer, sandbox.Etcd, sandbox.ControllerManager, sandbox.DiskService}
}

// usage is what each process has used since it began.
type usage struct{ cpuSeconds, peakMiB map[string]float64 }

func readUsage(c *sandbox.Cluster) (usage, error) {
	u := usage{cpuSeconds: map[string]float64{}, peakMiB: map[string]float64{}}
	pids := map[string]int{}
	for _, p := range c.Processes() {
		pids[p.Name] = p.PID
	}
	for _, name := range processes() {
		var err error
		if u.cpuSeconds[name], err = bench.ProcessSeconds(pids[name]); err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[name]))
		if err != nil {
			return u, fmt.Errorf("memory of %s: %w", name, err)
		}
		if u.peakMiB[name], err = peak(string(status)); err != nil {
			return u, fmt.Errorf("memory of %s: %w", name, err)
		}
	}
	return u, nil
}

// since is the CPU time from an earlier reading on.
func (u usage) since(before usage) map[string]float64 {
	out := map[string]float64{}
	for name, s := range u.cpuSeconds {
		out[name] = s - before.cpuSeconds[name]
	}
	return out
}

// peak reads VmHWM of /proc/PID/status, in MiB.
func peak(status string) (float64, error) {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("peak memory: %w", err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("no VmHWM in the status of a process")
}
