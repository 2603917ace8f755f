// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Config configures a Server.
type Config struct {
	// Listen is the host:port to serve on; an empty host means every address.
	Listen string
	// CertFile and KeyFile are the PEM files of the serving certificate and its
	// key. They are read again when they change.
	CertFile, KeyFile string
	// SchedulerName is the scheduler that pods are given to.
	SchedulerName string
	// SecureMetrics answers /metrics only to clients that the API server lets get it. Kubeconfig
	// leads to the API server; empty: the pod's service account.
	SecureMetrics bool
	Kubeconfig    string
	// ShutdownDelay is how long the server takes requests after it was told to stop and reports
	// itself as not ready: the cluster needs this time to send new requests elsewhere.
	ShutdownDelay time.Duration
}

// DefaultConfig returns the configuration that a command line starts from. The certificate has no
// default.
func DefaultConfig() Config {
	return Config{Listen: ":8443", SchedulerName: v1alpha1.SchedulerName}
}

// Validate reports every field that the server can't work with, and its flag.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("--listen must be host:port, such as :8443: %w", err))
	}
	if c.CertFile == "" {
		errs = append(errs, errors.New("--tls-cert-file is missing: the API server talks to webhooks over TLS only"))
	}
	if c.KeyFile == "" {
		errs = append(errs, errors.New("--tls-private-key-file is missing: the API server talks to webhooks over TLS only"))
	}
	if c.SchedulerName == "" || c.SchedulerName == corev1.DefaultSchedulerName {
		errs = append(errs, fmt.Errorf("--scheduler-name must name Moorage's scheduler, not %q", c.SchedulerName))
	}
	if c.ShutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-delay must not be negative, and is %s", c.ShutdownDelay))
	}
	return errors.Join(errs...)
}
