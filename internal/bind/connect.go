// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/moorage-dev/moorage/internal/serving"
)

// How long it takes at most until a controller is connected to, and how soon one is given up
// that does not answer even the connection.
const (
	dialTimeout = 2 * time.Second
	idleTimeout = 90 * time.Second
)

// Connect returns what NewClient takes: connections over TLS to a controller whose
// certificate the authorities in caFile have signed, which the certificate in certFile and
// keyFile is shown to. The files are read at each connect.
func Connect(caFile, certFile, keyFile string) func() (http.RoundTripper, error) {
	return func() (http.RoundTripper, error) {
		pool, err := serving.ReadPool(caFile)
		if err != nil {
			return nil, fmt.Errorf("authorities of the controller: %w", err)
		}
		own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("certificate for the controller %s with key %s: %w", certFile, keyFile, err)
			}
			return &pair, nil
		}
		return &http.Transport{
			DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, GetClientCertificate: own},
			// One connection carries them all.
			ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: idleTimeout,
		}, nil
	}
}
