// SPDX-License-Identifier: Apache-2.0

// Package screen prints facts: as tables with cli-runtime's printers, as screens for people, and as JSON,
// YAML or by a template for programs. It computes nothing.
package screen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// APIVersion is the version of all JSON or YAML output. It follows the API's rules: fields are added, and
// never change their meaning.
const APIVersion = "cli.moorage.dev/v1alpha1"

// Output is the -o flag with its related flags.
type Output struct {
	// Format is empty for people, "wide", or one of the structured formats.
	Format    string
	NoHeaders bool
	// SortBy is the field that a list is sorted by, as in kubectl get --sort-by; empty: unsorted.
	SortBy string

	table bool
}

// NewOutput returns the flags of a command; table says whether it prints a table, with headers that can be
// left out.
func NewOutput(table bool) *Output { return &Output{table: table} }

// AddFlags adds the flags to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "Output format. One of: ("+strings.Join(formats(), ", ")+")")
	if o.table {
		o.AddSort(cmd)
		cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Don't print headers")
	}
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formats(), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

// AddSort adds the flag --sort-by.
func (o *Output) AddSort(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.SortBy, "sort-by", "", "Sort by this field of -o json, such as .node or .cause.since")
}

// Sort sorts values by the field of their JSON that --sort-by names. Values without it come first.
func Sort[T any](o *Output, list []T, value func(T) any) []T {
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if o.SortBy == "" || path.Parse(relaxed(o.SortBy)) != nil {
		return list
	}
	type keyed struct {
		item   T
		text   string
		number float64
	}
	var all []keyed
	for _, item := range list {
		k, fields, text := keyed{item: item}, any(nil), bytes.Buffer{}
		if raw, err := json.Marshal(value(item)); err == nil && utiljson.Unmarshal(raw, &fields) == nil && path.Execute(&text, fields) == nil {
			k.text = text.String()
			k.number, _ = strconv.ParseFloat(k.text, 64)
		}
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text)) })
	for i := range all {
		list[i] = all[i].item
	}
	return list
}

const (
	jsonPath   = "jsonpath"
	wideFormat = "wide"
)

func formats() []string {
	return []string{"json", "yaml", wideFormat, jsonPath}
}

// Validate returns an error for an unknown format.
func (o *Output) Validate() error {
	if err := jsonpath.New("sort-by").Parse(relaxed(o.SortBy)); o.SortBy != "" && err != nil {
		return fmt.Errorf("--sort-by %q: %w", o.SortBy, err)
	}
	if o.Format == "" || o.Format == wideFormat {
		return nil
	}
	_, err := o.printer()
	return err
}

// Structured says whether the output is for programs.
func (o *Output) Structured() bool { return o.Format != "" && o.Format != wideFormat }

// Wide says whether the format is wide.
func (o *Output) Wide() bool { return o.Format == wideFormat }

// Print prints a value for programs, as an object of a kind. A list is printed as the kind's List, with
// items. s adapts the suggested commands.
func (o *Output) Print(w io.Writer, s Style, kind string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	fields := map[string]any{}
	if strings.HasSuffix(kind, "List") {
		items := []any{}
		if err := utiljson.Unmarshal(raw, &items); err != nil {
			return fmt.Errorf("encode %s: %w", kind, err)
		}
		if items == nil {
			items = []any{}
		}
		fields["items"] = items
	} else if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	return o.printFields(w, s, kind, fields)
}

// Item is an item of a list with different kinds.
type Item struct {
	Kind  string
	Value any
}

// PrintItems is Print for a list with the kind in each item, as in kubectl's own lists.
func (o *Output) PrintItems(w io.Writer, s Style, kind string, list []Item) error {
	items := []any{}
	for _, item := range list {
		raw, err := json.Marshal(item.Value)
		if err != nil {
			return fmt.Errorf("encode %s: %w", item.Kind, err)
		}
		fields := map[string]any{}
		if err := utiljson.Unmarshal(raw, &fields); err != nil {
			return fmt.Errorf("encode %s: %w", item.Kind, err)
		}
		fields["apiVersion"], fields["kind"] = APIVersion, item.Kind
		items = append(items, fields)
	}
	return o.printFields(w, s, kind, map[string]any{"items": items})
}

func (o *Output) printFields(w io.Writer, s Style, kind string, fields map[string]any) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	s.ask(fields)
	fields["apiVersion"], fields["kind"] = APIVersion, kind
	return printer.PrintObj(&unstructured.Unstructured{Object: fields}, w)
}

// told are the fields with this program's own words and suggested commands. Other fields, such as drivers'
// messages, stay unchanged.
var told = []string{"do", "changes", "fix", "say", "note"}

// ask adapts the suggested commands in a value to the cluster or file that was asked.
func (s Style) ask(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if text, ok := field.(string); ok && slices.Contains(told, name) {
				value[name] = strings.ReplaceAll(s.Asking(text), "\n"+LiveNote, " "+LiveNote)
			} else {
				s.ask(field)
			}
		}
	case []any:
		for _, item := range value {
			s.ask(item)
		}
	}
}

func printJSON(printer printers.ResourcePrinter) printers.ResourcePrinter {
	return printers.ResourcePrinterFunc(func(object printable, w io.Writer) error {
		var text bytes.Buffer
		if err := printer.PrintObj(object, &text); err != nil {
			return err
		}
		_, err := io.WriteString(Raw(w), escapedJSON(text.String()))
		return err
	})
}

func printYAML(printer printers.ResourcePrinter) printers.ResourcePrinter {
	return printers.ResourcePrinterFunc(func(object printable, w io.Writer) error {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return printer.PrintObj(&runtime.Unknown{Raw: []byte(escapedJSON(string(raw)))}, Raw(w))
	})
}

func (o *Output) printer() (printers.ResourcePrinter, error) {
	format, argument, given := strings.Cut(o.Format, "=")
	switch format {
	case "json":
		return printJSON(&printers.JSONPrinter{}), nil
	case "yaml":
		return printYAML(&printers.YAMLPrinter{}), nil
	case jsonPath:
	default:
		return nil, fmt.Errorf("-o %s is not known, choose one of: %s", o.Format, strings.Join(formats(), ", "))
	}
	if !given || argument == "" {
		return nil, fmt.Errorf("-o %s needs an argument: -o '%s={.items[*].node}'", format, format)
	}
	printer, err := printers.NewJSONPathPrinter(argument)
	if err != nil {
		return nil, fmt.Errorf("-o %s: %w", format, err)
	}
	printer.AllowMissingKeys(true)
	return printer, nil
}

type printable = runtime.Object

// relaxed takes "holder.node" and ".holder.node" for "{.holder.node}".
func relaxed(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return "{." + strings.TrimPrefix(path, ".") + "}"
}
