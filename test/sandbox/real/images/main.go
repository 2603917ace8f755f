// SPDX-License-Identifier: Apache-2.0

// Command images makes the images of the sandbox's real nodes from Debian's packages. It needs apt-get and
// dpkg-deb.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("out", "", "folder of the images")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Usage: images -out FOLDER NAME...\nNames: %v\n", slices.Sorted(maps.Keys(recipes())))
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, names []string) error {
	if out == "" || len(names) == 0 {
		flag.Usage()
		return fmt.Errorf("say which images are made, and where")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		recipe, ok := recipes()[name]
		if !ok {
			return fmt.Errorf("there is no recipe for %s: there are %v", name, slices.Sorted(maps.Keys(recipes())))
		}
		if err := makeImage(ctx, filepath.Join(out, name+".tar"), recipe); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}
