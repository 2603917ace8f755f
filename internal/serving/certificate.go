// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Certificate is a serving certificate that follows its files. It looks at them when a client connects,
// which API servers and schedulers do rarely. Safe for parallel use.
type Certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	version version
	loaded  *tls.Certificate
}

// LoadCertificate reads the PEM files of a certificate and its key.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Get is a tls.Config's GetCertificate. Unreadable files, half written or being replaced, keep the former
// certificate.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reload(); err != nil {
		klog.Background().Error(err, "Kept the serving certificate that was loaded before")
	}
	return c.loaded, nil
}

// Expired returns an error if the certificate is not valid at now.
func (c *Certificate) Expired(now time.Time) error {
	leaf := c.Leaf()
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return fmt.Errorf("the serving certificate in %s is valid from %s to %s only: renew it",
			c.certFile, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// Leaf returns the certificate in the present file.
func (c *Certificate) Leaf() *x509.Certificate {
	current, _ := c.Get(nil)
	return current.Leaf
}

// The caller of reload holds mu, or c is not shared yet.
func (c *Certificate) reload() error {
	version, err := versionOf(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("serving certificate and its key: %w", err)
	}
	if c.loaded != nil && version == c.version {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("serving certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("serving certificate %s: %w", c.certFile, err)
		}
	}
	c.version, c.loaded = version, &pair
	return nil
}
