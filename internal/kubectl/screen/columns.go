// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

var errNoColumns = errors.New("custom-columns needs NAME:PATH pairs, such as CLAIM:.claim,NODE:.holder.node")

// printable is what printers take.
type printable = runtime.Object

// columns prints chosen fields as a table, as kubectl get -o custom-columns does.
type columns struct {
	names     []string
	paths     []*jsonpath.JSONPath
	noHeaders bool
}

// newColumns reads NAME:PATH pairs: separated by commas, or as a file with a line
// of names and a line of paths.
func newColumns(text string, file, noHeaders bool) (*columns, error) {
	c := &columns{noHeaders: noHeaders}
	var names, paths []string
	if file {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 2 {
			return nil, fmt.Errorf("custom-columns-file needs a line of names and a line of paths, not %d lines", len(lines))
		}
		names, paths = strings.Fields(lines[0]), strings.Fields(lines[1])
	} else {
		for pair := range strings.SplitSeq(text, ",") {
			name, path, ok := strings.Cut(pair, ":")
			if !ok || name == "" || path == "" {
				return nil, errNoColumns
			}
			names, paths = append(names, name), append(paths, path)
		}
	}
	if len(names) == 0 || len(names) != len(paths) {
		return nil, errNoColumns
	}
	for i, path := range paths {
		parser := jsonpath.New(names[i]).AllowMissingKeys(true)
		if err := parser.Parse(relaxed(path)); err != nil {
			return nil, fmt.Errorf("custom-columns %s: %w", names[i], err)
		}
		c.names, c.paths = append(c.names, names[i]), append(c.paths, parser)
	}
	return c, nil
}

// relaxed takes "holder.node" and ".holder.node" for "{.holder.node}".
func relaxed(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// PrintObj prints an object, or each item of a list.
func (c *columns) PrintObj(object printable, w io.Writer) error {
	fields := object.(*unstructured.Unstructured).Object
	items, isList := fields["items"].([]any)
	if !isList {
		items = []any{fields}
	}
	table := printers.GetNewTabWriter(w)
	if !c.noHeaders {
		fmt.Fprintln(table, strings.Join(c.names, "\t"))
	}
	for _, item := range items {
		var row []string
		for _, path := range c.paths {
			var cell bytes.Buffer
			if err := path.Execute(&cell, item); err != nil {
				return err
			}
			row = append(row, orNone(shownLine(cell.String())))
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}
