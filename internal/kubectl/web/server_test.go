// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

const token = "the-token"

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func world(names ...string) *facts.World {
	var o facts.Objects
	for _, name := range names {
		o.Nodes = append(o.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return facts.NewWorld(o, noon())
}

func set(h *hub, names ...string) {
	w := world(names...)
	h.set(w, view.Of(w))
}

func serving(t *testing.T) (*httptest.Server, *hub) {
	t.Helper()
	h := newHub()
	set(h, "n1")
	s := &server{hub: h, source: "test", clock: noon, detail: func(_ context.Context, ref string) (Detail, error) {
		if ref != "node/n1" {
			return Detail{}, &command.NotFoundError{Message: "there is no " + ref}
		}
		return Detail{Ref: ref, Answer: "is ready"}, nil
	}}
	web := httptest.NewServer(s.handler(token))
	t.Cleanup(web.Close)
	return web, h
}

func ask(t *testing.T, method, url string, headers map[string]string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	if host, ok := headers["Host"]; ok {
		r.Host = host
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw), answer.Header
}

// Clients without the token and other websites get no answer.
func TestOnlyThePageIsAnswered(t *testing.T) {
	web, _ := serving(t)
	own := strings.TrimPrefix(web.URL, "http://")
	for what, c := range map[string]struct {
		method, path string
		headers      map[string]string
		want         int
	}{
		"the page":                       {"GET", "/" + token + "/", nil, 200},
		"a script":                       {"GET", "/" + token + "/main.js", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		"its own fetch":                  {"GET", "/" + token + "/detail?ref=node/n1", map[string]string{"Origin": web.URL, "Sec-Fetch-Site": "same-origin"}, 200},
		"a link from elsewhere":          {"GET", "/" + token + "/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		"through a tunnel":               {"GET", "/" + token + "/", map[string]string{"Host": "localhost:9999"}, 200},
		"over IPv6":                      {"GET", "/" + token + "/", map[string]string{"Host": "[::1]:9999"}, 200},
		"no token":                       {"GET", "/", nil, 404},
		"another token":                  {"GET", "/the-tokem/", nil, 404},
		"a part of the token":            {"GET", "/the/", nil, 404},
		"the token and more":             {"GET", "/the-token2/", nil, 404},
		"no slash":                       {"GET", "/" + token, nil, 404},
		"the token as a parameter":       {"GET", "/detail?token=" + token, nil, 404},
		"a name that resolves to it":     {"GET", "/" + token + "/", map[string]string{"Host": "attacker.example:80"}, 421},
		"a name that begins as it":       {"GET", "/" + token + "/", map[string]string{"Host": "localhost.attacker.example"}, 421},
		"a name that begins as its IP":   {"GET", "/" + token + "/", map[string]string{"Host": "127.0.0.1.attacker.example"}, 421},
		"another address":                {"GET", "/" + token + "/", map[string]string{"Host": "192.0.2.1"}, 421},
		"another origin":                 {"GET", "/" + token + "/detail?ref=node/n1", map[string]string{"Origin": "https://attacker.example"}, 403},
		"another port's origin":          {"GET", "/" + token + "/detail?ref=node/n1", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"its origin over https":          {"GET", "/" + token + "/detail?ref=node/n1", map[string]string{"Origin": "https://" + own}, 403},
		"an origin without a name":       {"GET", "/" + token + "/detail?ref=node/n1", map[string]string{"Origin": "null"}, 403},
		"another site's image":           {"GET", "/" + token + "/main.js", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"another site's frame":           {"GET", "/" + token + "/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		"another port of this machine's": {"GET", "/" + token + "/main.js", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403},
		"a write":                        {"POST", "/" + token + "/detail?ref=node/n1", nil, 405},
		"a question before a write":      {"OPTIONS", "/" + token + "/detail", nil, 405},
		"a file that is none":            {"GET", "/" + token + "/other.js", nil, 404},
		"a file outside":                 {"GET", "/" + token + "/..%2fpage.go", nil, 404},
		"an object that is none":         {"GET", "/" + token + "/detail?ref=node/n2", nil, 404},
	} {
		got, body, headers := ask(t, c.method, web.URL+c.path, c.headers)
		if got != c.want {
			t.Errorf("%s: %d, want %d: %s", what, got, c.want, body)
		}
		for name := range headers {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s lets other websites in", what, name)
			}
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if !strings.Contains(headers.Get(name), want) {
				t.Errorf("%s: %s is %q", what, name, headers.Get(name))
			}
		}
		if c.want != 200 && strings.Contains(body, token) {
			t.Errorf("%s: the answer has the token: %s", what, body)
		}
	}
}

// A bundle's server answers programs, but no website.
func TestLocalOnly(t *testing.T) {
	web := httptest.NewServer(LocalOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
	defer web.Close()
	for what, c := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"kubectl":                    {nil, 204},
		"a name that resolves to it": {map[string]string{"Host": "attacker.example"}, 421},
		"another origin":             {map[string]string{"Origin": "https://attacker.example"}, 403},
		"an image of a website":      {map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
	} {
		if code, _, _ := ask(t, "GET", web.URL+"/api/v1/pods", c.headers); code != c.want {
			t.Errorf("%s: %d, want %d", what, code, c.want)
		}
	}
}

func TestWithoutTokenTheConnectionEnds(t *testing.T) {
	web, _ := serving(t)
	for path, kept := range map[string]bool{"/": false, "/other/": false, "/" + token + "/": true} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.Close == kept {
			t.Errorf("%s: the connection is closed: %t, %v", path, answer.Close, err)
		}
	}
	if s := newServer(t.Context(), nil); s.IdleTimeout == 0 || s.ReadHeaderTimeout == 0 {
		t.Error("an idle connection stays for ever")
	}
}

func TestTokensDiffer(t *testing.T) {
	a, b := newToken(), newToken()
	if a == b || len(a) < 40 || strings.ContainsAny(a, "/+=") {
		t.Errorf("tokens %q and %q", a, b)
	}
}

type reader struct {
	t     *testing.T
	lines *bufio.Scanner
}

func listen(t *testing.T, web *httptest.Server) reader {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/"+token+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return reader{t, bufio.NewScanner(answer.Body)}
}

func (r reader) next() message {
	r.t.Helper()
	for r.lines.Scan() {
		if raw, ok := strings.CutPrefix(r.lines.Text(), "data: "); ok {
			var m message
			if err := json.Unmarshal([]byte(raw), &m); err != nil {
				r.t.Fatal(err)
			}
			return m
		}
	}
	r.t.Fatalf("the stream has ended: %v", r.lines.Err())
	return message{}
}

func TestStream(t *testing.T) {
	web, h := serving(t)
	first := listen(t, web)
	m := first.next()
	if m.View == nil || len(m.View.Nodes) != 1 || m.Source != "test" || !m.Now.Equal(noon()) {
		t.Fatalf("the first message: %+v", m)
	}
	set(h, "n1", "n2")
	d := first.next()
	if d.View == nil || len(d.View.Nodes) != 2 || d.View.Nodes[1].Node != "n2" {
		t.Errorf("the second message: %+v", d)
	}
	if again := listen(t, web).next(); again.View == nil || len(again.View.Nodes) != 2 {
		t.Errorf("the first message of another: %+v", again)
	}
	h.setProblem("the API server does not answer")
	if p := first.next(); p.Problem == "" || p.View != nil {
		t.Errorf("the message of a problem: %+v", p)
	}
}

func TestSlowBrowserHoldsUpNobody(t *testing.T) {
	h := newHub()
	set(h, "n0")
	for _, name := range []string{"a", "b", "c"} {
		set(h, "n0", name) // with no reader this still returns
	}
	ended := errors.New("ended")
	err := (&server{hub: h, clock: noon}).each(t.Context(), nil, func(m message) error {
		if m.View == nil || len(m.View.Nodes) != 2 || m.View.Nodes[0].Node != "c" {
			t.Errorf("what it gets: %+v", m)
		}
		return ended
	})
	if !errors.Is(err, ended) {
		t.Errorf("it ended with %v", err)
	}
}
