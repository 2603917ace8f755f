// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults don't fit: %v", err)
	}
	tests := map[string]struct {
		change func(*Config)
		says   string // empty: it fits
	}{
		"the chart's spelling":          {func(c *Config) { c.Mode = "Standalone" }, ""},
		"cooperative":                   {func(c *Config) { c.Mode = "Cooperative" }, ""},
		"no report in cooperative mode": {func(c *Config) { c.RequireNodeReport = true }, "--require-node-report"},
		"a report":                      {func(c *Config) { c.Mode, c.RequireNodeReport = "standalone", true }, ""},
		"no mode":                       {func(c *Config) { c.Mode = "" }, "--mode"},
		"no port":                       {func(c *Config) { c.Listen = "localhost" }, "--listen"},
		"no namespace":                  {func(c *Config) { c.Namespace = "" }, "--namespace"},
		"no workers":                    {func(c *Config) { c.Workers = 0 }, "--workers"},
		"no truth check period":         {func(c *Config) { c.TruthCheckPeriod = 0 }, "--disable-truth-check"},
		"no timeout":                    {func(c *Config) { c.WriteTimeout = 0 }, "--write-timeout"},
		"a lease too short":             {func(c *Config) { c.LeaseDuration = time.Millisecond }, "--leader-elect-lease-duration"},
		"a deadline too long":           {func(c *Config) { c.RenewDeadline = c.LeaseDuration }, "--leader-elect-renew-deadline"},
	}
	for name, test := range tests {
		config := DefaultConfig()
		test.change(&config)
		err := config.Validate()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

func TestServe(t *testing.T) {
	ready := false
	l := ledger.New()
	l.Apply(time.Now(), ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 7}}})
	metrics := report.NewMetrics(l.Snapshot)
	probes := &health{synced: func() bool { return ready }}
	address, stop, err := Config{Listen: "127.0.0.1:0"}.serve(t.Context(), probes, metrics.Registry)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz says %d", code)
	}
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %d before the caches are complete", code)
	}
	ready = true
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %d before the guard lets it lead", code)
	}
	probes.guarded.Store(true)
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz says %d", code)
	}
	if _, body := get("/metrics"); !strings.Contains(body, `moorage_slots_limit{driver="d",node="n1"} 7`) {
		t.Errorf("/metrics says\n%s", body)
	}
	if _, _, err := (Config{Listen: address}).serve(t.Context(), &health{}, metrics.Registry); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an address in use: %v", err)
	}
	stop()
	if _, err := http.Get("http://" + address + "/healthz"); err == nil {
		t.Error("it serves on after stop")
	}
}
