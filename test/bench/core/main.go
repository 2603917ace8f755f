// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/core/report"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// BenchmarkStart takes in a cluster of 5,000 nodes and 100,000 attachments.
func packages() []string {
	return []string{"./internal/ledger", "./internal/rules", "./internal/watch"}
}

func slopeSizes() []int { return []int{1_000, 5_000, 15_000} }

// Each size of the slope has its own process: the memory peak is the process's.
func commands(slope bool, pattern, duration string, count int) [][]string {
	test := func(pattern, duration string, args ...string) []string {
		command := []string{"go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", duration, fmt.Sprintf("-count=%d", count), "-timeout", "0"}
		return append(command, args...)
	}
	if !slope {
		return [][]string{test(pattern, duration, append([]string{"-skip", "^BenchmarkSlope$"}, packages()...)...)}
	}
	var list [][]string
	for _, nodes := range slopeSizes() {
		list = append(list, test(fmt.Sprintf("^BenchmarkSlope$/^nodes=%d$", nodes), "1x", "./internal/watch"))
	}
	return list
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("core", flag.ContinueOnError)
	out := set.String("out", "", "store the result as JSON in this file")
	count := set.Int("count", 1, "run each benchmark this often")
	pattern := set.String("bench", ".", "run the benchmarks that match")
	duration := set.String("benchtime", "1s", "how long each benchmark runs, as `go test -benchtime` takes it")
	slope := set.Bool("slope", false, "measure the start and the cost of a change with 1,000, 5,000 and 15,000 nodes instead; takes 5 GiB and many minutes")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *out != "" {
		if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
			return fmt.Errorf("folder of the result: %w", err)
		}
	}
	source, err := origin.OfTree(ctx, ".")
	if err != nil {
		return err
	}
	list := commands(*slope, *pattern, *duration, *count)
	said := strings.Join(list[0], " ")
	if *slope {
		said = fmt.Sprintf("go run ./test/bench/core --slope --count=%d", *count)
	}
	result := report.Result{Schema: report.Schema, Head: record.Begin(said, source)}
	for _, command := range list {
		benchmarks, err := report.Run(ctx, command, os.Stdout)
		if err != nil {
			return err
		}
		result.Benchmarks = append(result.Benchmarks, benchmarks...)
	}
	if *out == "" {
		return nil
	}
	return record.Save(*out, result)
}
