// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// newToken is a secret that nobody guesses: 256 random bits, as a URL may have them.
func newToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// policy is what the page may do: run and load what this server sends, and nothing else.
// No text becomes markup or code (trusted types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors 'none'"

// guard lets through only requests of the page itself. Every website that is open in the
// same browser can send requests to localhost: they lack the token, come under the name of
// another host (DNS rebinding), or with another origin.
type guard struct {
	token string
	// host is the address that was asked for by name; loopback is always right.
	host string
	next http.Handler
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
	// Who is refused keeps no connection: others of this machine have no token, either.
	h.Set("Connection", "close")
	switch {
	case refused(w, r, g.host):
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

// LocalOnly lets through only requests that programs of this machine send, and not those of
// websites that are open in a browser of it.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refused(w, r, "") {
			next.ServeHTTP(w, r)
		}
	})
}

// refused refuses a request that comes under the name of another host, or from a website.
func refused(w http.ResponseWriter, r *http.Request, host string) bool {
	switch {
	case !rightHost(r.Host, host):
		http.Error(w, "this is served for localhost only", http.StatusMisdirectedRequest)
	case !sameOrigin(r):
		http.Error(w, "requests of other websites are refused", http.StatusForbidden)
	default:
		return false
	}
	return true
}

// rightHost says whether a request names this machine, or the address that was asked for.
// The port may be another one: that of an SSH tunnel. A website that has its name resolve to 127.0.0.1 still sends its name.
func rightHost(host, asked string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if strings.EqualFold(name, "localhost") || asked != "" && strings.EqualFold(name, asked) {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	all, err := netip.ParseAddr(asked)
	return address.IsLoopback() || err == nil && all.IsUnspecified()
}

// sameOrigin says whether a request comes from the page itself, or from who typed its
// address or followed a link to it.
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
