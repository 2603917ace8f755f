// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

var (
	nodes  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

func plain(apiVersion, kind, name string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
}

// replayed is a file in which n0 is there at first, then n1 comes, then a Lease, then n0 goes.
func replayed(t *testing.T) *replay {
	t.Helper()
	file := filepath.Join(t.TempDir(), "incident.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := archive.NewWriter(out, noon())
	write := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write(w.AddJSON(archive.ObjectsFile(nodes), map[string]any{"apiVersion": "v1", "kind": "NodeList", "items": []any{plain("v1", "Node", "n0")}}))
	write(w.AddJSON(archive.ObjectsFile(leases), map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []any{}}))
	write(w.AddJSON("about.json", archive.About{Format: archive.Format, Taken: noon()}))
	for i, c := range []archive.Change{
		{Resource: archive.ResourceName(nodes), Name: "n1", Object: []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`)},
		{Resource: archive.ResourceName(leases), Name: "l", Object: []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"}}`)},
		{Resource: archive.ResourceName(nodes), Name: "n0", Gone: true},
	} {
		write(w.AddChanges(noon().Add(time.Duration(i+1)*time.Second), []archive.Change{c}))
	}
	write(w.Close())
	write(out.Close())
	r, err := newReplay(t.Context(), &command.Base{Flags: command.NewFlags(nil)}, file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each time can be reached from each other one, and shows what there was then, with the words
// of explain; times at which only Leases have changed are left out.
func TestReplay(t *testing.T) {
	r := replayed(t)
	web := httptest.NewServer((&server{hub: newHub(), replay: r}).handler(token, "127.0.0.1"))
	t.Cleanup(web.Close)
	code, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+"/frames", nil)
	if code != http.StatusOK || strings.Count(body, `"at"`) != 3 || strings.Contains(body, "12:00:02") {
		t.Fatalf("the times: %d, %s", code, body)
	}
	if m := listen(t, web).next(); !m.Replay || !m.Frozen || m.Seq != 1 || len(m.View.Nodes) != 1 || m.Source != "incident.tar.gz" {
		t.Errorf("the page begins with %+v", m)
	}
	get := func(path string) message {
		t.Helper()
		var m message
		code, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+path, nil)
		if err := json.Unmarshal([]byte(body), &m); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		return m
	}
	want := []string{"n0", "n0 n1", "n1"}
	var views []*view.View
	for i, names := range want {
		v := get("/view?at=" + string(rune('0'+i))).View
		var got []string
		for _, n := range v.Nodes {
			got = append(got, n.Name)
		}
		if strings.Join(got, " ") != names {
			t.Errorf("at %d there are %q, want %s", i, got, names)
		}
		views = append(views, v)
	}
	for from := range want {
		for to := range want {
			m := get("/view?at=" + string(rune('0'+to)) + "&from=" + string(rune('0'+from)))
			raw, _ := facts.JSON(views[from].Apply(*m.Delta))
			whole, _ := facts.JSON(views[to])
			if string(raw) != string(whole) || m.From != uint64(from+1) || m.Seq != uint64(to+1) {
				t.Errorf("from %d to %d leads %s, want %s", from, to, raw, whole)
			}
		}
	}
	for path, code := range map[string]int{
		"/detail?ref=node/n1&at=0": 404, "/detail?ref=node/n1&at=1": 200, "/detail?ref=node/n0&at=2": 404, "/detail?ref=node/n0": 200, "/detail?ref=node/n0&at=3": 404,
		"/view?at=3": 404, "/view?at=-1": 404, "/view?at=x": 404, "/view": 404, "/view?at=0&from=9": 404, "/past?volume=v": 200,
	} {
		got, body, _ := ask(t, http.MethodGet, web.URL+"/"+token+path, nil)
		if got != code || code == 200 && strings.HasPrefix(path, "/detail") && (!strings.Contains(body, `"text":"`) || !strings.Contains(body, "--at 2026-03-01T12:00:0")) {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
}

// A page of a recording gets its first time once, and is told then only that the command
// still answers. In one file it has each time at which something differs.
func TestReplayIsSentOnceAndWritten(t *testing.T) {
	r := replayed(t)
	if m, err := r.beat(t.Context(), true); err != nil || m.View == nil {
		t.Errorf("first: %+v, %v", m, err)
	}
	if m, err := r.beat(t.Context(), false); err != nil || m.View != nil || m.Delta != nil || !m.Replay {
		t.Errorf("then: %+v, %v", m, err)
	}
	written, err := r.write(t.Context())
	if err != nil || len(written.frames) != 3 || written.messages[0].View == nil || written.messages[2].From != written.messages[1].Seq {
		t.Errorf("%+v, %v", written, err)
	}
}
