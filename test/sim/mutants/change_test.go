// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const marked = `package p

func f(a, b bool) bool { return a && b } //mutant:function

func g(a, b bool) int {
	if a && b { //mutant:if
		h() //mutant:statement
	}
	switch {
	case a, b: //mutant:case
	}
	x := thing{
		field: 1, //mutant:field
	}
	return x.field //mutant:return
}
`

func TestChange(t *testing.T) {
	for _, test := range []struct{ marker, how, text, want string }{
		{"function", "value", "a", "{ return a } //"},
		{"if", "condition", "false", "if false { //"},
		{"if", "and", "!b", "if (a && b) && (!b) { //"},
		{"if", "or", "!b", "if (a && b) || (!b) { //"},
		{"statement", "drop", "", "{ //mutant:if\n\t\t //mutant:statement"},
		{"case", "condition", "b", "case b: //"},
		{"field", "value", "2", "field: 2, //"},
		{"return", "value", "0", "return 0 //"},
	} {
		changed, err := change{test.marker, test.how, test.text}.apply(marked)
		if err != nil || !strings.Contains(changed, test.want) {
			t.Errorf("%s %s %s: %v\n%s", test.marker, test.how, test.text, err, changed)
		}
	}
	for _, wrong := range []change{{"nowhere", "drop", ""}, {"return", "condition", "false"}, {"if", "value", "1"}, {"if", "condition", ")"}} {
		if changed, err := wrong.apply(marked); err == nil {
			t.Errorf("%v is applied:\n%s", wrong, changed)
		}
	}
}
