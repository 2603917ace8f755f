// SPDX-License-Identifier: Apache-2.0

// Package top is kubectl moorage top: slots, waiting pods and volumes on their
// way, as they change.
//
// Reads: everything the ledger is made of, with watches; events of pods that don't start. Decides: nothing.
// Writes: nothing.
package top

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// wipe clears a terminal.
const wipe = "\x1b[H\x1b[J"

// tick is how often ages are drawn anew when nothing changes.
const tick = time.Second

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "top", Short: "Watch slots, waiting pods and volumes on their way; Ctrl-C ends it",
		Long: "Watch slots, waiting pods and volumes on their way; Ctrl-C ends it.\n\n" +
			"Pods are those that have a volume that needs an attachment, and that wait, can't start or are at a dead node; of any other, explain says why it does not run. " +
			"With -n, pods and volumes are those of that namespace; slots are always those of the whole nodes.",
		Example: "  # Watch the whole cluster\n  kubectl moorage top\n\n  # Watch the pods and volumes of one namespace\n  kubectl moorage top -n shop",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := b.Connect()
			if err != nil {
				return err
			}
			if once || !b.Style().Terminal {
				return show(cmd.Context(), b, c)
			}
			return live(cmd.Context(), b, c)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "Print once and end, as when the output is no terminal")
	return cmd
}

// show prints the screen once.
func show(ctx context.Context, b *command.Base, c *cluster.Cluster) error {
	w, err := c.Read(ctx)
	if err != nil {
		return err
	}
	if err := screen.Unseen(b.Streams.ErrOut, screen.StyleOf(b.Streams.ErrOut), w.Unseen); err != nil {
		return err
	}
	c.ReadStarting(ctx, w)
	return screen.TopOf(w, b.Flags.Chosen(), c.Clock()).Print(b.Streams.Out, b.Style())
}

// live draws the screen at every change, and every second for the ages, until
// ctx ends.
func live(ctx context.Context, b *command.Base, c *cluster.Cluster) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worlds, ended := make(chan *facts.World, 1), make(chan error, 1)
	go func() {
		ended <- c.FollowStarting(ctx, func(w *facts.World) error {
			select {
			case worlds <- w:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var last *facts.World
	for {
		select {
		case err := <-ended:
			return err
		case last = <-worlds:
		case <-ticker.C:
		}
		if last == nil {
			continue
		}
		if _, err := fmt.Fprint(screen.Raw(b.Streams.Out), wipe); err != nil {
			return err
		}
		if err := screen.TopOf(last, b.Flags.Chosen(), c.Clock()).Print(b.Streams.Out, b.Style()); err != nil {
			return err
		}
	}
}
