// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The driver's words may hold anything: they are left out.
func TestEventsAreLogged(t *testing.T) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	e := report.NewEventsIn(klog.NewContext(t.Context(), logger), record.NewFakeRecorder(9))
	volume := ledger.VolumeID{Driver: "d", Handle: "h"}
	e.Waits(&ledger.Pod{Namespace: "shop", Name: "db"}, nil, rules.Reason{Code: rules.AttachFailed, Volume: volume, Node: "n1", Detail: "password=x"})
	e.ForcedDetach(t.Context(), volume, ledger.Fence{Node: "n3", Rule: rules.OutOfService})
	e.Difference(report.OfNode("n4"), "BooksDiffer", "password=y")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{`reason="AttachFailed"`, `volume="d^h"`, `node="n1"`, `pod="shop/db"`},
		{`reason="ForcedDetach"`, `volume="d^h"`, `node="n3"`, `rule="OutOfService"`},
		{`reason="BooksDiffer"`, `kind="Node"`, `object="n4"`},
	} {
		for _, text := range want {
			if i >= len(lines) || !strings.Contains(lines[i], text) {
				t.Errorf("line %d lacks %s:\n%s", i, text, out.String())
			}
		}
	}
	if strings.Contains(out.String(), "password") {
		t.Errorf("a driver's words are logged:\n%s", out.String())
	}
	var none *report.Events
	none.Waits(&ledger.Pod{}, nil, rules.Reason{}) // no recorder is no reason to fail
	none.ForcedDetach(t.Context(), volume, ledger.Fence{})
}
