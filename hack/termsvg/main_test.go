// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

const demo = "opening\n\n\x1b[1m━━━ 1  One ━━━\x1b[0m\nintro\n\n  \x1b[36mMoorage\x1b[0m\n    \x1b[2m   1.0 s  \x1b[0malpha\n" +
	"\n━━━ 2  Two ━━━\nintro\n\n  Upstream, the same manifests\n       3.1 s  web-1 runs on worker-1; a new version rolls out, and would rather be\n              elsewhere\n" +
	"              $ kubectl get pods\n              NAME   STATUS\n              web-1  a < b\n" +
	"              $ kubectl get wide\n              " + "wide" + "                                                                 table\n" +
	"      24.5 s  given up\n              POD    NODE      RUNNING\n              web-1  worker-1  –\n    \x1b[31m✗ hangs\x1b[0m\n      (26 s)\n" +
	"\n  Moorage\n       3.0 s  beta\n    ✓ is done\n      The judge saw nothing\n\n━━━ All scenes ━━━\n  SCENE  UPSTREAM\n"

func TestDraw(t *testing.T) {
	var out strings.Builder
	if err := draw(&out, strings.NewReader(demo), "2"); err != nil {
		t.Fatal(err)
	}
	picture := out.String()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, picture)
		}
	}
	for _, want := range []string{
		`fill="#ff7b72" font-weight="bold">Upstream, the same manifests<`, `fill="#ff7b72">✗ hangs<`, `stroke="#ff7b72"`,
		`fill="#7ee787" font-weight="bold">Moorage<`, `fill="#7ee787">✓ is done<`, `stroke="#7ee787"`,
		`>   3.1 s  web-1 runs on worker-1; a new version<`, `>          rolls out, and would rather be elsewhere<`,
		`>$ kubectl get pods<`, `>web-1  a &lt; b<`,
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
	for _, other := range []string{"alpha", "intro", "wide", "All scenes", "SCENE", "judge", "\x1b"} {
		if strings.Contains(picture, other) {
			t.Errorf("%q is drawn:\n%s", other, picture)
		}
	}
}

func TestDrawNoScene(t *testing.T) {
	if err := draw(io.Discard, strings.NewReader(demo), "4"); err == nil {
		t.Error("a scene is drawn that the demo does not have")
	}
}
