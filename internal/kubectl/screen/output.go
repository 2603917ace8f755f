// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// APIVersion is that of everything printed as JSON or YAML. It is versioned by
// the same rules as the API: fields are added, and never change their meaning.
const APIVersion = "cli.moorage.dev/v1alpha1"

// Output is the -o flag and those that go with it.
type Output struct {
	// Format is empty for people, "wide", or one of the structured formats.
	Format    string
	NoHeaders bool

	structured *genericclioptions.JSONYamlPrintFlags
	template   *genericclioptions.KubeTemplatePrintFlags
	wide       bool
}

// NewOutput returns the flags of a command; wide says whether it has more
// columns to show.
func NewOutput(wide bool) *Output {
	return &Output{
		structured: genericclioptions.NewJSONYamlPrintFlags(),
		template:   genericclioptions.NewKubeTemplatePrintFlags(), wide: wide,
	}
}

// AddFlags adds the flags to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "Output format. One of: ("+strings.Join(o.formats(), ", ")+")")
	o.template.AddFlags(cmd)
	if o.wide {
		cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Don't print headers")
	}
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return o.formats(), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

func (o *Output) formats() []string {
	formats := slices.Concat(o.structured.AllowedFormats(), o.template.AllowedFormats())
	if o.wide {
		formats = append(formats, "wide")
	}
	return formats
}

// Validate says whether the format is one.
func (o *Output) Validate() error {
	if o.Format == "" || o.wide && o.Format == "wide" {
		return nil
	}
	_, err := o.printer()
	return err
}

// Structured says whether the output is for programs.
func (o *Output) Structured() bool { return o.Format != "" && o.Format != "wide" }

// Wide says whether all columns are asked for.
func (o *Output) Wide() bool { return o.Format == "wide" }

// Print prints a value for programs, as an object of a kind. A list is printed
// as the kind's List, with items.
func (o *Output) Print(w io.Writer, kind string, value any) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
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
	fields["apiVersion"], fields["kind"] = APIVersion, kind
	return printer.PrintObj(&unstructured.Unstructured{Object: fields}, w)
}

func (o *Output) printer() (printers.ResourcePrinter, error) {
	if p, err := o.structured.ToPrinter(o.Format); !genericclioptions.IsNoCompatiblePrinterError(err) {
		return p, err
	}
	p, err := o.template.ToPrinter(o.Format)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s", o.Format, strings.Join(o.formats(), ","))
	}
	return p, err
}
