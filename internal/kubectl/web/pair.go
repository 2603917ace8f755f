// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// Pair is a page with clusters side by side, each as kubectl moorage web shows it, and what
// is told of them meanwhile. It records all that it shows. Safe for parallel use, but for
// Close.
type Pair struct {
	title string
	sides []*side
	ended []chan error
	end   context.CancelFunc

	mu      sync.Mutex // for what follows
	lines   []line
	changed chan struct{}
}

// side is one of the clusters. At times it has none.
type side struct {
	name   string
	server *server
	kept   recording // what it showed

	mu  sync.Mutex // for cluster
	now *cluster.Cluster
}

// line is what was told.
type line struct {
	At time.Time `json:"at"`
	// Side is the place of the side that it was told of, Chapter says that it is of all and
	// begins something new.
	Side    int    `json:"side"`
	Chapter bool   `json:"chapter,omitempty"`
	Text    string `json:"text"`
	// About is more of a chapter.
	About string `json:"about,omitempty"`
}

// NewPair makes a page with a side for each name. It records until Close.
func NewPair(title string, names ...string) *Pair {
	ctx, end := context.WithCancel(context.Background())
	p := &Pair{title: title, end: end, changed: make(chan struct{})}
	for _, name := range names {
		s := &side{name: name}
		s.server = &server{hub: newHub(), source: name, clock: time.Now, detail: s.detail}
		w := facts.NewWorld(facts.Objects{}, time.Now())
		s.server.hub.set(w, view.Of(w))
		ended := make(chan error, 1)
		go func() { ended <- s.server.each(ctx, nil, s.kept.add) }()
		p.sides, p.ended = append(p.sides, s), append(p.ended, ended)
	}
	return p
}

// Close ends the recording.
func (p *Pair) Close() error {
	p.end()
	var errs []error
	for _, ended := range p.ended {
		errs = append(errs, <-ended)
	}
	p.ended = nil
	return errors.Join(errs...)
}

// Follow shows a cluster at a side until stop is called.
func (p *Pair) Follow(at int, config *rest.Config, userAgent string) (stop func(), err error) {
	s := p.sides[at]
	c, err := cluster.Connect(config, "default", userAgent)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", s.name, err)
	}
	s.set(c)
	s.server.hub.setProblem("")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := follow(ctx, c, screen.Style{}, s.server.hub); err != nil && ctx.Err() == nil {
			s.server.hub.setProblem(fmt.Sprintf("%s can't be read: %v", s.name, err))
		}
	}()
	return func() {
		cancel()
		<-ended
		s.set(nil)
		s.server.hub.setProblem("The cluster has been stopped: this is how it was last.")
	}, nil
}

func (s *side) set(c *cluster.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = c
}

// detail is what is known of an object of the cluster that is shown.
func (s *side) detail(ctx context.Context, ref string) (Detail, error) {
	s.mu.Lock()
	c := s.now
	s.mu.Unlock()
	if c == nil {
		return Detail{}, errors.New("the cluster has been stopped")
	}
	now, _ := s.server.hub.get()
	return (&details{cluster: c, world: now.world}).of(ctx, ref)
}

// Chapter begins something new at all sides.
func (p *Pair) Chapter(title, about string) {
	p.add(line{Chapter: true, Text: title, About: about})
}

// Tell tells of one side.
func (p *Pair) Tell(at int, text string) { p.add(line{Side: at, Text: text}) }

func (p *Pair) add(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.At = time.Now()
	p.lines = append(p.lines, l)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Pair) told(from int) ([]line, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[from:len(p.lines):len(p.lines)], p.changed
}

// Serve serves the page on this machine until ctx ends. It calls started with its address.
func (p *Pair) Serve(ctx context.Context, started func(url string)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	token := newToken()
	web := newServer(ctx, p.handler(token))
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	started("http://" + listener.Addr().String() + "/" + token + "/")
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (p *Pair) handler(token string) http.Handler {
	router := mux.NewRouter().SkipClean(true)
	router.HandleFunc("/", p.page)
	router.HandleFunc("/lines", p.stream)
	for i, s := range p.sides {
		prefix := sidePath(i)
		router.PathPrefix("/" + prefix).Handler(http.StripPrefix("/"+strings.TrimSuffix(prefix, "/"), s.server.routes()))
	}
	router.HandleFunc("/{asset:[a-z]+\\.(?:js|css)}", (&server{}).asset)
	return &guard{token: token, host: "127.0.0.1", framed: true, next: router}
}

func sidePath(i int) string { return fmt.Sprintf("side%d/", i) }

func (p *Pair) page(w http.ResponseWriter, _ *http.Request) {
	page, err := p.panes(func(i int) (string, error) { return `src="` + sidePath(i) + `"`, nil })
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page) // who asked has gone
}

// stream sends what is told, as server-sent events.
func (p *Pair) stream(w http.ResponseWriter, r *http.Request) {
	out := newEvents(w, r)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for sent := 0; ; {
		lines, changed := p.told(sent)
		if err := out.send(lines); err != nil {
			return
		}
		sent += len(lines)
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

const (
	panesLine      = "<!-- the sides -->"
	pairScriptLine = `<script type="module" src="pair.js"></script>`
)

// panes is the page with a frame for each side, whose content is an attribute.
func (p *Pair) panes(content func(i int) (string, error)) (string, error) {
	var sides strings.Builder
	for i, s := range p.sides {
		attribute, err := content(i)
		if err != nil {
			return "", err
		}
		name := html.EscapeString(s.name)
		fmt.Fprintf(&sides, `<section class="side" aria-labelledby="side-%d"><h2 id="side-%d">%s</h2><div class="told" tabindex="0" role="log" aria-label="What happens: %s"></div><iframe title="%s" %s></iframe></section>`,
			i, i, name, name, name, attribute)
	}
	page := strings.ReplaceAll(string(asset(pairPage)), "<!-- title -->", html.EscapeString(p.title))
	return replaceOnce(page, panesLine, sides.String())
}

// Write writes all that was recorded as one page, with a slider for the time. It comes after
// Close.
func (p *Pair) Write(w io.Writer) error {
	lines, _ := p.told(0)
	data, err := json.Marshal(struct {
		Lines []line `json:"lines"`
	}{lines})
	if err != nil {
		return err
	}
	page, err := p.panes(func(i int) (string, error) {
		var inner strings.Builder
		if err := WriteStatic(&inner, p.sides[i].kept.static()); err != nil {
			return "", err
		}
		return `srcdoc="` + html.EscapeString(inner.String()) + `"`, nil
	})
	if err != nil {
		return err
	}
	// What is in a frame may run what the page around it may run, too.
	page, err = single(page, pairScriptLine, bundled("dom.js", pairName), data, bundled(modules()...))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}
