// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// Times are in microseconds. Work is the thread's own computing time.
type traced struct {
	Name    string  `json:"name"`
	Phase   string  `json:"ph"`
	Process int     `json:"pid"`
	Thread  int     `json:"tid"`
	At      float64 `json:"ts"`
	Took    float64 `json:"dur"`
	Work    float64 `json:"tdur"`
	Args    struct {
		Name string `json:"name"`
	} `json:"args"`
}

const (
	taskEvent  = "RunTask"
	frameEvent = "BeginMainThreadFrame"
	mainThread = "CrRendererMain"
)

func (b *tab) trace(do func()) []traced {
	b.t.Helper()
	var mu sync.Mutex
	var events []traced
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, raw := range e.Value {
				var t traced
				if json.Unmarshal(raw, &t) == nil { // those with other arguments are not needed
					events = append(events, t)
				}
			}
		case *tracing.EventTracingComplete:
			close(ended)
		}
	})
	config := &tracing.TraceConfig{IncludedCategories: []string{
		"-*", "__metadata", "disabled-by-default-devtools.timeline", "devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame",
	}}
	b.do(tracing.Start().WithTransferMode(tracing.TransferModeReportEvents).WithTraceConfig(config))
	do()
	b.do(tracing.End())
	select {
	case <-ended:
	case <-b.ctx.Done():
		b.t.Fatal("the browser ends no trace")
	}
	mu.Lock()
	defer mu.Unlock()
	return events
}

func workOfFrames(events []traced) []float64 {
	type thread struct{ process, id int }
	frames := map[thread]int{}
	named := map[thread]bool{}
	for _, e := range events {
		at := thread{e.Process, e.Thread}
		named[at] = named[at] || e.Name == "thread_name" && e.Args.Name == mainThread
		if e.Name == frameEvent {
			frames[at]++
		}
	}
	var main thread // the browser has one for each page, and some that show nothing
	for t, n := range frames {
		if named[t] && n > frames[main] {
			main = t
		}
	}
	slices.SortStableFunc(events, func(a, b traced) int { return cmp.Compare(a.At, b.At) })
	var work []float64
	for _, e := range events {
		switch {
		case (thread{e.Process, e.Thread}) != main:
		case e.Name == frameEvent:
			work = append(work, 0)
		case e.Name == taskEvent && e.Phase == "X" && len(work) > 0:
			work[len(work)-1] += e.Work / 1000
		}
	}
	slices.Sort(work)
	return work
}

func TestWorkOfFrames(t *testing.T) {
	main := func(name, phase string, at, work float64) traced {
		return traced{Name: name, Phase: phase, Process: 1, Thread: 2, At: at, Work: work}
	}
	name := main("thread_name", "M", 0, 0)
	name.Args.Name = mainThread
	other := traced{Name: taskEvent, Phase: "X", Process: 1, Thread: 3, At: 15, Work: 99000}
	work := workOfFrames([]traced{
		main(taskEvent, "X", 21, 4000), name, main(taskEvent, "X", 5, 7000), other,
		main(frameEvent, "I", 10, 0), main(taskEvent, "X", 11, 1000), main(taskEvent, "X", 12, 2000), main(frameEvent, "I", 20, 0),
	})
	if !slices.Equal(work, []float64{3, 4}) {
		t.Errorf("the frames took %v", work)
	}
}
