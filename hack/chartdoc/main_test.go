// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestValuesAreListedWithTheirComments(t *testing.T) {
	got, err := values([]byte(`# A licence.

# How it works.
# In two lines.
mode: a

section:
  # Yes | no.
  on: true
  # How much.
  resources:
    limits: {cpu: 1}
# A part.
other:
  # Several.
  list: [{x: 1}]
  # Empty.
  none: {}
  # Text.
  words: ""
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []value{
		{"mode", "`a`", "How it works. In two lines."},
		{"section.on", "`true`", `Yes \| no.`},
		{"section.resources", "`{limits: {cpu: 1}}`", "How much."},
		{"other", "", "A part."},
		{"other.list", "`[{x: 1}]`", "Several."},
		{"other.none", "`{}`", "Empty."},
		{"other.words", "`\"\"`", "Text."},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if _, err := values([]byte("[]")); err == nil {
		t.Error("a list is taken for values")
	}
	if _, err := values([]byte("# A part.\na:\n  # Text.\n  b: 1\n  c: 2\n")); err == nil || !strings.Contains(err.Error(), "a.c") {
		t.Errorf("a value without a comment: %v", err)
	}
}
