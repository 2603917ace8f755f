// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// forbidden are the ways to make markup, style or code from a text, and to load foreign content.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML|\beval\(|new Function|` +
	`setAttribute\('(?:on|style)|javascript:|importScripts|https?://|//[a-z]+\.[a-z]|@import|url\(`)

// Names in a cluster can be anything; a page that sets them as text only shows them.
func TestPageSetsTextOnly(t *testing.T) {
	files := 0
	err := fs.WalkDir(assets, "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := assets.ReadFile(path)
		for i, line := range strings.Split(string(raw), "\n") {
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d has %q", path, i+1, found)
			}
		}
		return err
	})
	if err != nil || files != len(modules())+2 {
		t.Errorf("%d files: %v", files, err)
	}
}

var (
	imported = regexp.MustCompile(`(?m)^import .* from '\./([a-z]+\.js)';$`)
	declared = regexp.MustCompile(`(?m)^(?:export )?(?:async )?(?:function|class|const|let) ([A-Za-z_]+)`)
)

// In a one-file page the modules follow each other: each comes after its imports, and no two define the
// same name.
func TestModulesCanBeOne(t *testing.T) {
	seen := map[string]string{}
	for i, name := range modules() {
		text := string(asset(name))
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(modules()[:i], m[1]) {
				t.Errorf("%s imports %s, which comes later", name, m[1])
			}
		}
		if n := strings.Count(text, "\nimport "); n != len(imported.FindAllString(text, -1)) {
			t.Errorf("%s has %d imports, of which some are not one line each", name, n)
		}
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			if seen[m[1]] != "" {
				t.Errorf("%s and %s both have %s", seen[m[1]], name, m[1])
			}
			seen[m[1]] = name
		}
	}
	if bundle := bundled(modules()...); strings.Contains(bundle, "\nimport ") || strings.Contains(bundle, "\nexport ") || len(seen) < 10 {
		t.Errorf("%d names; the bundle has imports or exports", len(seen))
	}
}

const hostile = "</script><script>alert(1)</script><!--<script>\u2028\"'&<img src=x onerror=alert(1)>"

// The one-file page shows its data, with any names, and loads nothing.
func TestStaticPage(t *testing.T) {
	s := Static{Source: hostile, Taken: noon(), Details: map[string]Detail{"node/" + hostile: {Answer: hostile, Text: hostile}}, View: &view.View{
		Nodes: []view.Node{{Name: hostile}}, Volumes: []view.Volume{{Key: hostile, Claim: hostile}}, Waits: []view.Wait{{Ref: "pod/" + hostile, Answer: hostile}},
		Links: []view.Link{{From: "pod/" + hostile, Message: hostile}},
	}}
	var page bytes.Buffer
	if err := WriteStatic(&page, s); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if strings.Contains(text, hostile) || strings.Contains(text, "<img") || strings.Contains(text, "alert(1)</script>") {
		t.Error("a name is markup")
	}
	if n := strings.Count(text, "<script"); n != 2 || strings.Count(text, "</script>") != 2 {
		t.Errorf("the page has %d scripts, want the data and the code", n)
	}
	_, rest, _ := strings.Cut(text, `id="data">`)
	data, _, _ := strings.Cut(rest, "</script>")
	var read Static
	if err := json.Unmarshal([]byte(data), &read); err != nil || read.View.Nodes[0].Name != hostile || read.Details["node/"+hostile].Text != hostile {
		t.Errorf("the data: %v, %+v", err, read)
	}
	for _, attribute := range []string{` src="`, `rel="stylesheet"`, "import "} {
		if strings.Contains(strings.ReplaceAll(text, "\n//", ""), attribute) {
			t.Errorf("the page loads something: it has %q", attribute)
		}
	}
	_, rest, _ = strings.Cut(text, `<script type="module">`)
	code, _, _ := strings.Cut(rest, "</script>")
	if !strings.Contains(text, "script-src "+hashOf(code)) || strings.Contains(text, "unsafe") {
		t.Error("the policy does not let the page's own code run, or lets more run")
	}
}
