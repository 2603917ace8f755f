// SPDX-License-Identifier: Apache-2.0

package serving

import "crypto/tls"

// TLS returns the configuration of a server that shows a certificate, to any
// client.
func TLS(certificate *Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get,
		// net/http adds these to its own copy only, and not to one for a client.
		NextProtos: []string{"h2", "http/1.1"},
	}
}

// MutualTLS returns the configuration of a server that speaks only to clients
// whose certificate one of the authorities has signed. Others are turned away
// in the handshake, before anything of theirs is read. Sessions are not resumed:
// an authority that is taken away counts from the next connection on.
func MutualTLS(certificate *Certificate, clients *Authorities) *tls.Config {
	config := TLS(certificate)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.GetConfigForClient = nil
		current.ClientCAs = clients.Pool()
		return current, nil
	}
	return config
}
