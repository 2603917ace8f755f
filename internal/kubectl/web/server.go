// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"golang.org/x/sync/semaphore"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// Limits of the server. A page that does not read for writePatience is gone.
const (
	mostStreams   = 16
	mostDetails   = 2
	heartbeat     = 5 * time.Second
	writePatience = 30 * time.Second
	detailTime    = time.Minute
	headerTime    = 10 * time.Second
	idleTime      = time.Minute
)

// server serves the page. Its handlers are safe for parallel use.
type server struct {
	hub *hub
	// source names the cluster or the file, frozen says that its time does not pass.
	source string
	frozen bool
	clock  func() time.Time
	detail func(ctx context.Context, ref string) (Detail, error)

	streams, details *semaphore.Weighted
}

// newServer is a server of a page until ctx ends.
func newServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, BaseContext: func(net.Listener) context.Context { return ctx }}
}

func (s *server) handler(token, host string) http.Handler {
	return &guard{token: token, host: host, next: s.routes()}
}

// routes are the answers of the page, for whoever may ask.
func (s *server) routes() http.Handler {
	s.streams, s.details = semaphore.NewWeighted(mostStreams), semaphore.NewWeighted(mostDetails)
	router := mux.NewRouter().SkipClean(true)
	router.HandleFunc("/", s.page)
	router.HandleFunc("/stream", s.stream)
	router.HandleFunc("/detail", s.serveDetail)
	router.HandleFunc("/{asset:[a-z]+\\.(?:js|css)}", s.asset)
	return router
}

func (s *server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(asset(indexPage)) // who asked has gone
}

func (s *server) asset(w http.ResponseWriter, r *http.Request) {
	name := mux.Vars(r)["asset"]
	content := asset(name)
	if content == nil {
		http.NotFound(w, r)
		return
	}
	kind := "text/javascript; charset=utf-8"
	if strings.HasSuffix(name, ".css") {
		kind = "text/css; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) // who asked has gone
}

// serveDetail answers what is known of one object.
func (s *server) serveDetail(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (any, error) {
		return s.detail(ctx, r.URL.Query().Get("ref"))
	})
}

// answer answers with a value that takes some time to make, to a few at once.
func (s *server) answer(w http.ResponseWriter, r *http.Request, value func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), detailTime)
	defer cancel()
	if err := s.details.Acquire(ctx, 1); err != nil {
		http.Error(w, "others are asked first", http.StatusServiceUnavailable)
		return
	}
	defer s.details.Release(1)
	d, err := value(ctx)
	missing := (*command.NotFoundError)(nil)
	switch {
	case errors.As(err, &missing):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if raw, err := facts.JSON(d); err == nil {
		_, _ = w.Write(raw) // who asked has gone
	}
}

// stream sends the view, then what changes of it, as server-sent events. Each browser is
// led from what it was sent last to what is so now, whatever was between.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	if !s.streams.TryAcquire(1) {
		http.Error(w, fmt.Sprintf("%d pages are open already", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.streams.Release(1)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	out := newEvents(w, r)
	_ = s.each(r.Context(), ticker.C, func(m message) error { return out.send(m) }) // a browser that does not read is gone
}

// each sends the view, then what changes of it, until ctx ends; at every beat, too, where nothing changes.
func (s *server) each(ctx context.Context, beat <-chan time.Time, send func(message) error) error {
	var last state
	for {
		ended := ctx.Err() != nil
		now, changed := s.hub.get()
		if err := send(s.message(last, now)); err != nil || ended {
			return err
		}
		last = now
		select {
		case <-ctx.Done():
		case <-changed:
		case <-beat:
		}
	}
}

// message leads from what a browser has to what is so now.
func (s *server) message(last, now state) message {
	m := message{Seq: now.seq, Now: s.clock(), Frozen: s.frozen, Source: s.source, Problem: now.problem}
	switch {
	case last.view == nil:
		m.View = now.view
	case last.seq != now.seq:
		d := view.Diff(last.view, now.view)
		m.From, m.Delta = last.seq, &d
	}
	return m
}

// events writes server-sent events, compressed where the browser can read it.
type events struct {
	out     io.Writer
	zip     *gzip.Writer
	control *http.ResponseController
}

func newEvents(w http.ResponseWriter, r *http.Request) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	e := &events{out: w, control: http.NewResponseController(w)}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		e.zip = gzip.NewWriter(w)
		e.out = e.zip
	}
	return e
}

// send writes one event, and gives up on a browser that does not read.
func (e *events) send(m any) error {
	raw, err := facts.JSON(m)
	if err != nil {
		return err
	}
	if err := e.control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprintf(e.out, "data: %s\n\n", raw); err != nil {
		return err
	}
	if e.zip != nil {
		if err := e.zip.Flush(); err != nil {
			return err
		}
	}
	return e.control.Flush()
}
