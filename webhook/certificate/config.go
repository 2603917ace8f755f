// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"errors"
	"fmt"
	"time"
)

// Config is what it takes to make the certificate.
type Config struct {
	// Kubeconfig is the file that says where the API server is and who asks;
	// empty inside a cluster.
	Kubeconfig string
	// Namespace is that of the Secret and the Service.
	Namespace string
	// Secret, which must exist, gets tls.crt, tls.key and ca.crt.
	Secret string
	// Service is the name that the API server calls the webhook by.
	Service string
	// WebhookConfiguration is the MutatingWebhookConfiguration that is told whom
	// to trust.
	WebhookConfiguration string
	// Duration is how long a certificate is valid, and RenewBefore how long
	// before its end it is renewed.
	Duration, RenewBefore time.Duration
}

// DefaultConfig returns the configuration that a command line starts from.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Secret: "moorage-webhook-tls", Service: "moorage-webhook", WebhookConfiguration: "moorage-webhook",
		Duration: 90 * 24 * time.Hour, RenewBefore: 30 * 24 * time.Hour,
	}
}

// Validate reports every field that can't work, and which flag sets it.
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

// names are the DNS names that the API server may call the webhook by.
func (c Config) names() []string {
	name := c.Service + "." + c.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}
