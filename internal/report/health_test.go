// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func wantMetrics(t *testing.T, m *report.Metrics, want string, names ...string) {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var got strings.Builder
	for line := range strings.Lines(answer.Body.String()) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); slices.Contains(names, strings.Split(name, "{")[0]) {
			got.WriteString(line)
		}
	}
	if got.String() != want {
		t.Errorf("the metrics are\n%swant\n%s", got.String(), want)
	}
}

func TestLeading(t *testing.T) {
	m := report.NewMetrics(ledger.New().Snapshot)
	standsBy := "moorage_leading 0\n"
	names := []string{"moorage_leading", "moorage_pods_waiting", "moorage_pods_waiting_oldest_timestamp_seconds", "moorage_queue_depth"}
	wantMetrics(t, m, standsBy, names...)
	end := m.Leads(map[string]func() int{"pods": func() int { return 3 }}, func() map[ledger.Code]report.PodWait {
		return map[ledger.Code]report.PodWait{rules.DetachFailed: {Pods: 2, Oldest: time.Unix(700, 0)}}
	})
	wantMetrics(t, m, "moorage_leading 1\n"+
		"moorage_pods_waiting{reason=\"DetachFailed\"} 2\n"+
		"moorage_pods_waiting_oldest_timestamp_seconds{reason=\"DetachFailed\"} 700\n"+
		"moorage_queue_depth{queue=\"pods\"} 3\n", names...)
	end()
	wantMetrics(t, m, standsBy, names...)
}

// A fence counts at its node, for any holder.
func TestVolumesByState(t *testing.T) {
	l := ledger.New()
	now := time.Unix(1000, 0)
	volume := func(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: handle} }
	hold := func(handle string, h ledger.Hold) {
		h.Version = "1"
		l.Apply(now, ledger.HoldSeen{Volume: volume(handle), Hold: h})
	}
	hold("a", ledger.Hold{Node: "n1", State: ledger.HoldHeld})
	hold("b", ledger.Hold{Node: "n1", State: ledger.HoldDetachPending, Reason: rules.NodeUnreachable, Fences: []ledger.Fence{{Node: "dead"}}})
	hold("c", ledger.Hold{Node: "n2", State: ledger.HoldDetachPending, Reason: rules.NodeUnreachable, Fences: []ledger.Fence{{Node: "dead"}, {Node: "gone"}}})
	l.Apply(now, ledger.PersistentVolume{Name: "shared", Version: "1", Volume: volume("shared"), Access: ledger.AccessMany})
	l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(volume("shared"), "n1"), UID: "a", Version: "1", Driver: "d", Node: "n1", PersistentVolume: "shared", Attached: true})
	l.Apply(now, ledger.PersistentVolume{Name: "new", Version: "1", Volume: volume("new"), Access: ledger.AccessNode})
	wantMetrics(t, report.NewMetrics(l.Snapshot), `moorage_fenced_volumes{node="dead"} 2
moorage_fenced_volumes{node="gone"} 1
moorage_volumes_by_state{reason="",state="Attached"} 1
moorage_volumes_by_state{reason="",state="Free"} 1
moorage_volumes_by_state{reason="",state="Held"} 1
moorage_volumes_by_state{reason="NodeUnreachable",state="DetachPending"} 2
`, "moorage_volumes_by_state", "moorage_fenced_volumes")
}

func TestNodesHeld(t *testing.T) {
	l, now, minute := ledger.New(), time.Unix(1000, 0), time.Minute
	for i := range 10 {
		n := ledger.NodeState{Name: ledger.NodeName(fmt.Sprintf("n%d", i)), UID: "u", Version: "1", Labels: map[string]string{"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}}
		if i > 3 {
			n.Ready, n.Labels = ledger.ReadyTrue, nil
		}
		l.Apply(now, n)
	}
	wantMetrics(t, report.NewMetrics(l.Snapshot), "", "moorage_nodes_unreachable_held")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &minute})
	wantMetrics(t, report.NewMetrics(l.Snapshot), `moorage_nodes_unreachable_held{region="r",zone="a"} 4
`, "moorage_nodes_unreachable_held")
	for i := range 3 {
		l.Apply(now, ledger.NodeState{Name: ledger.NodeName(fmt.Sprintf("n%d", 4+i)), UID: "u", Version: "2", Labels: map[string]string{"topology.kubernetes.io/zone": "b"}})
	}
	wantMetrics(t, report.NewMetrics(l.Snapshot), `moorage_nodes_unreachable_held{region="",zone="b"} 3
moorage_nodes_unreachable_held{region="*",zone="*"} 7
moorage_nodes_unreachable_held{region="r",zone="a"} 4
`, "moorage_nodes_unreachable_held")
}

// in any state of its node, for each registered driver
func TestNodesCutOff(t *testing.T) {
	l, now := ledger.New(), time.Unix(1000, 0)
	for i, drivers := range [][]string{nil, {"d", "nobody's"}, {"d", "e"}, nil} {
		l.Apply(now, ledger.NodeState{Name: "n", UID: "u", Version: strconv.Itoa(i + 1), CutOff: drivers})
		l.Apply(now, ledger.NodeDrivers{Node: "n", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "n"}, {Name: "e", NodeID: "n"}}})
		want := ""
		for _, d := range drivers {
			if d != "nobody's" {
				want += fmt.Sprintf("moorage_nodes_cut_off{driver=%q,node=\"n\"} 1\n", d)
			}
		}
		wantMetrics(t, report.NewMetrics(l.Snapshot), want, "moorage_nodes_cut_off")
	}
}

// A refused watch counts as none.
func TestWatchStreams(t *testing.T) {
	var answer = http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	m := report.NewMetrics(ledger.New().Snapshot)
	client := &http.Client{Transport: m.Watches(http.DefaultTransport)}
	get := func(path string) *http.Response {
		t.Helper()
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	const podsAt = "/api/v1/pods?watch=true"
	get("/api/v1/nodes?limit=500").Body.Close()
	get(podsAt).Body.Close()
	wantMetrics(t, m, "moorage_watch_streams{resource=\"pods\"} 0\n", "moorage_watch_streams")
	answer = http.StatusOK
	first, second := get(podsAt), get(podsAt)
	wantMetrics(t, m, "moorage_watch_streams{resource=\"pods\"} 2\n", "moorage_watch_streams")
	if _, err := io.ReadAll(first.Body); err != nil { // the server ends it
		t.Fatal(err)
	}
	first.Body.Close()
	wantMetrics(t, m, "moorage_watch_streams{resource=\"pods\"} 1\n", "moorage_watch_streams")
	second.Body.Close()
	wantMetrics(t, m, "moorage_watch_streams{resource=\"pods\"} 0\n", "moorage_watch_streams")
}
