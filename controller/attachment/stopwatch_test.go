// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func measured(t *testing.T, m *report.Metrics) []string {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range families {
		if f.GetName() != "moorage_operation_seconds" {
			continue
		}
		for _, metric := range f.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "operation" {
					h := metric.GetHistogram()
					list = append(list, fmt.Sprintf("%s %d %gs", label.GetValue(), h.GetSampleCount(), h.GetSampleSum()))
				}
			}
		}
	}
	return list
}

// Each node of a shared volume is measured alone; an abandoned attach is not measured.
func TestStopwatch(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	l := facts(begin, "data")
	metrics := report.NewMetrics(nil)
	w := newStopwatch(metrics)
	id := volume("data")
	does := func(do rules.Kind, n ledger.NodeName, began, ended int) {
		w.done(rules.Step{Kind: do, Volume: id, Node: n}, at(began), at(ended))
	}
	look := func(now int) { w.look(l.Snapshot().Volume(id), id, nil, at(now)) }
	attach := func(n ledger.NodeName, version string) {
		a := attachmentOf("data", version, true)
		a.Name, a.Node, a.UID = ledger.AttachmentName(id, n), n, string(n)
		l.Apply(begin, a)
	}

	attach("n1", "2")
	attach("n2", "2")
	does(rules.CreateAttachment, "n1", 0, 0)
	does(rules.CreateAttachment, "n2", 0, 0)
	look(1)
	does(rules.Report, "n1", 2, 2)
	does(rules.Unreport, "n1", 3, 3)
	does(rules.Report, "n2", 4, 4)
	l.Apply(begin, ledger.AttachmentGone{Name: ledger.AttachmentName(id, "n1")})
	look(8)
	if got := measured(t, metrics); !slices.Equal(got, []string{"attach 2 6s", "detach 1 5s"}) {
		t.Errorf("measured %v", got)
	}

	attach("n3", "3")
	does(rules.CreateAttachment, "n3", 10, 10)
	l.Apply(begin, ledger.AttachmentGone{Name: ledger.AttachmentName(id, "n3")})
	look(20) // it has no user any more
	attach("n3", "5")
	does(rules.CreateAttachment, "n3", 100, 100)
	does(rules.Report, "n3", 101, 101)
	if got := measured(t, metrics); !slices.Equal(got, []string{"attach 3 7s", "detach 1 5s"}) {
		t.Errorf("measured %v", got)
	}
	if len(w.attach)+len(w.detach) > 0 {
		t.Errorf("kept: %v, %v", w.attach, w.detach)
	}
}
