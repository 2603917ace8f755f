// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
)

// TLS returns the configuration of a server that shows a certificate, to any
// client.
func TLS(certificate *Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get,
		// net/http adds these to its own copy only, and not to one for a client.
		NextProtos: []string{"h2", "http/1.1"},
	}
}

// MutualTLS returns the configuration of a server that speaks only to clients with a certificate of the
// authorities, and, unless there are no names, with a common name or DNS name among names. Others are
// refused in the handshake, before anything of theirs is read. Sessions are not resumed: an authority
// that is taken away counts from the next connection on.
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

// verifyName wants a client's certificate to be for one of the names.
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
