// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

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

// A recording in one file has all its times, and loads nothing. What tells of nothing is none.
func TestRecordingInOneFile(t *testing.T) {
	h := newHub()
	s := &server{hub: h, source: "incident.tar.gz", clock: noon}
	var r recording
	var last state
	for i, names := range [][]string{{"n0"}, {"n0", "n1"}, nil, {"n1"}} {
		if names != nil {
			set(h, names...)
		} else {
			h.setProblem("silence")
		}
		now, _ := h.get()
		if err := r.add(s.message(last, now)); err != nil {
			t.Fatal(err)
		}
		if last = now; i == 0 && (len(r.messages) != 1 || !r.messages[0].Replay || !r.messages[0].Frozen) {
			t.Fatalf("it begins with %+v", r.messages)
		}
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
	if err := json.Unmarshal([]byte(data), &read); err != nil || read.Source != "incident.tar.gz" || len(read.Messages) != 3 || len(read.Frames) != 3 {
		t.Errorf("%v: %+v", err, read)
	}
}
