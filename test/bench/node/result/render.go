// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

func Page() record.Page { return record.Page{Command: "moorage-sandbox bench-node --render"} }

func Render(r Result) string {
	var t table.Table
	row := func(name string, of func(Run) string) {
		cells := []string{name}
		for _, run := range r.Runs {
			cells = append(cells, of(run))
		}
		t.Add(cells...)
	}
	row("", func(run Run) string { return fmt.Sprintf("%d volumes, %d pods", run.Volumes, run.Pods) })
	row("mounts in the kubelet's folder", func(run Run) string { return strconv.Itoa(run.Mounts) })
	row("at rest for", func(run Run) string { return fmt.Sprintf("%.0f s", run.Rest.Seconds) })
	row("– processor time", func(run Run) string { return fmt.Sprintf("%.2f s", run.Rest.CPUSeconds) })
	row("– **that is**", func(run Run) string { return fmt.Sprintf("%.1f millicores", run.Rest.Millicores()) })
	row("– **writes to the API server**", func(run Run) string { return strconv.Itoa(run.Rest.Requests.Writes) })
	row("– reads", func(run Run) string { return strconv.Itoa(run.Rest.Requests.Reads) })
	row("**memory of its own** (RssAnon)", func(run Run) string { return mib(run.Rest.Memory.AnonMiB) })
	row("its program, as far as it is in memory (RssFile)", func(run Run) string { return mib(run.Rest.Memory.FileMiB) })
	row("both (VmRSS)", func(run Run) string { return mib(run.Rest.Memory.ResidentMiB) })
	row("the most that both were (VmHWM)", func(run Run) string { return mib(run.Rest.Memory.PeakMiB) })
	row("from its start until a watch shows its word", func(run Run) string { return seconds(run.ToldSeconds) })
	row("from a mount or unmount until a watch shows it, median", func(run Run) string { return seconds(run.Changes.Median()) })
	row("– the longest", func(run Run) string { return seconds(run.Changes.Longest()) })
	row("– processor time of each", func(run Run) string {
		return fmt.Sprintf("%.0f ms", 1000*run.Changes.perChange(run.Changes.CPUSeconds))
	})
	row("– writes of each", func(run Run) string {
		return strconv.FormatFloat(run.Changes.perChange(float64(run.Changes.Requests.Writes)), 'f', -1, 64)
	})
	return r.Measured() + ".\n\n" + t.String()
}

func mib(n float64) string     { return fmt.Sprintf("%.1f MiB", n) }
func seconds(n float64) string { return fmt.Sprintf("%.2f s", n) }

// Millicores is an average.
func (r Rest) Millicores() float64 { return 1000 * r.CPUSeconds / max(1, r.Seconds) }

// Median is 0 without any change.
func (c Changes) Median() float64 {
	if len(c.Seconds) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(c.Seconds))[(len(c.Seconds)-1)/2]
}

func (c Changes) Longest() float64 {
	if len(c.Seconds) == 0 {
		return 0
	}
	return slices.Max(c.Seconds)
}

func (c Changes) perChange(sum float64) float64 { return sum / float64(max(1, len(c.Seconds))) }
