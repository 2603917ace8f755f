// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config configures an attacher.
type Config struct {
	// Kubeconfig is a file; empty means the pod's service account.
	Kubeconfig string
	// Address is the driver's socket.
	Address string
	// QPS and Burst limit the requests to the API server; QPS 0: no limit.
	QPS   float64
	Burst int

	// Timeout is for one call to the driver or one write.
	Timeout time.Duration
	// RetryFirst and RetryMax are the first and the longest wait after an attachment's failures.
	RetryFirst, RetryMax time.Duration
	// Workers is the maximum of parallel calls to the driver.
	Workers int
	// ReconcileSync is the time between comparisons with the driver's list, PageSize the volumes per
	// request (0: driver's choice).
	ReconcileSync time.Duration
	PageSize      int
	// DefaultFSType is for volumes without a filesystem type.
	DefaultFSType string
	// MaxGRPCLog cuts logged driver answers; zero or less: no cut.
	MaxGRPCLog int

	Election Election

	// Listen is the host:port of metrics and health; empty: none.
	Listen, MetricsPath string
}

// Election is how several attachers of a driver choose one.
type Election struct {
	Enabled bool
	// Namespace of the Lease; empty: the pod's own.
	Namespace                                 string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Labels are the Lease's.
	Labels map[string]string
}

// defaultWorkers is an upper limit: the driver decides, see decide.Limit.
const defaultWorkers = 1000

// DefaultConfig returns external-attacher's defaults, except for its fixed rates.
func DefaultConfig() Config {
	return Config{
		Address: "/run/csi/socket",
		Timeout: 15 * time.Second, RetryFirst: time.Second, RetryMax: 5 * time.Minute,
		Workers: defaultWorkers, ReconcileSync: time.Minute, MaxGRPCLog: -1,
		Election:    Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second},
		MetricsPath: "/metrics",
	}
}

// Validate reports every unusable field with its flag.
func (c Config) Validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	require(c.Address != "", "--csi-address is empty: name the driver's socket")
	require(c.QPS >= 0 && c.Burst >= 0, "--kube-api-qps and --kube-api-burst must not be negative")
	require(c.Timeout > 0, "--timeout must be more than 0 s, and is %s", c.Timeout)
	require(c.RetryFirst > 0, "--retry-interval-start must be more than 0 s, and is %s", c.RetryFirst)
	require(c.RetryMax >= c.RetryFirst, "--retry-interval-max=%s is less than --retry-interval-start=%s", c.RetryMax, c.RetryFirst)
	require(c.Workers > 0, "--worker-threads must be at least 1, and is %d", c.Workers)
	require(c.ReconcileSync > 0, "--reconcile-sync must be more than 0 s, and is %s", c.ReconcileSync)
	require(c.PageSize >= 0 && c.PageSize <= math.MaxInt32, "--max-entries must be between 0 and %d, and is %d", math.MaxInt32, c.PageSize)
	require(c.Listen == "" || c.MetricsPath != "", "--metrics-path is empty")
	if e := c.Election; e.Enabled {
		require(e.LeaseDuration > e.RenewDeadline && e.RenewDeadline > e.RetryPeriod && e.RetryPeriod > 0,
			"the leader election's lease duration must be longer than its renew deadline, and that longer than its retry period; they are %s, %s, %s",
			e.LeaseDuration, e.RenewDeadline, e.RetryPeriod)
	}
	return errors.Join(errs...)
}
