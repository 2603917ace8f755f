// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// options are the command's flags.
type options struct {
	failOn string
	probe  bool
	all    bool
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	var o options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check whether Moorage, and what it depends on, is set up correctly",
		Long: "Check whether Moorage, and what it depends on, is set up correctly. Each finding has its evidence, and what to do.\n\n" +
			"✗ does not work, or may do harm; ! works, and not as well as it could; ? could not be checked; · worth knowing; ✓ as it should be (with --all).\n\n" +
			"Exit code: 0 when nothing is as bad as --fail-on, 2 when something is, 1 when the cluster could not be examined.\n\nChecks: " + strings.Join(checkNames(), ", ") + ".",
		Example: "  # What is wrong?\n  kubectl moorage doctor\n\n  # In CI: fail on warnings, too\n  kubectl moorage doctor --fail-on warning -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limit, err := o.limit()
			if err != nil {
				return err
			}
			if err := output.Validate(); err != nil {
				return err
			}
			c, err := b.Connect()
			if err != nil {
				return err
			}
			report, err := Examine(cmd.Context(), c, o.probe)
			if err != nil {
				return err
			}
			if output.Structured() {
				err = output.Print(b.Streams.Out, b.Style(), "DoctorReport", report)
			} else {
				err = screen.Findings(b.Streams.Out, b.Style(), findings(report), o.all)
			}
			if err != nil {
				return err
			}
			if report.Worst.rank() >= limit {
				return &command.ExitError{Code: command.ExitFindings}
			}
			return nil
		},
	}
	output.AddFlags(cmd)
	cmd.Flags().StringVar(&o.failOn, "fail-on", "error", "Exit with code 2 on findings of this severity or worse: error, warning, unknown or never")
	cmd.Flags().BoolVar(&o.probe, "probe", true, "Create a pod as a dry run in a namespace that opted in, to have the webhook called, if you may")
	cmd.Flags().BoolVar(&o.all, "all", false, "Also show what is as it should be")
	return cmd
}

// Examine makes every check of a cluster. With probe it creates a pod as a dry run, too, if
// that is allowed. An error means that the cluster could not be examined.
func Examine(ctx context.Context, c *cluster.Cluster, probe bool) (Report, error) {
	e, err := gather(ctx, c, probe)
	if err != nil {
		return Report{}, err
	}
	return examine(e), nil
}

// limit is the rank from which on findings fail the command.
func (o options) limit() (int, error) {
	switch strings.ToLower(o.failOn) {
	case "never":
		return Error.rank() + 1, nil
	case "error":
		return Error.rank(), nil
	case "warning":
		return Warning.rank(), nil
	case "unknown":
		return Unknown.rank(), nil
	}
	return 0, fmt.Errorf("--fail-on %q is not known: choose error, warning, unknown or never", o.failOn)
}

// findings are the report's, as they are shown.
func findings(r Report) []screen.Finding {
	var list []screen.Finding
	for _, f := range r.Findings {
		list = append(list, screen.Finding{
			Sign: map[Severity]string{OK: "✓", Info: "·", Unknown: "?", Warning: "!", Error: "✗"}[f.Severity],
			Good: f.Severity == OK, Bad: f.Severity == Error, Check: f.Check, Message: f.Message, Evidence: f.Evidence, Fix: f.Fix,
		})
	}
	return list
}
