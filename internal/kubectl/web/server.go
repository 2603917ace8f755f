// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// A page that does not read for writePatience is gone.
const (
	heartbeat     = 5 * time.Second
	writePatience = 30 * time.Second
	detailTime    = time.Minute
	headerTime    = 10 * time.Second
	idleTime      = time.Minute
)

// server's handlers are safe for parallel use.
type server struct {
	hub *hub
	// source names the cluster or file; frozen: its time stands still.
	source string
	frozen bool
	clock  func() time.Time
	detail func(ctx context.Context, ref string) (Detail, error)
}

func newServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, BaseContext: func(net.Listener) context.Context { return ctx }}
}

func (s *server) handler(token string) http.Handler {
	return &guard{token: token, next: http.HandlerFunc(s.route)}
}

func (s *server) route(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		s.stream(w, r)
	case "/detail":
		s.serveDetail(w, r)
	default:
		name := cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "index.html")
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		_, _ = w.Write(content) // the client has gone
	}
}

func (s *server) serveDetail(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), detailTime)
	defer cancel()
	d, err := s.detail(ctx, r.URL.Query().Get("ref"))
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
	_ = json.NewEncoder(w).Encode(d) // the client has gone
}

// stream sends the view and its changes as server-sent events. A slow browser misses intermediate views.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	control := http.NewResponseController(w)
	_ = s.each(r.Context(), ticker.C, func(m message) error { // a gone browser does not read
		raw, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", raw); err != nil {
			return err
		}
		return control.Flush()
	})
}

// each sends the view and its changes until ctx ends; at a beat, a message without a view.
func (s *server) each(ctx context.Context, beat <-chan time.Time, send func(message) error) error {
	var last state
	for {
		ended := ctx.Err() != nil
		now, changed := s.hub.get()
		m := message{Now: s.clock(), Frozen: s.frozen, Source: s.source, Problem: now.problem}
		if now.view != last.view {
			m.View = now.view
		}
		if err := send(m); err != nil || ended {
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

type state struct {
	view  *view.View
	world *facts.World
	// problem says why the page may be outdated, or is empty.
	problem string
}

// hub has the latest state. A slow reader misses states and delays nobody. Safe for parallel use.
type hub struct {
	mu      sync.Mutex
	now     state
	changed chan struct{}
}

func newHub() *hub { return &hub{changed: make(chan struct{})} }

// get also returns a channel that closes at the next state.
func (h *hub) get() (state, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.changed
}

func (h *hub) set(w *facts.World, v *view.View) {
	h.change(func(s *state) { s.world, s.view = w, v })
}

func (h *hub) setProblem(problem string) {
	if now, _ := h.get(); now.problem != problem {
		h.change(func(s *state) { s.problem = problem })
	}
}

func (h *hub) change(do func(*state)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(&h.now)
	close(h.changed)
	h.changed = make(chan struct{})
}

type message struct {
	// View is nil if unchanged since the last message.
	View *view.View `json:"view,omitempty"`
	// Now is the cluster's time; Frozen: it stands still.
	Now     time.Time `json:"now"`
	Frozen  bool      `json:"frozen,omitempty"`
	Source  string    `json:"source,omitempty"`
	Problem string    `json:"problem,omitempty"`
}

// newToken is 256 random bits, safe in URLs.
func newToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// policy allows only this server's content. No text becomes markup or code (trusted types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors 'none'"

// guard refuses other websites in the browser: their requests to localhost lack the token, or name another
// host (DNS rebinding) or origin.
type guard struct {
	token string
	next  http.Handler
}

// ServeHTTP answers a request, or refuses it.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// Other users of this machine have no token: close their connections.
	h.Set("Connection", "close")
	switch {
	case refused(w, r):
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page only reads", http.StatusMethodNotAllowed)
		return
	}
	token, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 || !found {
		http.Error(w, "not found: open the address that kubectl moorage web has printed, with its token", http.StatusNotFound)
		return
	}
	h.Del("Connection")
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
	g.next.ServeHTTP(w, inner)
}

// LocalOnly passes requests of this machine's programs, not of websites in its browser.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refused(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

func refused(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !rightHost(r.Host):
		http.Error(w, "this is served for localhost only", http.StatusMisdirectedRequest)
	case !sameOrigin(r):
		http.Error(w, "requests of other websites are refused", http.StatusForbidden)
	default:
		return false
	}
	return true
}

// rightHost ignores the port (SSH tunnel). A website that resolves to 127.0.0.1 still sends its own name.
func rightHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	address, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && address.IsLoopback()
}

// sameOrigin also allows a typed address or a followed link.
func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host || u.Scheme != "http" {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
