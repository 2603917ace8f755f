// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// skew starts the validity in the past, for machines with late clocks.
const skew = 5 * time.Minute

type pair struct {
	certificate, key, authority []byte
}

// issue also makes an authority that signs this certificate only.
func issue(names []string, now time.Time, duration time.Duration) (pair, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make the authority's key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make the certificate's key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("%s authority %x", names[0], serial.Bytes()[:4])},
		NotBefore: now.Add(-skew), NotAfter: now.Add(duration),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: new(big.Int).Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-skew), NotAfter: now.Add(duration),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityRaw, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return pair{}, fmt.Errorf("sign the authority: %w", err)
	}
	if authority, err = x509.ParseCertificate(authorityRaw); err != nil {
		return pair{}, fmt.Errorf("read the authority back: %w", err)
	}
	leafRaw, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate: %w", err)
	}
	keyRaw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode the certificate's key: %w", err)
	}
	return pair{certificate: block("CERTIFICATE", leafRaw), key: block("PRIVATE KEY", keyRaw), authority: block("CERTIFICATE", authorityRaw)}, nil
}

func block(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func due(shown pair, names []string, now time.Time, renewBefore time.Duration) error {
	if len(shown.certificate) == 0 {
		return errors.New("there is none yet")
	}
	loaded, err := tls.X509KeyPair(shown.certificate, shown.key)
	if err != nil {
		return fmt.Errorf("it can't be used: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shown.authority)
	for _, name := range names {
		if _, err := loaded.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return fmt.Errorf("the API server would not trust it: %w", err)
		}
	}
	if left := loaded.Leaf.NotAfter.Sub(now); left <= renewBefore {
		return fmt.Errorf("it ends in %s", left.Round(time.Second))
	}
	return nil
}

func bundle(authority, older []byte, now time.Time) []byte {
	out := bytes.Clone(authority)
	for {
		var next *pem.Block
		if next, older = pem.Decode(older); next == nil {
			return out
		}
		parsed, err := x509.ParseCertificate(next.Bytes)
		if err == nil && now.Before(parsed.NotAfter) && !bytes.Contains(out, pem.EncodeToMemory(next)) {
			out = append(out, pem.EncodeToMemory(next)...)
		}
	}
}
