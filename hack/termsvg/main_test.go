// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	var out strings.Builder
	if err := draw(&out, strings.NewReader("plain\n\x1b[32m✓\x1b[0m a < b & c\n")); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, out.String())
		}
	}
	for _, want := range []string{">plain<", `fill="#7ee787">✓<`, "> a &lt; b &amp; c<"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
