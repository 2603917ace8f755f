// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	complete := DefaultConfig()
	complete.CertFile, complete.KeyFile, complete.ClientCAFile = "tls.crt", "tls.key", "ca.crt"
	if err := complete.Validate(); err != nil {
		t.Errorf("the defaults don't fit: %v", err)
	}
	tests := map[string]struct {
		change func(*Config)
		says   string
	}{
		"no port":             {func(c *Config) { c.Listen = "localhost" }, "--listen"},
		"no address":          {func(c *Config) { c.Listen = "" }, "--listen"},
		"no port for probes":  {func(c *Config) { c.HealthListen = "localhost" }, "--health-listen"},
		"no certificate":      {func(c *Config) { c.CertFile = "" }, "--tls-cert-file"},
		"no key":              {func(c *Config) { c.KeyFile = "" }, "--tls-private-key-file"},
		"no authorities":      {func(c *Config) { c.ClientCAFile = "" }, "--client-ca-file is missing: whoever can connect can bind pods"},
		"no namespace":        {func(c *Config) { c.Namespace = "" }, "--namespace"},
		"no name":             {func(c *Config) { c.Name = "" }, "--name"},
		"tiny requests":       {func(c *Config) { c.MaxBodyBytes = 10 }, "--max-request-bytes"},
		"no requests":         {func(c *Config) { c.QPS = 0 }, "--kube-api-qps"},
		"no time for a write": {func(c *Config) { c.WriteTimeout = 0 }, "--write-timeout"},
		"a lease too short":   {func(c *Config) { c.LeaseDuration = 1 }, "--leader-elect-lease-duration"},
		"a deadline too long": {func(c *Config) { c.RenewDeadline = c.LeaseDuration }, "--leader-elect-renew-deadline"},
		"a delay backwards":   {func(c *Config) { c.ShutdownDelay = -1 }, "--shutdown-delay"},
	}
	for name, test := range tests {
		config := complete
		test.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

func TestCommandSaysWhatIsWrong(t *testing.T) {
	f := newFiles(t)
	missing := filepath.Join(t.TempDir(), "missing")
	complete := []string{"--listen=127.0.0.1:0", "--tls-cert-file=" + f.cert, "--tls-private-key-file=" + f.key, "--client-ca-file=" + f.ca, "--kubeconfig=" + missing}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing given":             {nil, "--client-ca-file"},
		"a certificate for a key":   {append(complete[:len(complete):len(complete)], "--tls-private-key-file="+f.cert), f.cert},
		"a key for the authorities": {append(complete[:len(complete):len(complete)], "--client-ca-file="+f.key), "has no PEM certificate"},
		"no authorities":            {append(complete[:len(complete):len(complete)], "--client-ca-file="+missing), missing},
		"an address of another":     {append(complete[:len(complete):len(complete)], "--listen=192.0.2.1:1"), "--listen=192.0.2.1:1"},
		"no address for probes":     {append(complete[:len(complete):len(complete)], "--health-listen=192.0.2.1:1"), "--health-listen=192.0.2.1:1"},
		"no kubeconfig":             {complete, "--kubeconfig"},
		"an argument":               {[]string{"serve"}, "serve"},
	} {
		command := NewCommand()
		command.SetArgs(test.args)
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want it to name %q", name, err, test.want)
		}
	}
}
