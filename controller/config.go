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

// The modes, as --mode takes them in any case.
const (
	ModeStandalone  = "standalone"
	ModeCooperative = "cooperative"
)

// Config is what the controller needs to know.
type Config struct {
	// Kubeconfig is the file with the API server and the credentials; empty inside a cluster.
	Kubeconfig string
	// Namespace is where the Lease is.
	Namespace string
	// Mode is ModeStandalone or ModeCooperative, in any case. A controller for
	// Cooperative mode goes on in Standalone mode until that is handed over.
	Mode string
	// StayAttached asks attachers to leave a volume whose detach is refused, if it is wanted again at
	// its node; moorage-attacher can. Others ignore it. Standalone only: Cooperative never asks.
	StayAttached bool
	// NoForceOnTimeout detaches no volume by force because of time, unless its AttachPolicy has a time.
	NoForceOnTimeout bool
	// RequireNodeReport lets a volume leave a node only after moorage-node has looked there and found nothing
	// of it. Standalone only.
	RequireNodeReport bool
	// NetworkFences has the storage of drivers with such an AttachPolicy cut off unreachable nodes, by
	// NetworkFences of csi-addons. Standalone only.
	NetworkFences bool
	// OperationTickets makes tickets for the operations of drivers with such an AttachPolicy
	// (attachFor, detachFor).
	OperationTickets bool
	// DisableTruthCheck compares nothing: no difference between the objects of the API is reported.
	DisableTruthCheck bool
	// TruthCheckPeriod is the time between two comparisons of everything.
	TruthCheckPeriod time.Duration
	// Listen is the host:port for /healthz, /readyz and /metrics; empty for
	// none.
	Listen string
	// SecureMetrics serves them over TLS, and /metrics to those only whom the API server
	// lets get it.
	SecureMetrics bool
	// QPS and Burst bound the writes to the API server, and apart from them the
	// reads.
	QPS   float32
	Burst int
	// Workers is how many volumes, nodes and pods are worked on at once.
	Workers int
	// WriteTimeout bounds each write.
	WriteTimeout time.Duration
	// LeaseDuration, RenewDeadline and RetryPeriod are those of the election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// SkipPolicyCheck starts whether or not a policy keeps others from writing
	// volumesAttached. For development only.
	SkipPolicyCheck bool
	// PolicyPatience is how long the controller waits at its start for that policy, and for
	// the right to read it: an installation creates them after the controller. It is not ready
	// meanwhile, and ends with an error then.
	PolicyPatience time.Duration
}

// cooperative says whether another attach/detach controller works as well.
func (c Config) cooperative() bool { return strings.EqualFold(c.Mode, ModeCooperative) }

// rules are those of the mode.
func (c Config) rules() rules.Arbiter {
	return rules.Arbiter{Cooperative: c.cooperative(), StayAttached: c.StayAttached, RequireNodeReport: c.RequireNodeReport}
}

// election is how processes compete for the Lease.
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

// connection is how the API server is reached. The executor limits the rate of
// writes.
func (c Config) connection() connect.Config {
	return connect.Config{
		Kubeconfig: c.Kubeconfig, Name: v1alpha1.ControllerName,
		QPS: c.QPS, Burst: c.Burst, WriteQPS: -1,
		WriteTimeout: c.WriteTimeout, RenewDeadline: c.RenewDeadline,
	}
}

// DefaultConfig returns the configuration that a command line starts from.
func DefaultConfig() Config {
	return Config{
		Namespace: "moorage-system", Mode: ModeCooperative, StayAttached: true,
		TruthCheckPeriod: truth.DefaultInterval,
		QPS:              400, Burst: 800, Workers: 64,
		WriteTimeout: 5 * time.Second, PolicyPatience: time.Minute,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// Validate reports every field that the controller can't work with, and which
// flag sets it.
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
