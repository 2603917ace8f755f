// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

// Config configures the answers to schedulers. Without Listen there are none.
type Config struct {
	// Listen is the host:port for schedulers; an empty host: every address.
	Listen string
	// CertFile and KeyFile are the serving certificate's PEM files; ClientCAFile has the clients'
	// authorities. Changes are read again.
	CertFile, KeyFile, ClientCAFile string
	// ClientNames are names in schedulers' certificates; empty: any certificate of the authorities.
	ClientNames []string
	// Service is a Service without a selector in the Lease's namespace. The leader points it at its IP
	// address Advertise and the port of Listen. If empty, schedulers must find the leader themselves.
	Service, Advertise string
	MaxBodyBytes       int64
}

// DefaultConfig returns the command line's defaults.
func DefaultConfig() Config {
	return Config{ClientNames: []string{"system:kube-scheduler"}, MaxBodyBytes: 64 << 20}
}

// AddFlags adds a flag for each field.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Listen, "extender-listen", c.Listen, "host:port at which schedulers that can't load Moorage's plugin are answered; without a host on every address, none when empty")
	flags.StringVar(&c.CertFile, "extender-tls-cert-file", c.CertFile, "PEM file of the extender's serving certificate, read again when it changes")
	flags.StringVar(&c.KeyFile, "extender-tls-private-key-file", c.KeyFile, "PEM file of the key of the extender's serving certificate, read again when it changes")
	flags.StringVar(&c.ClientCAFile, "extender-client-ca-file", c.ClientCAFile, "PEM file of the authorities that sign the certificates of schedulers, read again when it changes")
	flags.StringSliceVar(&c.ClientNames, "extender-client-names", c.ClientNames, "common or DNS names of the certificates of schedulers; any when empty")
	flags.StringVar(&c.Service, "extender-service", c.Service, "Service without a selector, in the Lease's namespace, that the leader points at itself")
	flags.StringVar(&c.Advertise, "extender-advertise-address", c.Advertise, "with --extender-service: IP address at which schedulers reach this process, on the port of --extender-listen")
	flags.Int64Var(&c.MaxBodyBytes, "extender-max-request-bytes", c.MaxBodyBytes, "largest request that the extender takes; schedulers that send whole nodes need some 10 KiB for each")
}

// Validate reports every unfit field, and its flag.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("--extender-listen must be host:port, such as :8444: %w", err))
	}
	for _, required := range []struct{ flag, value, why string }{
		{"--extender-tls-cert-file", c.CertFile, "schedulers are answered over TLS only"},
		{"--extender-tls-private-key-file", c.KeyFile, "schedulers are answered over TLS only"},
		{"--extender-client-ca-file", c.ClientCAFile, "whoever can connect can bind pods, so that clients must show a certificate"},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s is missing: %s", required.flag, required.why))
		}
	}
	if c.MaxBodyBytes < wire.MaxPodBytes {
		errs = append(errs, fmt.Errorf("--extender-max-request-bytes must be %d or more, to fit a pod, and is %d", wire.MaxPodBytes, c.MaxBodyBytes))
	}
	return errors.Join(errs...)
}
