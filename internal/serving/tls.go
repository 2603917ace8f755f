// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
)

// TLS returns the configuration of a server for any client.
func TLS(certificate *Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get,
		// net/http adds these to its own copy only.
		NextProtos: []string{"h2", "http/1.1"},
	}
}

// MutualTLS returns the configuration of a server for clients with a certificate of the authorities and, if
// there are names, a common name or DNS name among them. Sessions are not resumed: a removed authority
// counts from the next connection on.
func MutualTLS(certificate *Certificate, clients *Authorities, names []string) *tls.Config {
	config := TLS(certificate)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		return verifyName(state.PeerCertificates[0], names)
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.GetConfigForClient = nil
		current.ClientCAs = clients.Pool()
		return current, nil
	}
	return config
}

func verifyName(client *x509.Certificate, names []string) error {
	if len(names) == 0 || slices.Contains(names, client.Subject.CommonName) {
		return nil
	}
	for _, name := range client.DNSNames {
		if slices.Contains(names, name) {
			return nil
		}
	}
	return fmt.Errorf("the client's certificate is for %q, and not for one of %q", client.Subject.CommonName, names)
}
