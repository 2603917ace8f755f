// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// certificate is a serving certificate that follows its files. It looks at them
// when a client connects, which an API server does rarely, so that there is
// neither a watcher nor a timer to go wrong. Safe for parallel use.
type certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	version fileVersion
	loaded  *tls.Certificate
}

// fileVersion tells whether either file changed. A Secret's volume changes by
// swapping a symbolic link, which stat follows.
type fileVersion struct {
	certTime, keyTime time.Time
	certSize, keySize int64
}

// loadCertificate reads the files for the first time. Its error says what is
// wrong with them.
func loadCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// get is a tls.Config's GetCertificate. Files that can't be read keep the
// certificate that was read before: they are half written, or being replaced.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reload(); err != nil {
		klog.Background().Error(err, "Kept the serving certificate that was loaded before")
	}
	return c.loaded, nil
}

// expired returns an error if the certificate is not valid at the time now.
func (c *certificate) expired(now time.Time) error {
	leaf := c.leaf()
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return fmt.Errorf("the serving certificate in %s is valid from %s to %s only: renew it",
			c.certFile, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// leaf returns the certificate as it is on file now.
func (c *certificate) leaf() *x509.Certificate {
	current, _ := c.get(nil)
	return current.Leaf
}

// reload reads the files if they changed. The caller holds mu, or is the only
// one that knows c.
func (c *certificate) reload() error {
	version, err := statPair(c.certFile, c.keyFile)
	if err != nil {
		return err
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

// statPair returns the version of both files.
func statPair(certFile, keyFile string) (fileVersion, error) {
	cert, err := os.Stat(certFile)
	if err != nil {
		return fileVersion{}, fmt.Errorf("serving certificate: %w", err)
	}
	key, err := os.Stat(keyFile)
	if err != nil {
		return fileVersion{}, fmt.Errorf("key of the serving certificate: %w", err)
	}
	return fileVersion{certTime: cert.ModTime(), keyTime: key.ModTime(), certSize: cert.Size(), keySize: key.Size()}, nil
}
