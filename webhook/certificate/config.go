// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"errors"
	"fmt"
	"time"
)

// Config configures the making of the certificate.
type Config struct {
	// Kubeconfig is the file that names the API server and the user; empty inside a cluster.
	Kubeconfig string
	// Namespace has the Secret and the Service.
	Namespace string
	// Secret, which must exist, gets tls.crt, tls.key and ca.crt.
	Secret string
	// Service is the webhook's name for the API server.
	Service string
	// WebhookConfiguration is the MutatingWebhookConfiguration that gets the CA bundle.
	WebhookConfiguration string
	// Duration is how long a certificate is valid, and RenewBefore how long before its end it is
	// renewed.
	Duration, RenewBefore time.Duration
}

// DefaultConfig returns the configuration that a command line starts from.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Secret: "moorage-webhook-tls", Service: "moorage-webhook", WebhookConfiguration: "moorage-webhook",
		Duration: 90 * 24 * time.Hour, RenewBefore: 30 * 24 * time.Hour,
	}
}

// Validate reports every field that can't work, and its flag.
func (c Config) Validate() error {
	var errs []error
	for flag, value := range map[string]string{
		"--namespace": c.Namespace, "--secret": c.Secret, "--service": c.Service, "--webhook-configuration": c.WebhookConfiguration,
	} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is missing", flag))
		}
	}
	if c.RenewBefore <= 0 || c.Duration <= c.RenewBefore {
		errs = append(errs, fmt.Errorf("--duration (%s) must be above --renew-before (%s), and that above 0", c.Duration, c.RenewBefore))
	}
	return errors.Join(errs...)
}

// names are the webhook's DNS names for the API server.
func (c Config) names() []string {
	name := c.Service + "." + c.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}
