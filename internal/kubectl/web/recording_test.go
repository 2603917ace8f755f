// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// read reads a recording.
func read(ctx context.Context, raw []byte, source string) (*recording, error) {
	return readRecording(ctx, bytes.NewReader(raw), int64(len(raw)), source)
}

// recorded is a recording of a cluster to which nodes come.
func recorded(t *testing.T, names ...string) []byte {
	t.Helper()
	h := newHub()
	set(h, "n0")
	s := &server{hub: h, source: "test", clock: noon}
	ctx, end := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.record(ctx, out) }()
	var file bytes.Buffer
	zip, err := gzip.NewReader(io.TeeReader(in, &file))
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(zip) // each line is there before the next change
	next := func() {
		var m message
		if err := lines.Decode(&m); err != nil {
			t.Fatal(err)
		}
	}
	next() // the heading
	next() // the first view
	all := []string{"n0"}
	for _, name := range names {
		all = append(all, name)
		set(h, all...)
		next()
	}
	end()
	go func() { _, _ = io.Copy(&file, in) }()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A recording shows each time as it was; also one that was cut off.
func TestRecording(t *testing.T) {
	raw := recorded(t, "n1", "n2")
	r, err := read(t.Context(), raw, "file")
	if err != nil || len(r.frames) != 3 {
		t.Fatalf("%+v: %v", r, err)
	}
	seen := r.messages[0].View
	for i, m := range r.messages {
		if i > 0 {
			seen = seen.Apply(*m.Delta)
		}
		if n := len(seen.Nodes); n != i+1 || !m.Frozen || !m.Replay || m.Source != "file" {
			t.Errorf("at %d it shows %d nodes: %+v", i, n, m)
		}
	}
	web := httptest.NewServer((&server{hub: newHub(), source: "file", recorded: r}).handler(token, "127.0.0.1"))
	t.Cleanup(web.Close)
	if m := listen(t, web).next(); !m.Replay || !m.Frozen || len(m.View.Nodes) != 1 {
		t.Errorf("the page begins with %+v", m)
	}
	if _, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+"/messages?from=1", nil); strings.Count(body, `"delta"`) != 2 || strings.Contains(body, "n0") {
		t.Errorf("what leads from the first time on: %s", body)
	}
	for _, at := range []string{"3", "-1", "x", ""} {
		if code, _, _ := ask(t, http.MethodGet, web.URL+"/"+token+"/messages?from="+at, nil); code != http.StatusNotFound {
			t.Errorf("time %q: %d", at, code)
		}
	}
	if code, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+"/frames", nil); code != http.StatusOK || strings.Count(body, `"at"`) != 3 {
		t.Errorf("the times: %d, %s", code, body)
	}
}

