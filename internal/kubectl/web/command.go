// SPDX-License-Identifier: Apache-2.0

// Package web is kubectl moorage web: a local page of nodes, volumes and waiters.
//
// Reads: the ledger's objects, live; Leases and events of selected objects; the API server's version, as a
// sign of life. Decides nothing: facts and explain compute the content. Writes nothing.
package web

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

const examples = `  # Open the page in the browser
  kubectl moorage web

  # Without a browser: print the address, and reach it through a tunnel
  kubectl moorage web --open=false --port 8080
  ssh -L 8080:127.0.0.1:8080 jumphost

  # Look at a bundle that somebody has sent
  kubectl moorage web --bundle moorage-bundle.tar.gz`

type options struct {
	base *command.Base
	port uint16
	open bool
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "web", Short: "Show nodes, volumes and who waits on a page in the browser",
		Long: "Show nodes, slots, volumes and who waits for what on a page in the browser. Ctrl-C ends it.\n\n" +
			"The page is served by this command, on this machine only, with your rights; it reads, follows what changes, and loads nothing from elsewhere. " +
			"Its address has a secret token: whoever knows it, and can reach this machine's ports, sees what you may see. " +
			"Keys: arrows move over the map, Enter opens a volume, n its node, / searches, Esc closes, ? shows all keys.",
		Example: examples, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("open") {
				o.open = b.Style().Terminal
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "Port to serve the page on; 0 for one that is free")
	cmd.Flags().BoolVar(&o.open, "open", true, "Open the page in the browser; only on a terminal, unless it is set")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	c, err := o.base.Connect()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h, ended := newHub(), make(chan error, 2)
	_, changed := h.get()
	go func() { ended <- follow(ctx, c, o.base.Plain(), h) }()
	select { // a first read's error is the command's
	case err := <-ended:
		return err
	case <-changed:
	}
	s := &server{hub: h, source: c.Config.Host, frozen: c.File, clock: c.Clock}
	if c.File {
		s.source = filepath.Base(o.base.Flags.Bundle)
	} else {
		go probe(ctx, c, h)
	}
	s.detail = func(ctx context.Context, ref string) (Detail, error) {
		now, _ := h.get()
		return (&details{cluster: c, world: now.world, style: o.base.Plain()}).of(ctx, ref)
	}
	return o.listen(ctx, s, ended)
}

func (o *options) listen(ctx context.Context, s *server, ended chan error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return err
	}
	token := newToken()
	web := newServer(ctx, s.handler(token))
	o.announce(ctx, listener.Addr(), token)
	go func() { ended <- web.Serve(listener) }()
	select {
	case <-ctx.Done():
		return web.Close()
	case err := <-ended:
		return errors.Join(err, web.Close())
	}
}

func (o *options) announce(ctx context.Context, at net.Addr, token string) {
	url := "http://" + at.String() + "/" + token + "/"
	fmt.Fprintf(o.base.Streams.Out, "%s\nCtrl-C ends it. The address is a secret: it shows what you may see.\n", url)
	if o.open {
		if err := openBrowser(ctx, url); err != nil {
			_ = o.base.Say(o.base.Streams.ErrOut, "No browser could be opened (%v): open the address yourself.", err) // a closed stream stops nothing
		}
	}
}

// idle is the pause between views, as a multiple of a view's time.
const idle = 1

func follow(ctx context.Context, c *cluster.Cluster, s screen.Style, h *hub) error {
	return c.Follow(ctx, func(w *facts.World) error {
		began := time.Now()
		h.set(w, viewOf(w, s))
		select {
		case <-ctx.Done():
		case <-time.After(idle * time.Since(began)):
		}
		return nil
	})
}

// probe checks that the API server answers: a silent watch looks like a still cluster.
func probe(ctx context.Context, c *cluster.Cluster, h *hub) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		h.setProblem(c.Problem(ctx, heartbeat))
	}
}

// openBrowser does not wait for the system's opener.
func openBrowser(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the browser's result is ignored
	return nil
}

//go:embed assets
var assets embed.FS
