// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
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
  resources:
    limits: {cpu: 1}
# A part.
other:
  list: [{x: 1}]
  none: {}
  words: ""
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []value{
		{"mode", "`a`", "How it works. In two lines."},
		{"section.on", "`true`", `Yes \| no.`},
		{"section.resources", "`{limits: {cpu: 1}}`", ""},
		{"other", "", "A part."},
		{"other.list", "`[{x: 1}]`", ""},
		{"other.none", "`{}`", ""},
		{"other.words", "`\"\"`", ""},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if _, err := values([]byte("[]")); err == nil {
		t.Error("a list is taken for values")
	}
}
