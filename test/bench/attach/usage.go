// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func processes() []string {
	return []string{sandbox.Attacher, sandbox.APIServer, sandbox.Etcd, sandbox.ControllerManager, sandbox.DiskService}
}

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
		memory, err := bench.ProcessMemory(pids[name], "VmHWM")
		if err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
		u.peakMiB[name] = memory["VmHWM"]
	}
	return u, nil
}

func (u usage) since(before usage) map[string]float64 {
	out := map[string]float64{}
	for name, s := range u.cpuSeconds {
		out[name] = s - before.cpuSeconds[name]
	}
	return out
}
