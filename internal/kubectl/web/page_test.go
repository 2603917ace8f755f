// SPDX-License-Identifier: Apache-2.0

package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// These make markup, style or code from text, or load foreign content.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML|\beval\(|new Function|` +
	`setAttribute\('(?:on|style)|javascript:|importScripts|https?://|//[a-z]+\.[a-z]|@import|url\(`)

// Names in a cluster can be anything.
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
	if err != nil || files != 9 {
		t.Errorf("%d files: %v", files, err)
	}
}
