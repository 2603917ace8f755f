// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"errors"
	"fmt"
	"time"
)

// Config configures the certificate.
type Config struct {
	// Kubeconfig names the API server and the user; empty inside a cluster.
	Kubeconfig string
	// Namespace has the Secret and the Service.
	Namespace string
	// Secret must exist. It gets tls.crt, tls.key and ca.crt.
	Secret string
	// Service is the webhook's name for the API server.
	Service string
	// WebhookConfiguration is the MutatingWebhookConfiguration that gets the CA bundle.
	WebhookConfiguration string
	// Duration is a certificate's validity. It is renewed RenewBefore before its end.
	Duration, RenewBefore time.Duration
}

// DefaultConfig returns the command line's defaults.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Secret: "moorage-webhook-tls", Service: "moorage-webhook", WebhookConfiguration: "moorage-webhook",
		Duration: 90 * 24 * time.Hour, RenewBefore: 30 * 24 * time.Hour,
	}
}

// Validate reports every unfit field, and its flag.
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

func (c Config) names() []string {
	name := c.Service + "." + c.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}
