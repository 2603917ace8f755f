// SPDX-License-Identifier: Apache-2.0

// Package command is what the commands of kubectl moorage have in common:
// flags, streams, how they end, and how names are completed.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// Base is what every command works with.
type Base struct {
	// Flags are kubectl's own: --kubeconfig, --context, -n and so on.
	Flags *Flags
	// Streams are the terminal's, or a test's. What is written to them is shown as
	// screen.Visible shows it.
	Streams genericiooptions.IOStreams
	// UserAgent names this program to the API server.
	UserAgent string
	// Now replaces the API server's clock where a test needs a fixed one.
	Now func() time.Time
	// Set replaces the style that suits the output stream.
	Set *screen.Style
}

// Connect makes the clients that the flags ask for: of a cluster, or of a file that
// answers in its place, and whose time is then the clock.
func (b *Base) Connect() (*cluster.Cluster, error) {
	if b.Flags.Bundle != "" {
		a, err := archive.Open(context.Background(), b.Flags.Bundle)
		if err != nil {
			return nil, err
		}
		c, err := cluster.Connect(archive.NewServer(a).Config(context.Background()), b.Flags.Namespace(), b.UserAgent)
		if err == nil {
			c.Clock, c.Kept = a.Now, a.Objects
		}
		return c, err
	}
	config, namespace, err := b.Flags.Config()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Connect(config, namespace, b.UserAgent)
	if err == nil && b.Now != nil {
		c.Clock = b.Now
	}
	return c, err
}

// Style is the one that suits the output stream.
func (b *Base) Style() screen.Style {
	s := screen.StyleOf(b.Streams.Out)
	if b.Set != nil {
		s = *b.Set
	}
	s.Bundle, s.Flags = b.Flags.Bundle, b.Flags.Named()
	return s
}

// Plain is the style of text for a page or a file, whose commands ask what was asked.
func (b *Base) Plain() screen.Style {
	return screen.Style{Bundle: b.Flags.Bundle, Flags: b.Flags.Named()}
}

// Say prints a sentence for people, broken where the line ends.
func (b *Base) Say(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(w, b.Style().Wrap(fmt.Sprintf(format, args...), 0))
	return err
}

// Read connects and reads the cluster once.
func (b *Base) Read(ctx context.Context) (*cluster.Cluster, *facts.World, error) {
	c, err := b.Connect()
	if err != nil {
		return nil, nil, err
	}
	w, err := c.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, w, nil
}

// ExitError ends the program with a code of its own. An error without a
// message ends it silently: what there is to say has been said.
type ExitError struct {
	Code    int
	Message string
}

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

// The exit codes.
const (
	ExitFailed   = 1 // the command could not do its work
	ExitFindings = 2 // doctor has found something; a request was refused
)

// Exit prints an error as kubectl does, and returns the exit code for it.
func (b *Base) Exit(err error) int {
	var exit *ExitError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.Message != "" {
			fmt.Fprintf(b.Streams.ErrOut, "error: %s\n", b.Style().Linked(exit.Message))
		}
		return exit.Code
	case errors.Is(err, context.Canceled):
		return ExitFailed // Ctrl-C: the user knows
	case errors.As(err, &status) && b.Flags.Bundle != "": // there is no server
		fmt.Fprintf(b.Streams.ErrOut, "error: %s: %s\n", b.Flags.Bundle, err)
	case errors.As(err, &status):
		fmt.Fprintf(b.Streams.ErrOut, "Error from server (%s): %s\n", status.Status().Reason, b.Style().Linked(err.Error()))
	default:
		fmt.Fprintf(b.Streams.ErrOut, "error: %s\n", b.Style().Linked(strings.TrimPrefix(err.Error(), "error: ")))
	}
	return ExitFailed
}

// completionPatience is for how long a shell waits for names after Tab.
const completionPatience = 3 * time.Second

// Complete returns a cobra completion of names that are read from the cluster.
func (b *Base) Complete(names func(ctx context.Context, c *cluster.Cluster, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		c, err := b.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		var found []string
		for _, name := range names(ctx, c, args) {
			if strings.HasPrefix(name, prefix) {
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
