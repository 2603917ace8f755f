// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// cell is all runs of a case in a setup, taken together. Failed runs only count as failed.
type cell struct {
	setup    Setup
	runs     int // that passed
	failures []string
	pods     int // of all runs that passed
	samples  map[string]Samples
	attach   []Write
	detach   []Write
	// allRunning and allDetached are the means of the runs, in milliseconds.
	allRunning, allDetached float64
	// cpu is the mean of the runs, in seconds by component.
	cpu map[string]float64
}

// allCells takes a case's runs together, one cell for every setup of the result.
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

// cells is allCells without the setups that did not run the case.
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

// perPod spreads a count over the pods of all runs.
func (c cell) perPod(count int) float64 {
	if c.pods == 0 {
		return 0
	}
	return float64(count) / float64(c.pods)
}

func (c cell) p50(key string) (float64, bool) { return c.samples[key].Percentile(50) }
