// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/announce"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

// Config is what the extender's process needs to know.
type Config struct {
	// Kubeconfig is the file that says where the API server is and who asks;
	// empty inside a cluster.
	Kubeconfig string
	// Namespace is where the Lease is, and Name what it is called.
	Namespace, Name string
	// Listen is the host:port for schedulers; an empty host means every address.
	Listen string
	// HealthListen is the host:port for /healthz, /readyz and /metrics, without
	// TLS; empty for none.
	HealthListen string
	// SecureMetrics serves them over TLS, and /metrics to those only whom the API server
	// lets get it.
	SecureMetrics bool
	// CertFile and KeyFile are the PEM files of the serving certificate and its
	// key, ClientCAFile that of the authorities of clients. All are read again
	// when they change.
	CertFile, KeyFile, ClientCAFile string
	// ClientNames are the common or DNS names of the certificates of schedulers;
	// when empty, any that the authorities have signed will do.
	ClientNames []string
	// Service is a Service without a selector in Namespace, which the leader
	// points at itself: at the IP address Advertise and the port of Listen. When
	// empty, whoever is ready is asked, and only the leader is ready.
	Service, Advertise string
	// MaxBodyBytes bounds a request.
	MaxBodyBytes int64
	// QPS and Burst bound the requests to the API server.
	QPS   float32
	Burst int
	// WriteTimeout bounds each write.
	WriteTimeout time.Duration
	// LeaseDuration, RenewDeadline and RetryPeriod are those of the election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// ShutdownDelay is how long requests are still taken after the process was
	// told to stop and reports itself as not ready.
	ShutdownDelay time.Duration
}

// DefaultConfig returns the configuration that a command line starts from. The
// certificates have no default.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Name: v1alpha1.ExtenderName, Listen: ":8444",
		ClientNames:  []string{"system:kube-scheduler"},
		MaxBodyBytes: 64 << 20,
		QPS:          500, Burst: 1000,
		WriteTimeout:  5 * time.Second,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// lease is what processes of the extender compete for.
func (c Config) lease() lead.Config {
	return lead.Config{
		Namespace: c.Namespace, Name: c.Name,
		Times:        lead.Times{Duration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod},
		WriteTimeout: c.WriteTimeout,
	}
}

// connection is how the API server is reached. A write's time is that of the
// request it is for.
func (c Config) connection() connect.Config {
	return connect.Config{
		Kubeconfig: c.Kubeconfig, Name: v1alpha1.ExtenderName,
		QPS: c.QPS, Burst: c.Burst, RenewDeadline: c.RenewDeadline,
	}
}

// Validate reports every field that the extender can't work with, and which flag
// sets it.
func (c Config) Validate() error {
	var errs []error
	for _, address := range []struct{ flag, value string }{{"--listen", c.Listen}, {"--health-listen", c.HealthListen}} {
		if _, _, err := net.SplitHostPort(address.value); err != nil && !(address.flag == "--health-listen" && address.value == "") {
			errs = append(errs, fmt.Errorf("%s must be host:port, such as :8444: %w", address.flag, err))
		}
	}
	for _, required := range []struct{ flag, value, why string }{
		{"--namespace", c.Namespace, "the Lease has to be somewhere"},
		{"--name", c.Name, "the Lease needs one"},
		{"--tls-cert-file", c.CertFile, "schedulers are answered over TLS only"},
		{"--tls-private-key-file", c.KeyFile, "schedulers are answered over TLS only"},
		{"--client-ca-file", c.ClientCAFile, "whoever can connect can bind pods, so that clients must show a certificate"},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s is missing: %s", required.flag, required.why))
		}
	}
	if c.MaxBodyBytes < wire.MaxPodBytes {
		errs = append(errs, fmt.Errorf("--max-request-bytes must be %d or more, to fit a pod, and is %d", wire.MaxPodBytes, c.MaxBodyBytes))
	}
	if _, err := c.announcer(nil); err != nil {
		errs = append(errs, err)
	}
	if c.QPS <= 0 || c.Burst <= 0 {
		errs = append(errs, errors.New("--kube-api-qps and --kube-api-burst must be above 0"))
	}
	return errors.Join(append(errs, c.validateTimes()...)...)
}

func (c Config) validateTimes() []error {
	var errs []error
	if c.WriteTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--write-timeout must be above 0, and is %s", c.WriteTimeout))
	}
	if c.ShutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-delay must not be negative, and is %s", c.ShutdownDelay))
	}
	if c.LeaseDuration < time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration must be 1s or more, and is %s", c.LeaseDuration))
	}
	if c.LeaseDuration <= c.RenewDeadline || c.RenewDeadline <= c.RetryPeriod*12/10 || c.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration (%s) must be above --leader-elect-renew-deadline (%s), and that above 1.2 times --leader-elect-retry-period (%s)",
			c.LeaseDuration, c.RenewDeadline, c.RetryPeriod))
	}
	return errs
}

// announcer points Service at this process while it leads; nil without one.
func (c Config) announcer(kube kubernetes.Interface) (*announce.Announcer, error) {
	return announce.New(announce.Config{
		Kube: kube, Name: v1alpha1.ExtenderName, Namespace: c.Namespace, Service: c.Service, Address: c.Advertise, Listen: c.Listen,
	}, "--listen")
}
