// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

// Authorities are the clients' certificate authorities. They follow their file. Safe for parallel use.
type Authorities struct {
	file string

	mu      sync.Mutex
	version version
	pool    *x509.CertPool
}

// LoadAuthorities reads a PEM file with one certificate or more.
func LoadAuthorities(file string) (*Authorities, error) {
	a := &Authorities{file: file}
	if err := a.reload(); err != nil {
		return nil, err
	}
	return a, nil
}

// Pool returns the authorities. An unreadable file keeps the former.
func (a *Authorities) Pool() *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.reload(); err != nil {
		klog.Background().Error(err, "Kept the client authorities that were loaded before")
	}
	return a.pool
}

// The caller of reload holds mu, or a is not shared yet.
func (a *Authorities) reload() error {
	now, err := versionOf(a.file, a.file)
	if err != nil {
		return fmt.Errorf("authorities of clients: %w", err)
	}
	if a.pool != nil && now == a.version {
		return nil
	}
	pool, err := ReadPool(a.file)
	if err != nil {
		return fmt.Errorf("authorities of clients: %w", err)
	}
	a.version, a.pool = now, pool
	return nil
}

// ReadPool reads a PEM file with one certificate or more.
func ReadPool(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	}
	return pool, nil
}
