// SPDX-License-Identifier: Apache-2.0

// Package screen prints facts as tables, screens, JSON or YAML. It computes nothing.
package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
)

// APIVersion is for all JSON or YAML output. Fields may be added, but never change their meaning.
const APIVersion = "cli.moorage.dev/v1alpha1"

// Output is the -o flag and its related flags.
type Output struct {
	// Format is empty for people, "wide", or structured.
	Format    string
	NoHeaders bool

	table bool
}

// NewOutput returns a command's flags; table: with optional headers.
func NewOutput(table bool) *Output { return &Output{table: table} }

// AddFlags adds the flags to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "Output format. One of: ("+strings.Join(formats(), ", ")+")")
	if o.table {
		cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Don't print headers")
	}
	complete := cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

const wideFormat = "wide"

func formats() []string { return []string{"json", "yaml", wideFormat} }

// Validate returns an error for an unknown format.
func (o *Output) Validate() error {
	if o.Format == "" || slices.Contains(formats(), o.Format) {
		return nil
	}
	return fmt.Errorf("-o %s is not known, choose one of: %s", o.Format, strings.Join(formats(), ", "))
}

// Structured says whether the output is for programs.
func (o *Output) Structured() bool { return o.Format != "" && o.Format != wideFormat }

// Wide says whether the format is wide.
func (o *Output) Wide() bool { return o.Format == wideFormat }

// Print prints a value for programs. s adapts the suggested commands.
func (o *Output) Print(w io.Writer, s Style, kind string, value any) error {
	fields, err := fieldsOf(kind, value)
	if err != nil {
		return err
	}
	return o.printFields(w, s, fields)
}

// Item is a list's item; kind may be empty if the list names it.
type Item struct {
	Kind  string
	Value any
}

// PrintList prints values for programs, as a list of a kind.
func (o *Output) PrintList(w io.Writer, s Style, kind string, list []Item) error {
	items := []any{}
	for _, item := range list {
		fields, err := fieldsOf(item.Kind, item.Value)
		if err != nil {
			return err
		}
		items = append(items, fields)
	}
	return o.printFields(w, s, map[string]any{"apiVersion": APIVersion, "kind": kind, "items": items})
}

func fieldsOf(kind string, value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	if kind != "" {
		fields["apiVersion"], fields["kind"] = APIVersion, kind
	}
	return fields, nil
}

// printFields escapes characters that steer a terminal.
func (o *Output) printFields(w io.Writer, s Style, fields map[string]any) error {
	s.ask(fields)
	object := &unstructured.Unstructured{Object: fields}
	if o.Format == "yaml" {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return (&printers.YAMLPrinter{}).PrintObj(&runtime.Unknown{Raw: []byte(escapedJSON(string(raw)))}, Raw(w))
	}
	var text bytes.Buffer
	if err := (&printers.JSONPrinter{}).PrintObj(object, &text); err != nil {
		return err
	}
	_, err := io.WriteString(Raw(w), escapedJSON(text.String()))
	return err
}

// told are fields with suggested commands; drivers' messages stay unchanged.
var told = []string{"do", "changes", "fix", "say", "note"}

// ask adapts suggested commands to the asked cluster or file.
func (s Style) ask(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if text, ok := field.(string); ok && slices.Contains(told, name) {
				value[name] = s.Asking(text)
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
