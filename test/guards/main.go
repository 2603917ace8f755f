// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func beside() []string {
	return []string{
		"csi-addons", "external-snapshotter",
		sandbox.SnapshotController, sandbox.Snapshotter, sandbox.Provisioner, sandbox.Resizer,
	}
}

func main() {
	attacher := flag.String("attacher", "bin/csi-attacher", "the csi-attacher binary, as `make build` leaves it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *attacher, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, attacher string, names []string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if attacher, err = filepath.Abs(attacher); err != nil {
		return fmt.Errorf("the attacher's path: %w", err)
	}
	temp, err := os.MkdirTemp("", "moorage-guards-")
	if err != nil {
		return fmt.Errorf("folder for changed files: %w", err)
	}
	defer os.RemoveAll(temp)
	for _, name := range beside() {
		built := filepath.Join(filepath.Dir(attacher), name)
		_, missing := os.Stat(built)
		if err := errors.Join(missing, os.Symlink(built, filepath.Join(temp, name))); err != nil {
			return fmt.Errorf("%s, as `make build` leaves it: %w", name, err)
		}
	}
	binary, err := build(ctx, root, temp)
	if err != nil {
		return err
	}
	tried, failed := 0, 0
	for _, g := range guards() {
		if len(names) > 0 && !slices.Contains(names, g.Scenario) || ctx.Err() != nil {
			continue
		}
		tried++
		fmt.Println(g.name())
		result, err := g.run(ctx, binary, attacher)
		why := ""
		if err == nil {
			why, err = g.judge(result)
		}
		if err != nil {
			failed++
			fmt.Printf("  DOES NOT HOLD: %v\n", err)
			continue
		}
		fmt.Printf("  holds: %s\n", why)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case tried == 0:
		return fmt.Errorf("no guard of %v", names)
	case failed > 0:
		return fmt.Errorf("%d of %d guards do not hold", failed, tried)
	}
	fmt.Printf("all %d guards hold\n", tried)
	return nil
}
