// SPDX-License-Identifier: Apache-2.0

// Web measures the page of kubectl moorage web in a real browser, and stores the result: the time
// between frames while a map of 1,000 nodes with 40 slots is scrolled, and the page's computing
// time for each.
//
//	make bench-web OUT=test/bench/web/results/web.json
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/core/report"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

const schema = "moorage.dev/bench-web/v1"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("out", "", "store the result as JSON in this file")
	flag.Parse()
	if err := run(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	source, err := origin.OfTree(ctx, ".")
	if err != nil {
		return err
	}
	command := []string{"go", "test", "-C", "test/web", "-run", "^$", "-bench", "Frames", "-benchtime", "1x"}
	head := record.Begin(strings.Join(command, " "), source)
	benchmarks, err := report.Run(ctx, command, os.Stdout)
	if err != nil || out == "" {
		return err
	}
	return record.Save(out, report.Result{Schema: schema, Head: head, Benchmarks: benchmarks})
}
