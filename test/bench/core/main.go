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

// packages are the pure core, and what feeds it: BenchmarkStart takes in a
// cluster of 5,000 nodes and 100,000 attachments.
func packages() []string {
	return []string{"./internal/ledger", "./internal/arbiter", "./internal/observe"}
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("core", flag.ContinueOnError)
	out := set.String("out", "", "store the result as JSON in this file")
	count := set.Int("count", 1, "run each benchmark this often")
	pattern := set.String("bench", ".", "run the benchmarks that match")
	duration := set.String("benchtime", "1s", "how long each benchmark runs, as `go test -benchtime` takes it")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *out != "" {
		if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
			return fmt.Errorf("folder of the result: %w", err)
		}
	}
	command := append([]string{
		"go", "test", "-run", "^$", "-bench", *pattern, "-benchmem", "-benchtime", *duration, fmt.Sprintf("-count=%d", *count),
	}, packages()...)
	source, err := origin.OfTree(ctx, ".")
	if err != nil {
		return err
	}
	head := record.Begin(strings.Join(command, " "), source)
	benchmarks, err := report.Run(ctx, command, os.Stdout)
	if err != nil || *out == "" {
		return err
	}
	return record.Save(*out, report.Result{Schema: report.Schema, Head: head, Benchmarks: benchmarks})
}