// A page of a recording gets its first time once, and is told then only that the command
// still answers.
func TestRecordingIsSentOnce(t *testing.T) {
	r, err := read(t.Context(), recorded(t, "n1"), "file")
	if err != nil {
		t.Fatal(err)
	}
	beat := make(chan time.Time)
	ctx, end := context.WithCancel(t.Context())
	sent := make(chan message, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- (&server{hub: newHub(), recorded: r}).each(ctx, beat, func(m message) error {
			sent <- m
			return nil
		})
	}()
	if m := <-sent; m.View == nil || !m.Replay {
		t.Errorf("first: %+v", m)
	}
	for range 2 {
		beat <- noon()
		if m := <-sent; m.View != nil || m.Delta != nil || !m.Replay {
			t.Errorf("then: %+v", m)
		}
	}
	end()
	<-sent
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A file that is no recording is refused with what is wrong; one that was cut off has what
// was written before.
func TestBrokenRecordings(t *testing.T) {
	packed := func(text string) []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		_, _ = io.WriteString(zip, text)
		_ = zip.Close()
		return out.Bytes()
	}
	for text, want := range map[string]string{
		"":                           "EOF",
		`{"moorageRecording":7}`:     "format is 7",
		`{"moorageRecording":1}`:     "no view",
		`{"moorageRecording":1}{"x"`: "no view",
		`{"moorageRecording":1}{"delta":{"taken":"2026-03-01T12:00:00Z"},"now":"2026-03-01T12:00:00Z"}`:                                                                                                "does not begin",
		`{"moorageRecording":1}{"seq":1,"view":{"taken":"2026-03-01T12:00:00Z"},"now":"2026-03-01T12:00:00Z"}{"seq":3,"from":2,"delta":{"taken":"2026-03-01T12:00:00Z"},"now":"2026-03-01T12:00:00Z"}`: "view 2 is missing",
		`{"moorageRecording":1}{"seq":1,"now":"9999-12-31T23:59:59-12:00","view":{"taken":"2026-03-01T12:00:00Z"}}`:                                                                                    "in the year 10000",
		`{"moorageRecording":1}{"seq":1,"view":{"taken":"2026-03-01T12:00:00Z"}}`:                                                                                                                      "in the year 1",
		`{"moorageRecording":1}{"seq":1,"now":"2026-03-01T12:00:00Z","view":{"nodes":[` + strings.Repeat("{},", 1<<20) + `{}]}}`:                                                                       "too much for its size",
		`{"other":true}`: "format is 0",
	} {
		if _, err := read(t.Context(), packed(text), "file"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := read(t.Context(), []byte("plain text"), "file"); err == nil {
		t.Error("a file that is not compressed is read")
	}
	raw := recorded(t, "n1", "n2")
	r, err := read(t.Context(), raw[:len(raw)-20], "file")
	if err != nil || len(r.frames) < 2 {
		t.Errorf("cut off: %+v, %v", r, err)
	}
}

// Each time says how many wait then.
func TestRecordingCountsWaits(t *testing.T) {
	r := &recording{}
	wait := func(refs ...string) (list []view.Wait) {
		for _, ref := range refs {
			list = append(list, view.Wait{Ref: ref})
		}
		return list
	}
	for i, step := range []struct {
		message
		waits int
	}{
		{message{View: &view.View{Waits: wait("pod/a", "pod/b")}}, 2},
		{message{Delta: &view.Delta{Waits: wait("pod/a")}}, 2}, // a waits for something else
		{message{Delta: &view.Delta{Waits: wait("pod/c"), Gone: view.Gone{Waits: []string{"pod/a", "pod/b"}}}}, 1},
		{message{View: &view.View{}}, 0},
	} {
		step.Seq, step.From, step.Now = uint64(i), uint64(max(0, i-1)), noon()
		if err := r.add(step.message, "file"); err != nil || r.frames[i].Waits != step.waits {
			t.Errorf("step %d: %+v, %v, want %d", i, r.frames, err, step.waits)
		}
	}
	r.frames = make([]frame, mostFrames)
	if err := r.add(message{View: &view.View{}, Now: noon()}, "file"); err == nil {
		t.Error("a recording may have any number of times")
	}
}

// Ctrl-C ends the reading of a long recording.
func TestRecordingEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := read(ctx, recorded(t, "n1"), "file"); !errors.Is(err, context.Canceled) {
		t.Errorf("the reading ended with %v", err)
	}
}

// A page replaces a file that others could read by one that only its owner can.
func TestOutIsForItsOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(name, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	now := view.Of(world("n1"))
	if err := (&options{out: name}).store(Static{messages: []message{{Now: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}}); err == nil {
		t.Error("a time that JSON has no text for was written")
	}
	if raw, err := os.ReadFile(name); err != nil || string(raw) != "old" {
		t.Errorf("a page that could not be written left %q, %v", raw, err)
	}
	if err := (&options{out: name}).store(Static{View: now, Taken: noon()}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); err != nil || len(files) != 1 {
		t.Errorf("there are %v, %v", files, err)
	}
}

// A recording in one file has all its times, and loads nothing.
func TestRecordingInOneFile(t *testing.T) {
	r, err := read(t.Context(), recorded(t, "n1", "n2"), "incident.rec")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := WriteStatic(&page, r.static()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(page.String(), `id="data">`)
	data, _, _ := strings.Cut(rest, "</script>")
	var read struct {
		Source   string
		Messages []message
		Frames   []frame
	}
	if err := json.Unmarshal([]byte(data), &read); err != nil || read.Source != "incident.rec" || len(read.Messages) != 3 || len(read.Frames) != 3 {
		t.Errorf("%v: %+v", err, read)
	}
}
