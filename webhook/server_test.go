// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func writeCertificate(t testing.TB, dir, commonName string) (certFile, keyFile string) {
	t.Helper()
	return writeCertificateUntil(t, dir, commonName, time.Now().Add(time.Hour))
}

func writeCertificateUntil(t testing.TB, dir, commonName string, notAfter time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    notAfter.Add(-2 * time.Hour),
		NotAfter:     notAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert},
		keyFile:  {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func touch(t *testing.T, config Config, at time.Time) {
	t.Helper()
	for _, file := range []string{config.CertFile, config.KeyFile} {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func start(t *testing.T, server *Server) (address string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", server.config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), func() error { cancel(); return <-ended }
}

func serverName(t *testing.T, address string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which certificate it is, is what is tested
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestCertificateIsReloadedWithoutARestart(t *testing.T) {
	server := newServer(t)
	address, stop := start(t, server)
	if got := serverName(t, address); got != "first" {
		t.Fatalf("serves %q", got)
	}

	writeCertificate(t, filepath.Dir(server.config.CertFile), "second")
	touch(t, server.config, time.Now().Add(time.Minute))
	if got := serverName(t, address); got != "second" {
		t.Errorf("serves %q after the files changed, want second", got)
	}

	// A key of another certificate: the change is half done.
	if err := os.WriteFile(server.config.KeyFile, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serverName(t, address); got != "second" {
		t.Errorf("serves %q while the files are broken, want second", got)
	}
	if err := os.Remove(server.config.CertFile); err != nil {
		t.Fatal(err)
	}
	if got := serverName(t, address); got != "second" {
		t.Errorf("serves %q while the files are missing, want second", got)
	}

	writeCertificate(t, filepath.Dir(server.config.CertFile), "third")
	touch(t, server.config, time.Now().Add(2*time.Minute))
	if got := serverName(t, address); got != "third" {
		t.Errorf("serves %q after the files were whole again, want third", got)
	}
	if err := stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	address, stop := start(t, newServer(t))
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}) //nolint:gosec // the version is what is tested
		if (err == nil) != want {
			t.Errorf("%s is accepted: %t, want %t (%v)", tls.VersionName(version), err == nil, want, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if err := stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestRequestsUnderWayEnd(t *testing.T) {
	server := newServer(t)
	address, stop := start(t, server)
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // self-signed
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := review(t, rawPod, nil)
	// The server asks for the body once it reads it: then the request is under way.
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", pathMutatePod, address, len(body)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	asked, err := http.ReadResponse(answers, nil)
	if err != nil || asked.StatusCode != http.StatusContinue {
		t.Fatalf("the server answered %v, %v, and does not ask for the body", asked, err)
	}
	defer func() { _ = asked.Body.Close() }()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	waitFor(t, server.stopping.Load)
	if _, err := conn.Write(body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("the request was cut off: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("answered %d", response.StatusCode)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestNotReadyWhileStoppingAndStillServing(t *testing.T) {
	server := newServer(t)
	server.config.ShutdownDelay = time.Hour
	listener, err := net.Listen("tcp", server.config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed
	defer client.CloseIdleConnections()
	address := listener.Addr().String()
	if code := get(t, client, address, pathReadyz); code != http.StatusOK {
		t.Errorf("readyz is %d before the stop", code)
	}
	cancel()
	waitFor(t, func() bool { return get(t, client, address, pathReadyz) == http.StatusServiceUnavailable })
	if code := get(t, client, address, pathHealthz); code != http.StatusOK {
		t.Errorf("healthz is %d during the delay", code)
	}
	_ = listener.Close()
	if err := <-ended; err == nil {
		t.Error("a listener that breaks is not reported")
	}
}

func TestNotReadyWithAnExpiredCertificate(t *testing.T) {
	server := newServer(t)
	writeCertificateUntil(t, filepath.Dir(server.config.CertFile), "expired", time.Now().Add(-time.Minute))
	touch(t, server.config, time.Now().Add(time.Minute))
	recorder := httptest.NewRecorder()
	server.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, pathReadyz, nil))
	checkStatus(t, recorder, http.StatusServiceUnavailable, "renew it")
	if code := probe(server, pathHealthz); code != http.StatusOK {
		t.Errorf("healthz is %d: a restart would not renew the certificate", code)
	}
}

func TestPanicsAreAnsweredAndCounted(t *testing.T) {
	server := newServer(t)
	router := mux.NewRouter()
	router.HandleFunc(pathMutatePod, func(http.ResponseWriter, *http.Request) { panic("unforeseen") })
	recorder := post(server.observe(server.recoverPanics(router)), "application/json", nil)
	checkStatus(t, recorder, http.StatusInternalServerError, "bug in the server")
	if strings.Contains(recorder.Body.String(), "unforeseen") {
		t.Error("the answer tells the client what panicked")
	}
	if got := testutil.ToFloat64(server.metrics.panics); got != 1 {
		t.Errorf("counted %v panics", got)
	}
	if got := testutil.ToFloat64(server.metrics.requests.WithLabelValues(pathMutatePod, "500")); got != 1 {
		t.Errorf("counted %v answers of 500", got)
	}
}

func TestMetrics(t *testing.T) {
	server := newServer(t)
	post(server.Handler(), "application/json", review(t, rawPod, nil))
	probe(server, "/a/path/that/a/client/made/up")
	recorder := httptest.NewRecorder()
	server.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, pathMetrics, nil))
	text := recorder.Body.String()
	for _, want := range []string{
		`moorage_webhook_requests_total{code="200",path="/mutate/pod"} 1`,
		`moorage_webhook_requests_total{code="404",path="other"} 1`,
		`moorage_webhook_request_duration_seconds_count{path="/mutate/pod"} 1`,
		"moorage_webhook_pods_stamped_total 1",
		"moorage_webhook_pods_given_to_scheduler_total 1",
		"moorage_webhook_certificate_expiry_timestamp_seconds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics do not have %q", want)
		}
	}
	if problems, err := testutil.GatherAndLint(server.metrics.registry); err != nil || len(problems) > 0 {
		t.Errorf("the metrics' names: %v (%v)", problems, err)
	}
}

func TestConfigurationErrorsNameTheFlag(t *testing.T) {
	certFile, keyFile := writeCertificate(t, t.TempDir(), "first")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no certificate":        {[]string{"--tls-private-key-file=" + keyFile}, "--tls-cert-file"},
		"no key":                {[]string{"--tls-cert-file=" + certFile}, "--tls-private-key-file"},
		"missing file":          {[]string{"--tls-cert-file=" + certFile + "x", "--tls-private-key-file=" + keyFile}, certFile + "x"},
		"key for a certificate": {[]string{"--tls-cert-file=" + keyFile, "--tls-private-key-file=" + keyFile}, keyFile},
		"no port":               {[]string{"--listen=localhost"}, "--listen"},
		"default scheduler":     {[]string{"--scheduler-name=default-scheduler"}, "--scheduler-name"},
		"negative delay":        {[]string{"--shutdown-delay=-1s"}, "--shutdown-delay"},
		"an argument":           {[]string{"serve"}, "serve"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command := NewCommand()
			command.SetArgs(test.args)
			command.SetOut(&bytes.Buffer{})
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want it to say %q", err, test.want)
			}
		})
	}
}

func TestAnOccupiedPortIsAnError(t *testing.T) {
	server := newServer(t)
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = occupied.Close() }()
	server.config.Listen = occupied.Addr().String()
	if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("the error is %v", err)
	}
}

func probe(server *Server, path string) int {
	recorder := httptest.NewRecorder()
	server.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code
}

func get(t *testing.T, client *http.Client, address, path string) int {
	t.Helper()
	response, err := client.Get("https://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatal("the condition never held")
		}
	}
}
