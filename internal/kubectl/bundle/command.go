// SPDX-License-Identifier: Apache-2.0

// Package bundle is kubectl moorage bundle: everything that is needed to answer a report,
// in one file that can be sent to somebody who has no access to the cluster.
//
// Reads: what all other commands read, without Secrets; logs and metrics of Moorage's pods.
// Decides: nothing. Writes: a file of this machine.
package bundle

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

const examples = `  # Write moorage-bundle-….tar.gz to send along with a report
  kubectl moorage bundle

  # Without logs and metrics
  kubectl moorage bundle --logs=false --out report.tar.gz

  # Ask the file what you would ask the cluster
  kubectl moorage explain pod/db-0 -n shop --bundle report.tar.gz`

// options are the command's flags.
type options struct {
	out   string
	logs  bool
	since time.Duration
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write what somebody needs to answer a report into one file",
		Long: "Write what somebody needs to answer a report into one file: objects as they are now, what doctor says, " +
			"and logs and metrics of Moorage's own pods. Every command that only reads answers from the file, too: --bundle FILE.\n\n" +
			"What you may not list in all namespaces is read in the one of -n.\n\n" +
			"Secrets are not read. It leaves out values of environment variables, commands and arguments of containers " +
			"(except Moorage's and kube-controller-manager's), parameters of volumes, " +
			"and annotations that are neither Kubernetes' nor Moorage's. Names stay: look through the file before you publish it.",
		Example: examples,
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), b) },
	}
	cmd.Flags().StringVarP(&o.out, "out", "f", "", "File to write, .tar.gz or .tgz; - for the output stream (default moorage-bundle-TIME.tar.gz)")
	cmd.Flags().BoolVar(&o.logs, "logs", true, "Include logs and metrics of Moorage's pods")
	cmd.Flags().DurationVar(&o.since, "since", time.Hour, "How far back logs go")
	return cmd
}

// Named is the error for a file to write, named by a flag, whose ending says that it is something
// else than the compressed tar archive that bundle writes.
func Named(flag, file string) error {
	return command.Ending(flag, file, "a compressed tar archive", ".tar.gz", ".tgz")
}

func (o options) run(ctx context.Context, b *command.Base) error {
	if o.since <= 0 {
		return fmt.Errorf("--since %s: a positive duration, such as 1h", o.since)
	}
	if err := Named("--out", o.out); err != nil {
		return err
	}
	c, err := b.Connect()
	if err != nil {
		return err
	}
	tell := func(format string, args ...any) { fmt.Fprintf(b.Streams.ErrOut, format+"\n", args...) }
	if o.out == "-" {
		_, err := collect(ctx, c, screen.Raw(b.Streams.Out), o, tell)
		return err
	}
	if o.out == "" {
		o.out = "moorage-bundle-" + c.Clock().UTC().Format("20060102-150405") + ".tar.gz"
	}
	var narrowed bool
	if err := command.WriteWhole(o.out, func(w io.Writer) (err error) { narrowed, err = collect(ctx, c, w, o, tell); return err }); err != nil {
		return err
	}
	if err := b.Say(b.Streams.Out, "%s: look through it before you publish it: names of objects and logs are in it.", o.out); err != nil {
		return err
	}
	ask := "doctor"
	if narrowed {
		ask = "volumes -n " + c.Namespace
	}
	_, err = fmt.Fprintf(b.Streams.Out, "Read it with: kubectl moorage %s --bundle %s\n", ask, screen.Quoted(o.out))
	return err
}
