// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller/truth"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Modes of --mode, in any case.
const (
	ModeStandalone  = "standalone"
	ModeCooperative = "cooperative"
)

// Config is the controller's configuration.
type Config struct {
	// Kubeconfig is the file with the API server and the credentials; empty in a cluster.
	Kubeconfig string
	// Namespace is the Lease's.
	Namespace string
	// Mode is ModeStandalone or ModeCooperative, in any case. Standalone mode goes on until it is handed
	// over.
	Mode string
	// StayAttached asks attachers to leave a volume whose detach is refused, if its node wants it again;
	// only moorage-attacher can. Standalone only.
	StayAttached bool
	// NoForceOnTimeout forbids time as a reason for forced detaches, unless the AttachPolicy has a time.
	NoForceOnTimeout bool
	// RequireNodeReport lets a volume leave a node only after moorage-node has found nothing of it.
	// Standalone only.
	RequireNodeReport bool
	// NetworkFences cuts unreachable nodes off the storage by csi-addons' NetworkFences, for drivers with
	// such an AttachPolicy. Standalone only.
	NetworkFences bool
	// OperationTickets makes tickets for drivers' operations by AttachPolicy (attachFor, detachFor).
	OperationTickets bool
	// DisableTruthCheck reports no difference between API objects.
	DisableTruthCheck bool
	// TruthCheckPeriod is the time between full comparisons.
	TruthCheckPeriod time.Duration
	// Listen is the host:port of /healthz, /readyz and /metrics; empty: none.
	Listen string
	// SecureMetrics serves them over TLS, and /metrics only to permitted clients.
	SecureMetrics bool
	// QPS and Burst bound the writes, and separately the reads.
	QPS   float32
	Burst int
	// Workers is the volumes, nodes and pods in parallel work.
	Workers int
	// WriteTimeout bounds each write.
	WriteTimeout time.Duration
	// LeaseDuration, RenewDeadline and RetryPeriod are the election's.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// SkipPolicyCheck starts without a policy that protects volumesAttached. For development only.
	SkipPolicyCheck bool
	// PolicyPatience is the wait for that policy, and the right to read it, at the start: an installation
	// creates them later. Meanwhile the controller is not ready, and then ends with an error.
	PolicyPatience time.Duration
}

func (c Config) cooperative() bool { return strings.EqualFold(c.Mode, ModeCooperative) }

func (c Config) rules() rules.Arbiter {
	return rules.Arbiter{Cooperative: c.cooperative(), StayAttached: c.StayAttached, RequireNodeReport: c.RequireNodeReport}
}

func (c Config) election() lead.Config {
	return lead.Config{
		Namespace: c.Namespace, Name: v1alpha1.ControllerName,
		Times: lead.Times{Duration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod}, WriteTimeout: c.WriteTimeout,
		Labels: map[string]string{v1alpha1.LabelMode: strings.ToLower(c.Mode)},
	}
}

// guard keeps a second controller from writing volumesAttached.
func (c Config) guard(kube kubernetes.Interface) guard {
	return guard{kube: kube, namespace: c.Namespace, cooperative: c.cooperative(), skip: c.SkipPolicyCheck, patience: c.PolicyPatience}
}

// connection has no limit for writes: the executor has it.
func (c Config) connection() connect.Config {
	return connect.Config{
		Kubeconfig: c.Kubeconfig, Name: v1alpha1.ControllerName,
		QPS: c.QPS, Burst: c.Burst, WriteQPS: -1,
		WriteTimeout: c.WriteTimeout, RenewDeadline: c.RenewDeadline,
	}
}

// DefaultConfig returns the command line's defaults.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Mode: ModeCooperative, StayAttached: true,
		TruthCheckPeriod: truth.DefaultInterval,
		QPS:              400, Burst: 800, Workers: 64,
		WriteTimeout: 5 * time.Second, PolicyPatience: time.Minute,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// Validate reports every unusable field with its flag.
func (c Config) Validate() error {
	var errs []error
	switch strings.ToLower(c.Mode) {
	case ModeCooperative:
		if c.NetworkFences {
			errs = append(errs, errors.New("--network-fences is for --mode=standalone: beside it kube-controller-manager detaches, which knows nothing of NetworkFences"))
		}
		if c.RequireNodeReport {
			errs = append(errs, errors.New("--require-node-report is for --mode=standalone: beside it kube-controller-manager detaches, which asks no moorage-node"))
		}
	case ModeStandalone:
	default:
		errs = append(errs, fmt.Errorf("--mode must be standalone or cooperative, and is %q", c.Mode))
	}
	if c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			errs = append(errs, fmt.Errorf("--listen must be host:port, such as :8080: %w", err))
		}
	}
	if c.Namespace == "" {
		errs = append(errs, errors.New("--namespace is missing: the Lease has to be somewhere"))
	}
	if c.QPS <= 0 || c.Burst <= 0 || c.Workers <= 0 {
		errs = append(errs, errors.New("--kube-api-qps, --kube-api-burst and --workers must be above 0"))
	}
	return errors.Join(append(errs, c.validateTimes()...)...)
}

func (c Config) validateTimes() []error {
	var errs []error
	if c.TruthCheckPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--truth-check-period must be above 0, and is %s; --disable-truth-check switches the check off", c.TruthCheckPeriod))
	}
	if c.WriteTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--write-timeout must be above 0, and is %s", c.WriteTimeout))
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
