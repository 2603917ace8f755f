// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"
)

func TestRun(t *testing.T) {
	var shown bytes.Buffer
	got, err := Run(t.Context(), []string{"printf", `pkg: a\nBenchmarkX-2 10 2.5 ns/op\n`}, &shown)
	if err != nil || len(got) != 1 || got[0].Package != "a" || got[0].Values["ns/op"] != 2.5 {
		t.Errorf("got %+v, %v", got, err)
	}
	if shown.String() != "pkg: a\nBenchmarkX-2 10 2.5 ns/op\n" {
		t.Errorf("showed %q", shown.String())
	}
	for name, command := range map[string][]string{
		"a failing command": {"false"},
		"no benchmark":      {"printf", "PASS"},
		"a broken line":     {"printf", "BenchmarkX 10 fast ns/op"},
	} {
		if _, err := Run(t.Context(), command, &shown); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}
