// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func performed(ctx context.Context, t *testing.T, parallel int, scenarios ...sandbox.Scenario) (out, aside string, err error) {
	t.Helper()
	s := &Session{Config: Config{Scenarios: scenarios}, dir: t.TempDir()}
	o := runOptions{all: true, parallel: parallel, seed: 7}
	jobs, err := s.jobs(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	var results, how bytes.Buffer
	p := &performance{flags: o, out: &results, aside: &how, results: make([]*sandbox.Result, len(jobs))}
	err = p.perform(ctx, jobs)
	if err == nil {
		err = p.conclude(summarize(p.results), 0)
	}
	return results.String(), how.String(), err
}

func story(name string, run func(context.Context, *sandbox.Env) error) sandbox.Scenario {
	return sandbox.Scenario{Name: name, Modes: []sandbox.Mode{sandbox.Standalone}, Bare: true, Run: run}
}

func TestScenariosSideBySidePrintOneAfterTheOther(t *testing.T) {
	var met sync.WaitGroup
	met.Add(3)
	chat := func(name string) sandbox.Scenario {
		return story(name, func(_ context.Context, e *sandbox.Env) error {
			e.Log("%s says hello", name)
			met.Done()
			met.Wait() // ends only if all three run at once
			fmt.Fprintf(e.Output, "%s's process says hello\n", name)
			if name == "b" {
				return errors.New("b has had enough")
			}
			return nil
		})
	}
	out, aside, err := performed(t.Context(), t, 3, chat("a"), chat("b"), chat("c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		whole := fmt.Sprintf("=== %s (standalone, seed 7)\n        %s says hello\n%s's process says hello\n", name, name, name)
		if !strings.Contains(aside, whole) {
			t.Errorf("%q is not printed whole in:\n%s", whole, aside)
		}
	}
	for _, want := range []string{"PASS a (standalone)", "FAIL b (standalone)", "PASS c (standalone)", "b has had enough", "failed: b (standalone)\n2 passed, 1 failed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestInterruptEndsAllAndRunsNoMore(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var met sync.WaitGroup
	met.Add(2)
	waits := func(name string) sandbox.Scenario {
		return story(name, func(ctx context.Context, _ *sandbox.Env) error {
			met.Done()
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}
	go func() {
		met.Wait()
		interrupt()
	}()
	never := story("never", func(context.Context, *sandbox.Env) error {
		t.Error("it runs after the interrupt")
		return nil
	})
	out, _, err := performed(ctx, t, 2, waits("a"), waits("b"), never)
	if err != nil || !strings.Contains(out, "0 passed, 2 failed") {
		t.Errorf("error %v, printed:\n%s", err, out)
	}
}

func TestAsManyAsAskedForRunAtOnce(t *testing.T) {
	const workers, rounds = 4, 5
	var mu sync.Mutex
	var arrived, inside, most int
	gate := make(chan struct{}) // opens when as many have come as there are workers
	var scenarios []sandbox.Scenario
	for i := range workers * rounds {
		scenarios = append(scenarios, story(fmt.Sprintf("s%d", i), func(context.Context, *sandbox.Env) error {
			mu.Lock()
			arrived++
			inside++
			most = max(most, inside)
			mine := gate
			if arrived%workers == 0 {
				close(gate)
				gate = make(chan struct{})
			}
			mu.Unlock()
			<-mine
			mu.Lock()
			inside--
			mu.Unlock()
			return nil
		}))
	}
	out, _, err := performed(t.Context(), t, workers, scenarios...)
	if err != nil || !strings.Contains(out, "20 passed, 0 failed") {
		t.Fatalf("error %v, printed:\n%s", err, out)
	}
	if most != workers {
		t.Errorf("%d at once, want %d", most, workers)
	}
}

func TestResultsAreInTheOrderOfTheJobs(t *testing.T) {
	out, err := execute(t, "--json", "run", "fine", "broken", "--parallel", "3", "--seed", "7")
	if !errors.Is(err, ErrReported) {
		t.Fatalf("error %v", err)
	}
	var got summary
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	var order []string
	for _, r := range got.Results {
		order = append(order, r.Scenario+" "+string(r.Mode))
	}
	if want := []string{"fine standalone", "fine upstream", "broken upstream"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}
