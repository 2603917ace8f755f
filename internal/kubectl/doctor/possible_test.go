// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type messages map[string]bool

var verb = regexp.MustCompile(`%[a-z]`)

func possible(t *testing.T) messages {
	t.Helper()
	all := messages{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 4 {
				return true
			}
			if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "found" {
				return true
			}
			message, ok := call.Args[3].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: a message of found is no literal", file.Name())
				return true
			}
			text, err := strconv.Unquote(message.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[text] = false
			return true
		})
	}
	if len(all) < 25 {
		t.Fatalf("only %d messages are found in the source", len(all))
	}
	return all
}

func (m messages) note(f Finding) {
	for text, seen := range m {
		var pattern strings.Builder
		for i, part := range verb.Split(text, -1) {
			if i > 0 {
				pattern.WriteString("(?s:.*)")
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		m[text] = seen || regexp.MustCompile("^"+pattern.String()+"$").MatchString(f.Message)
	}
}

func (m messages) left() []string {
	var list []string
	for text, seen := range m {
		if !seen {
			list = append(list, text)
		}
	}
	return list
}
