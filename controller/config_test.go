// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/execute/apitest"
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
		"the chart's spelling": {func(c *Config) { c.Mode = "Standalone" }, ""},
		"cooperative":          {func(c *Config) { c.Mode = ModeCooperative }, "not there yet"},
		"no mode":              {func(c *Config) { c.Mode = "" }, "--mode"},
		"no port":              {func(c *Config) { c.Listen = "localhost" }, "--listen"},
		"no namespace":         {func(c *Config) { c.Namespace = "" }, "--namespace"},
		"no workers":           {func(c *Config) { c.Workers = 0 }, "--workers"},
		"no timeout":           {func(c *Config) { c.WriteTimeout = 0 }, "--write-timeout"},
		"a lease too short":    {func(c *Config) { c.LeaseDuration = time.Millisecond }, "--leader-elect-lease-duration"},
		"a deadline too long":  {func(c *Config) { c.RenewDeadline = c.LeaseDuration }, "--leader-elect-renew-deadline"},
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

func TestCommandRefusesCooperative(t *testing.T) {
	command := NewCommand()
	command.SetArgs([]string{"--mode=cooperative"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "not there yet") {
		t.Errorf("error %v", err)
	}
}

func TestGuard(t *testing.T) {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
	binding := func(actions ...admissionv1.ValidationAction) *admissionv1.ValidatingAdmissionPolicyBinding {
		return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policyName, ValidationActions: actions}}
	}
	tests := map[string]struct {
		setUp func(*apitest.Server)
		ok    bool
	}{
		"nothing":   {func(*apitest.Server) {}, false},
		"not bound": {func(s *apitest.Server) { s.Put("validatingadmissionpolicies", policy) }, false},
		"only warned": {func(s *apitest.Server) {
			s.Put("validatingadmissionpolicies", policy)
			s.Put("validatingadmissionpolicybindings", binding(admissionv1.Warn))
		}, false},
		"guarded": {func(s *apitest.Server) {
			s.Put("validatingadmissionpolicies", policy)
			s.Put("validatingadmissionpolicybindings", binding(admissionv1.Deny))
		}, true},
	}
	for name, test := range tests {
		server := apitest.Start(t)
		test.setUp(server)
		err := guarded(t.Context(), server.Kube)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, errUnguarded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without an answer nobody knows, and nothing begins.
	server := apitest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	server.Intercept(func(apitest.Request, func()) error {
		cancel()
		return errors.New("no connection")
	})
	if err := guarded(ctx, server.Kube); !errors.Is(err, context.Canceled) {
		t.Errorf("without an API server: %v", err)
	}
}

func TestPunctual(t *testing.T) {
	sent := 0
	transport := punctual{roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{}, nil
	})}
	send := func(deadline time.Time) error {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(request)
		return err
	}
	if err := send(time.Now().Add(-time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) || sent != 0 {
		t.Errorf("a request that is late: %v, %d sent", err, sent)
	}
	if err := send(time.Now().Add(time.Minute)); err != nil || sent != 1 {
		t.Errorf("a request in time: %v, %d sent", err, sent)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestServe(t *testing.T) {
	ready := false
	l := ledger.New()
	l.Apply(time.Now(), ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 7}}})
	metrics := report.NewMetrics(l.Snapshot)
	address, stop, err := serve(t.Context(), "127.0.0.1:0", &health{synced: func() bool { return ready }}, metrics.Registry)
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
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz says %d", code)
	}
	if _, body := get("/metrics"); !strings.Contains(body, `moorage_slots_limit{driver="d",node="n1"} 7`) {
		t.Errorf("/metrics says\n%s", body)
	}
	if _, _, err := serve(t.Context(), address, &health{}, metrics.Registry); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an address in use: %v", err)
	}
	stop()
	if _, err := http.Get("http://" + address + "/healthz"); err == nil {
		t.Error("it serves on after stop")
	}
}
