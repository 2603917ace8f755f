// SPDX-License-Identifier: Apache-2.0

// Package kubectl is kubectl moorage: it shows volumes' holders, waiters and their reasons, by the deciding
// rules.
//
// Each command group has a package. facts computes the output, cluster reads, screen prints.
package kubectl

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl/bundle"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/doctor"
	"github.com/moorage-dev/moorage/internal/kubectl/drain"
	"github.com/moorage-dev/moorage/internal/kubectl/explain"
	"github.com/moorage-dev/moorage/internal/kubectl/imports"
	"github.com/moorage-dev/moorage/internal/kubectl/list"
	"github.com/moorage-dev/moorage/internal/kubectl/move"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/top"
	"github.com/moorage-dev/moorage/internal/kubectl/web"
	"github.com/moorage-dev/moorage/internal/report"
)

// Setting replaces a command's surroundings in tests.
type Setting struct {
	// Now is nil for the API server's clock.
	Now func() time.Time
	// Style is nil for the output stream's.
	Style *screen.Style
	// Server is the API server's address; empty: by flags and kubeconfig.
	Server string
}

// Run runs the command line until ctx ends, and returns its exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	return RunIn(ctx, streams, args, Setting{})
}

// RunIn is Run with a setting.
func RunIn(ctx context.Context, streams genericiooptions.IOStreams, args []string, setting Setting) int {
	streams.Out, streams.ErrOut = screen.Visible(streams.Out), screen.Visible(streams.ErrOut)
	base := &command.Base{
		Flags:   command.NewFlags(streams.ErrOut),
		Streams: streams, UserAgent: "kubectl-moorage/" + report.Version, Now: setting.Now, Set: setting.Style,
	}
	base.Flags.Server = setting.Server
	cmd := NewCommand(base)
	cmd.SetArgs(args)
	return base.Exit(cmd.ExecuteContext(ctx))
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "kubectl-moorage",
		Short:                      "Show where a volume is, who waits for it and why",
		Version:                    report.Version,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl moorage"},
		SilenceUsage:               true,
		SilenceErrors:              true,
		DisableAutoGenTag:          true,
		SuggestionsMinimumDistance: 2,
		Example:                    "  kubectl moorage explain pod/db-0    # Why does it not run?",
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// A containing program may already have this flag: cobra rejects duplicates.
	cmd.Flags().Bool("version", false, "version for kubectl moorage")
	command.Help(cmd, b.Style)
	b.Flags.AddFlags(cmd.PersistentFlags())
	if err := cmd.RegisterFlagCompletionFunc("namespace", b.Complete(command.Namespaces)); err != nil {
		cobra.CompErrorln(err.Error())
	}
	cmd.SetIn(b.Streams.In)
	cmd.SetOut(b.Streams.Out)
	cmd.SetErr(b.Streams.ErrOut)
	tickets := list.NewTicketsCommand(b)
	tickets.AddCommand(move.NewMakeCommand(b), explain.NewTicketCommand(b), move.NewRenewCommand(b), move.NewLetGoCommand(b), move.NewEndCommand(b))
	cmd.AddCommand(
		explain.NewCommand(b),
		list.NewVolumesCommand(b),
		list.NewNodesCommand(b),
		tickets,
		doctor.NewCommand(b),
		drain.NewPlanCommand(b),
		drain.NewCommand(b),
		imports.NewCommand(b),
		top.NewCommand(b),
		web.NewCommand(b),
		bundle.NewCommand(b),
		command.NewOptionsCommand(),
	)
	return cmd
}
