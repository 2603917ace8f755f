// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"crypto/tls"
	"os"
	"testing"
	"time"
)

func contextDone() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

// Whoever can connect can bind pods.
func TestOnlySchedulersMayConnect(t *testing.T) {
	r := newRig(t, nil)
	stranger := newAuthority(t)
	anonymous := r.files.tlsConfig(t, r.files.authority, scheduler)
	anonymous.Certificates = nil
	old := r.files.tlsConfig(t, r.files.authority, scheduler)
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	twelve := r.files.tlsConfig(t, r.files.authority, scheduler)
	twelve.MaxVersion = tls.VersionTLS12
	for name, test := range map[string]struct {
		config *tls.Config
		ok     bool
	}{
		"a scheduler":                     {r.files.tlsConfig(t, r.files.authority, scheduler), true},
		"a scheduler, by TLS 1.2":         {twelve, true},
		"a scheduler, by a DNS name":      {r.files.tlsConfig(t, r.files.authority, "", "other", scheduler), true},
		"a scheduler, by TLS 1.1":         {old, false},
		"without a certificate":           {anonymous, false},
		"of another authority":            {r.files.tlsConfig(t, stranger, scheduler), false},
		"a kubelet of the same authority": {r.files.tlsConfig(t, r.files.authority, "system:node:worker-1"), false},
	} {
		if err := r.dial(test.config); (err == nil) != test.ok {
			t.Errorf("%s: %v, want to be let in: %t", name, err, test.ok)
		}
	}
}

// touch makes a file look changed, however coarse the file system's clock is.
func touch(t *testing.T, file string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreReloadedWithoutARestart(t *testing.T) {
	r := newRig(t, nil)
	config := r.files.tlsConfig(t, r.files.authority, scheduler)
	shown := func() string {
		conn, err := tls.Dial("tcp", r.address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := shown(); got != "moorage-extender" {
		t.Fatalf("serves %q", got)
	}
	cert, key := r.files.authority.sign(t, "renewed")
	write(t, r.files.cert, cert)
	write(t, r.files.key, key)
	touch(t, r.files.cert, time.Now().Add(time.Minute))
	if got := shown(); got != "renewed" {
		t.Errorf("serves %q after the files changed", got)
	}

	next := newAuthority(t)
	if err := r.dial(r.files.tlsConfig(t, next, scheduler)); err == nil {
		t.Fatal("an authority is trusted that nobody named")
	}
	write(t, r.files.ca, []byte("half written"))
	touch(t, r.files.ca, time.Now().Add(time.Minute))
	if err := r.dial(config); err != nil {
		t.Errorf("while the authorities are broken: %v", err)
	}
	write(t, r.files.ca, next.pem)
	touch(t, r.files.ca, time.Now().Add(2*time.Minute))
	if err := r.dial(r.files.tlsConfig(t, next, scheduler)); err != nil {
		t.Errorf("the new authority: %v", err)
	}
	if err := r.dial(config); err == nil {
		t.Error("the old authority is still trusted")
	}
}
