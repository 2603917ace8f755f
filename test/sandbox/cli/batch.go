// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// A worker runs a batch's jobs one by one, so that jobs with one shape share a cluster.
type batch []job

const (
	clusterTakes = 5 * time.Second
	// Longer jobs are not kept together for a cluster's sake: their worker may be the last to end.
	longBatch = 90 * time.Second
)

// The longest batches come first, so that no long job begins late.
func batches(jobs []job) []batch {
	var out []batch
	open := map[sandbox.Shape]int{} // the batch of a shape that takes more jobs
	for _, j := range jobs {
		shape := j.scenario.In(j.mode)
		alone := j.scenario.Exclusive || j.scenario.Bare
		i, ok := open[shape]
		if !ok || alone || out[i].takes()+j.scenario.Estimate() > longBatch {
			i = len(out)
			out = append(out, nil)
			if !alone {
				open[shape] = i
			}
		}
		out[i] = append(out[i], j)
	}
	slices.SortStableFunc(out, func(a, b batch) int { return cmp.Compare(b.takes(), a.takes()) })
	return out
}

func (b batch) takes() time.Duration {
	total := clusterTakes
	for _, j := range b {
		total += j.scenario.Estimate()
	}
	return total
}
