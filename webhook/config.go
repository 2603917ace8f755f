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
	// Listen is the host:port to serve on; an empty host: every address.
	Listen string
	// CertFile and KeyFile are the PEM files of the serving certificate. Changes are read again.
	CertFile, KeyFile string
	// SchedulerName is the scheduler for the pods.
	SchedulerName string
	// SecureMetrics answers /metrics only to clients that the API server allows. Kubeconfig leads to it;
	// empty: the pod's service account.
	SecureMetrics bool
	Kubeconfig    string
	// ShutdownDelay is the time of service after the stop, as not ready: the cluster needs it to send new
	// requests elsewhere.
	ShutdownDelay time.Duration
}

// DefaultConfig returns the command line's defaults. The certificate has none.
func DefaultConfig() Config {
	return Config{Listen: ":8443", SchedulerName: v1alpha1.SchedulerName}
}

// Validate reports every unfit field, and its flag.
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
