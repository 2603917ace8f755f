// SPDX-License-Identifier: Apache-2.0

// Package web is kubectl moorage web: a page on this machine that shows nodes and their slots, the volumes'
// places, the waiters and the reasons of their waits.
//
// Reads: all objects of the ledger, as they change; Leases and events of the selected objects; the API
// server's version, to see that it answers. Decides: nothing: facts and explain compute the content.
// Writes: only the file of --out.
package web

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

const examples = `  # Open the page in the browser
  kubectl moorage web

  # Without a browser: print the address, and reach it through a tunnel
  kubectl moorage web --open=false --port 8080
  ssh -L 8080:127.0.0.1:8080 jumphost

  # Look at a bundle that somebody has sent
  kubectl moorage web --bundle moorage-bundle.tar.gz

  # Write the page into one file, and attach it to the incident
  kubectl moorage web --out incident.html`

type options struct {
	base *command.Base
	port uint16
	open bool
	out  string
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
	cmd.Flags().StringVar(&o.out, "out", "", "Write the page as it is now into this file, and end; - for the output stream")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	c, err := o.base.Connect()
	if err != nil {
		return err
	}
	if o.out != "" {
		return o.write(ctx, c)
	}
	return o.serve(ctx, c)
}

func (o *options) source(c *cluster.Cluster) string {
	if file := o.base.Flags.Bundle; file != "" {
		return filepath.Base(file)
	}
	return c.Config.Host
}

func (o *options) serve(ctx context.Context, c *cluster.Cluster) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h, ended := newHub(), make(chan error, 2)
	_, changed := h.get()
	go func() { ended <- follow(ctx, c, o.base.Plain(), h) }()
	select { // an error of the first read is the command's
	case err := <-ended:
		return err
	case <-changed:
	}
	if o.base.Flags.Bundle == "" {
		go probe(ctx, c, h)
	}
	s := &server{hub: h, source: o.source(c), frozen: o.base.Flags.Bundle != "", clock: c.Clock}
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

// idle is the pause between views, as a multiple of the time that a view took, in addition to the delay of
// following the cluster.
const idle = 1

func follow(ctx context.Context, c *cluster.Cluster, s screen.Style, h *hub) error {
	return c.FollowStarting(ctx, func(w *facts.World) error {
		began := time.Now()
		h.set(w, viewOf(w, s))
		select {
		case <-ctx.Done():
		case <-time.After(idle * time.Since(began)):
		}
		return nil
	})
}

// probe says whether the API server still answers: a silent watch looks like a cluster without changes.
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

// mostStored bounds the objects with details in a one-file page.
const mostStored = 300

func (o *options) write(ctx context.Context, c *cluster.Cluster) error {
	w, err := c.Read(ctx)
	if err != nil {
		return err
	}
	c.ReadStarting(ctx, w)
	s := Static{Source: o.source(c), Taken: w.Now, View: viewOf(w, o.base.Plain()), Details: map[string]Detail{}}
	d := &details{cluster: c, world: w, style: o.base.Plain()}
	all := s.View.Refs()
	for _, ref := range all[:min(len(all), mostStored)] {
		detail, err := d.of(ctx, ref)
		missing := (*command.NotFoundError)(nil)
		switch {
		case errors.As(err, &missing):
		case err != nil:
			return fmt.Errorf("%s: %w", ref, err)
		default:
			s.Details[ref] = detail
		}
	}
	if err := o.store(s); err != nil {
		return err
	}
	if err := screen.Unseen(o.base.Streams.ErrOut, o.base.Style(), w.Unseen); err != nil {
		return err
	}
	return o.tell("shows the cluster at %s, %s. Open it in a browser.", w.Now.UTC().Format(time.RFC3339), extent(len(s.Details), len(all), w.Unseen))
}

func extent(stored, all int, unseen []facts.Unseen) string {
	var hidden []string
	for _, u := range unseen {
		if !u.Missing {
			hidden = append(hidden, u.Resource)
		}
	}
	switch {
	case all == 0 && len(hidden) > 0:
		return "of which nothing could be read: you may not list " + strings.Join(hidden, ", ")
	case all == 0:
		return "in which there is no node and no volume yet"
	case stored == all:
		return fmt.Sprintf("with what is known of each of its %d objects", all)
	}
	return fmt.Sprintf("with what is known of %d of its %d objects", stored, all)
}

const stream = "-"

// tell describes the written page; nothing where it went to the output stream.
func (o *options) tell(format string, args ...any) error {
	if o.out == stream {
		return nil
	}
	return o.base.Say(o.base.Streams.Out, "%s "+format, append([]any{o.out}, args...)...)
}

func (o *options) store(s Static) error {
	if o.out == stream {
		return WriteStatic(o.base.Streams.Out, s)
	}
	return command.WriteWhole(o.out, func(w io.Writer) error { return WriteStatic(w, s) })
}

// openBrowser opens a page with the system's opener, and does not wait for it.
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

// The files of the page. Each module comes after the modules that it imports.
const (
	indexPage = "index.html"
	style     = "style.css"
	mainName  = "main.js"
)

func modules() []string {
	return []string{"dom.js", "model.js", "map.js", "panel.js", "lists.js", "totals.js", mainName}
}

// asset is a file of the page; nil where there is no such file.
func asset(name string) []byte {
	raw, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return nil
	}
	return raw
}

// Static is the content of a page in one file.
type Static struct {
	Source string     `json:"source"`
	Taken  time.Time  `json:"taken"`
	View   *view.View `json:"view,omitempty"`
	// Details are by reference; some objects have none.
	Details map[string]Detail `json:"details,omitempty"`
}

const (
	styleLine  = `<link rel="stylesheet" href="style.css">`
	scriptLine = `<script type="module" src="main.js"></script>`
	headLine   = `<meta charset="utf-8">`
)

// WriteStatic writes the page as one file that loads nothing. The content is data in it: encoding/json
// escapes <, > and &, and no name can end its element.
func WriteStatic(w io.Writer, s Static) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	page, err := single(string(asset(indexPage)), bundled(modules()...), data)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}

// single makes one file of a page: its script, its style and its data replace the lines that name them. It
// may run its own script.
func single(page, script string, data []byte) (string, error) {
	css := string(asset(style))
	for _, text := range []string{script, css} {
		if lower := strings.ToLower(text); strings.Contains(lower, "</script") || strings.Contains(lower, "</style") || strings.Contains(lower, "<!--") {
			return "", errors.New("write the page: its own code would end the element that it is in")
		}
	}
	for _, part := range [][2]string{
		{headLine, headLine + `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ` + hashOf(script) + `; style-src ` + hashOf(css) +
			`; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">`},
		{styleLine, "<style>" + css + "</style>"},
		{scriptLine, `<script type="application/json" id="data">` + string(data) + `</script><script type="module">` + script + "</script>"},
	} {
		var err error
		if page, err = replaceOnce(page, part[0], part[1]); err != nil {
			return "", err
		}
	}
	return page, nil
}

func replaceOnce(page, line, with string) (string, error) {
	before, after, found := strings.Cut(page, line)
	if !found {
		return "", fmt.Errorf("write the page: it has no line %q", line)
	}
	return before + with + after, nil
}

// bundled joins modules into one, without their imports of each other.
func bundled(names ...string) string {
	var out strings.Builder
	for _, name := range names {
		for line := range strings.Lines(string(asset(name))) {
			if !strings.HasPrefix(line, "import ") {
				out.WriteString(strings.TrimPrefix(line, "export "))
			}
		}
	}
	return out.String()
}

// hashOf is the source that allows a text to run in a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
