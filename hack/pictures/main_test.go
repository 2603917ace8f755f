// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPicturesAreDrawn(t *testing.T) {
	const root = "../.."
	drawn, err := pictures(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range drawn {
		if got, err := os.ReadFile(filepath.Join(root, "docs", name)); err != nil || string(got) != want {
			t.Errorf("docs/%s is another one: run go run ./hack/pictures (%v)", name, err)
		}
		decoder := xml.NewDecoder(strings.NewReader(want))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestNoBarWithoutAResult(t *testing.T) {
	if _, err := drawBenchmarks(t.TempDir()); err == nil {
		t.Error("benchmarks are drawn without results")
	}
	if _, err := (counts{"ms, taint: median": 1000}).seconds("networkFence"); err == nil {
		t.Error("a way without a result has seconds")
	}
}
