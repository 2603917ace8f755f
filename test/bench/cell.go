// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// cell sums up a case's runs in a setup; failed runs only count as failed.
type cell struct {
	setup    Setup
	runs     int // that passed
	failures []string
	pods     int // of all runs that passed
	samples  map[string]Samples
	attach   []Write
	detach   []Write
	// The means are in milliseconds.
	allRunning, allDetached float64
	// The means are in seconds by component.
	cpu map[string]float64
}

func allCells(r Result, c Case) []cell {
	var out []cell
	for _, setup := range r.Setups() {
		one := cell{setup: setup, samples: map[string]Samples{}, cpu: map[string]float64{}}
		for _, run := range r.Runs {
			if run.Case == c && run.Setup == setup {
				one.add(run)
			}
		}
		one.mean()
		out = append(out, one)
	}
	return out
}

func cells(r Result, c Case) []cell {
	return slices.DeleteFunc(allCells(r, c), func(c cell) bool { return !c.measured() && len(c.failures) == 0 })
}

func (c *cell) add(run Run) {
	if run.Failed != "" {
		c.failures = append(c.failures, run.Failed)
		return
	}
	c.runs++
	c.pods += run.Case.Pods
	for key, samples := range run.Samples {
		c.samples[key] = append(c.samples[key], samples...)
	}
	c.attach = mergeWrites(c.attach, run.AttachWrites)
	c.detach = mergeWrites(c.detach, run.DetachWrites)
	c.allRunning += run.AllRunning
	c.allDetached += run.AllDetached
	for name, seconds := range run.CPU {
		c.cpu[name] += seconds
	}
}

func (c cell) measured() bool { return c.runs > 0 }

func (c *cell) mean() {
	if !c.measured() {
		return
	}
	c.allRunning /= float64(c.runs)
	c.allDetached /= float64(c.runs)
	for name := range c.cpu {
		c.cpu[name] /= float64(c.runs)
	}
}

func (c cell) perPod(count int) float64 {
	if c.pods == 0 {
		return 0
	}
	return float64(count) / float64(c.pods)
}

func (c cell) p50(key string) (float64, bool) { return c.samples[key].Percentile(50) }
