// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestExpressionsAreParsedAndTheirMetricsFound(t *testing.T) {
	names, err := metrics([]string{`sum by (a) (rate(b_total{c="d"}[5m])) / on () a`, `a > 1`})
	if err != nil || !slices.Equal(names, []string{"a", "b_total"}) {
		t.Errorf("found %v, %v", names, err)
	}
	if _, err := metrics([]string{`rate(b_total)`}); err == nil {
		t.Error("a rate of an instant is let pass")
	}
}

func TestTheChartsExpressions(t *testing.T) {
	names, err := run("../../charts/moorage/files/alerts.yaml", "../../charts/moorage/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "moorage_") && !strings.HasPrefix(name, "csi_sidecar_") && !strings.HasPrefix(name, "apiserver_admission_webhook_") {
			t.Errorf("%s is neither Moorage's, nor of a sidecar that it stands in for, nor of the API server that calls the webhook", name)
		}
	}
	if len(names) < 30 {
		t.Errorf("only %d metrics are asked for", len(names))
	}
}
