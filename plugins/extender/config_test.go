// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/test/certtest"
)

func TestConfig(t *testing.T) {
	complete := DefaultConfig()
	complete.Listen, complete.CertFile, complete.KeyFile, complete.ClientCAFile = ":8444", "tls.crt", "tls.key", "ca.crt"
	if err := complete.Validate(); err != nil {
		t.Errorf("the defaults don't fit: %v", err)
	}
	tests := map[string]struct {
		change func(*Config)
		says   string
	}{
		"no port":        {func(c *Config) { c.Listen = "localhost" }, "--extender-listen"},
		"no address":     {func(c *Config) { c.Listen = "" }, "--extender-listen"},
		"no certificate": {func(c *Config) { c.CertFile = "" }, "--extender-tls-cert-file"},
		"no key":         {func(c *Config) { c.KeyFile = "" }, "--extender-tls-private-key-file"},
		"no authorities": {func(c *Config) { c.ClientCAFile = "" }, "--extender-client-ca-file is missing: whoever can connect can bind pods"},
		"tiny requests":  {func(c *Config) { c.MaxBodyBytes = 10 }, "--extender-max-request-bytes"},
	}
	for name, test := range tests {
		config := complete
		test.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	f := certtest.NewFiles(t, "moorage-extender")
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"nothing given":             {func(c *Config) { *c = Config{} }, "--extender-client-ca-file"},
		"a certificate for a key":   {func(c *Config) { c.KeyFile = f.Cert }, f.Cert},
		"a key for the authorities": {func(c *Config) { c.ClientCAFile = f.Key }, "has no PEM certificate"},
		"no authorities":            {func(c *Config) { c.ClientCAFile = missing }, missing},
		"an address of another":     {func(c *Config) { c.Listen = "192.0.2.1:1" }, "--extender-listen=192.0.2.1:1"},
		"nowhere to be reached":     {func(c *Config) { c.Service = service }, "--extender-advertise-address"},
	} {
		kube := fake.NewClientset()
		o := Options{Config: DefaultConfig(), Kube: kube, Facts: still{ledger.New()}, Placer: &binding.Placer{},
			Pods: informers.NewSharedInformerFactory(kube, 0).Core().V1().Pods().Informer()}
		o.Listen, o.CertFile, o.KeyFile, o.ClientCAFile = "127.0.0.1:0", f.Cert, f.Key, f.CA
		test.change(&o.Config)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want it to name %q", name, err, test.says)
		}
	}
}
