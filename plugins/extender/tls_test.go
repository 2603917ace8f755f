// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"crypto/tls"
	"os"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/certtest"
)

func contextDone() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

// A client that can connect can bind pods.
func TestOnlySchedulersMayConnect(t *testing.T) {
	r := newRig(t, nil)
	stranger := certtest.NewAuthority(t)
	anonymous := r.files.TLSConfig(t, r.files.Authority, scheduler)
	anonymous.Certificates = nil
	old := r.files.TLSConfig(t, r.files.Authority, scheduler)
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	twelve := r.files.TLSConfig(t, r.files.Authority, scheduler)
	twelve.MaxVersion = tls.VersionTLS12
	for name, test := range map[string]struct {
		config *tls.Config
		ok     bool
	}{
		"a scheduler":                     {r.files.TLSConfig(t, r.files.Authority, scheduler), true},
		"a scheduler, by TLS 1.2":         {twelve, true},
		"a scheduler, by a DNS name":      {r.files.TLSConfig(t, r.files.Authority, "", "other", scheduler), true},
		"a scheduler, by TLS 1.1":         {old, false},
		"without a certificate":           {anonymous, false},
		"of another authority":            {r.files.TLSConfig(t, stranger, scheduler), false},
		"a kubelet of the same authority": {r.files.TLSConfig(t, r.files.Authority, "system:node:worker-1"), false},
	} {
		if err := r.dial(test.config); (err == nil) != test.ok {
			t.Errorf("%s: %v, want to be let in: %t", name, err, test.ok)
		}
	}
}

// touch works on a file system with any clock.
func touch(t *testing.T, file string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreReloadedWithoutARestart(t *testing.T) {
	r := newRig(t, nil)
	config := r.files.TLSConfig(t, r.files.Authority, scheduler)
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
	cert, key := r.files.Authority.Sign(t, "renewed")
	certtest.Write(t, r.files.Cert, cert)
	certtest.Write(t, r.files.Key, key)
	touch(t, r.files.Cert, time.Now().Add(time.Minute))
	if got := shown(); got != "renewed" {
		t.Errorf("serves %q after the files changed", got)
	}

	next := certtest.NewAuthority(t)
	if err := r.dial(r.files.TLSConfig(t, next, scheduler)); err == nil {
		t.Fatal("an authority is trusted that nobody named")
	}
	certtest.Write(t, r.files.CA, []byte("half written"))
	touch(t, r.files.CA, time.Now().Add(time.Minute))
	if err := r.dial(config); err != nil {
		t.Errorf("while the authorities are broken: %v", err)
	}
	certtest.Write(t, r.files.CA, next.PEM)
	touch(t, r.files.CA, time.Now().Add(2*time.Minute))
	if err := r.dial(r.files.TLSConfig(t, next, scheduler)); err != nil {
		t.Errorf("the new authority: %v", err)
	}
	if err := r.dial(config); err == nil {
		t.Error("the old authority is still trusted")
	}
}
