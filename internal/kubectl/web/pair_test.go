// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// toldPair is a pair of which something was told, and whose clusters have a node each.
func toldPair(t *testing.T) *Pair {
	t.Helper()
	p := NewPair("A demo "+hostile, "Moorage", "Upstream")
	t.Cleanup(p.end)
	set(p.sides[0].server.hub, "m1")
	set(p.sides[1].server.hub, "u1"+hostile)
	p.Chapter("A rollout", "What is seen "+hostile)
	p.Tell(0, "all runs")
	p.Tell(1, "it hangs "+hostile)
	return p
}

// The page has a frame for each side, and each is a page as kubectl moorage web serves it;
// only the page itself may have them in frames.
func TestPairIsServed(t *testing.T) {
	p := toldPair(t)
	web := httptest.NewServer(p.handler(token))
	t.Cleanup(web.Close)
	code, body, headers := ask(t, http.MethodGet, web.URL+"/"+token+"/", nil)
	if code != http.StatusOK || strings.Count(body, "<iframe") != 2 || strings.Contains(body, "<img") || !strings.Contains(body, `src="side1/"`) {
		t.Errorf("%d: %s", code, body)
	}
	if policy := headers.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'self'") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	for path, want := range map[string]int{"/side0/": 200, "/side1/main.js": 200, "/pair.js": 200, "/side2/": 404, "/side0/detail?ref=node/m1": 502} {
		if code, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+path, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _, _ := ask(t, http.MethodGet, web.URL+"/side0/", nil); code != http.StatusNotFound {
		t.Errorf("without the token: %d", code)
	}
}

// What is told comes at once to who looks already, and whole to who comes later.
func TestPairTells(t *testing.T) {
	p := toldPair(t)
	web := httptest.NewServer(p.handler(token))
	t.Cleanup(web.Close)
	read := func() func() []line {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/"+token+"/lines", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "identity")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		events := bufio.NewScanner(answer.Body)
		return func() []line {
			for events.Scan() {
				var lines []line
				if data, ok := strings.CutPrefix(events.Text(), "data: "); ok && json.Unmarshal([]byte(data), &lines) == nil && len(lines) > 0 {
					return lines
				}
			}
			t.Fatal(events.Err())
			return nil
		}
	}
	first := read()
	if lines := first(); len(lines) != 3 || !lines[0].Chapter || lines[2].Side != 1 {
		t.Errorf("%+v", lines)
	}
	p.Tell(0, "more")
	if lines := first(); len(lines) != 1 || lines[0].Text != "more" {
		t.Errorf("%+v", lines)
	}
	if lines := read()(); len(lines) != 4 {
		t.Errorf("who comes later: %+v", lines)
	}
}

// In one file there is a recording of each side in a frame, which may run its own code only.
func TestPairInOneFile(t *testing.T) {
	p := toldPair(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := p.Write(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if strings.Count(text, "<iframe") != 2 || strings.Contains(text, "<img") || strings.Count(text, "<script") != 2 || strings.Contains(text, ` src="`) {
		t.Errorf("the page loads something, or a name is markup: %d scripts", strings.Count(text, "<script"))
	}
	for i, node := range []string{`"name":"m1"`, `"name":"u1`} {
		_, rest, _ := strings.Cut(strings.SplitAfter(text, "<iframe")[i+1], `srcdoc="`)
		attribute, _, _ := strings.Cut(rest, `"`)
		inner := html.UnescapeString(attribute)
		_, rest, _ = strings.Cut(inner, `<script type="module">`)
		code, _, found := strings.Cut(rest, "</script>")
		outer, _, _ := strings.Cut(text, "<iframe")
		if !found || !strings.Contains(outer, hashOf(code)) || !strings.Contains(inner, node) {
			t.Errorf("side %d: its code may not run, or it lacks %s", i, node)
		}
	}
	_, rest, _ := strings.Cut(text[strings.LastIndex(text, "</iframe>"):], `id="data">`)
	data, _, _ := strings.Cut(rest, "</script>")
	var read struct{ Lines []line }
	if err := json.Unmarshal([]byte(data), &read); err != nil || len(read.Lines) != 3 || time.Since(read.Lines[0].At) > time.Hour {
		t.Errorf("%v: %+v", err, read)
	}
}
