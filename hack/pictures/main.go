// SPDX-License-Identifier: Apache-2.0

// Command pictures draws the pictures of the documentation, each into docs:
//
//	go run ./hack/pictures
//
// architecture.svg shows the components and the objects between them. benchmarks.svg is drawn
// from test/bench/results. A test fails if a file is not what the command draws.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	drawn, err := pictures(root)
	if err != nil {
		return err
	}
	for name, text := range drawn {
		if err := os.WriteFile(filepath.Join(root, "docs", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func pictures(root string) (map[string]string, error) {
	benchmarks, err := drawBenchmarks(filepath.Join(root, "test/bench/results"))
	if err != nil {
		return nil, err
	}
	return map[string]string{"architecture.svg": drawArchitecture(), "benchmarks.svg": benchmarks}, nil
}
