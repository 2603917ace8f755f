// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
)

// Cache has the facts; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Policy(name string) (*v1alpha1.AttachPolicy, bool)
}

// Writer writes a policy's status; package write implements it.
type Writer interface {
	WritePolicyStatus(context.Context, *v1alpha1.AttachPolicy) error
}

// Config is a Controller's configuration.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter rules.Arbiter
	// NetworkFences: the controller makes and reads NetworkFences.
	NetworkFences bool
	// Operations: the controller makes tickets for operations.
	Operations bool
	Now        func() time.Time
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil {
		return errors.New("policy: Cache, Write and Now are needed")
	}
	return nil
}

// Controller looks at policies. Add is safe for parallel use.
type Controller struct {
	config Config
	queue  *work.Queue[string]
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config}
	c.queue = work.New("policies", c.look)
	return c, nil
}

// Add has a policy looked at.
func (c *Controller) Add(name string) { c.queue.Add(name) }

// All has every policy looked at.
func (c *Controller) All() {
	for p := range c.config.Cache.Snapshot().Policies() {
		c.Add(p.Name)
	}
}

// Run works until ctx is done and the last write is answered.
func (c *Controller) Run(ctx context.Context) { c.queue.Run(ctx, 1) }

// again is the interval for ineffective policies: a driver or class may have come, or an earlier policy
// gone.
const again = 30 * time.Second

// look writes a new condition only.
func (c *Controller) look(ctx context.Context, name string) (time.Duration, error) {
	object, ok := c.config.Cache.Policy(name)
	if !ok {
		return 0, nil
	}
	next, changed := Judge(c.config, c.config.Cache.Snapshot(), object, c.config.Now())
	later := time.Duration(0)
	if meta.FindStatusCondition(next.Status.Conditions, v1alpha1.PolicyInEffect) != nil {
		later = again
	}
	if !changed {
		return later, nil
	}
	err := c.config.Write.WritePolicyStatus(ctx, next)
	if err != nil && !errors.Is(err, protocol.ErrStale) {
		return later, fmt.Errorf("say of AttachPolicy %s whether it is in effect: %w", name, err)
	}
	return later, err
}

// Judge returns the policy with its condition, and whether that is new. It is pure. Only the
// controller's modes in the configuration count.
func Judge(c Config, s ledger.Snapshot, object *v1alpha1.AttachPolicy, now time.Time) (next *v1alpha1.AttachPolicy, changed bool) {
	next = object.DeepCopy()
	fact := convert.Policy(object)
	say := func(kind string, is metav1.ConditionStatus, reason, message string) bool {
		if reason == "" {
			return meta.RemoveStatusCondition(&next.Status.Conditions, kind)
		}
		return meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: kind, Status: is, ObservedGeneration: object.Generation,
			Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	reason, message := idle(s, fact)
	if reason == "" && (fact.AttachFor|fact.DetachFor) != 0 && !c.Operations {
		reason, message = v1alpha1.ReasonOperationTicketsOff, "attachFor and detachFor have no effect, but the rest has: the controller runs without --operation-tickets. Install the chart with operationTickets.enabled=true"
	}
	if reason == "" && fact.NetworkFence.Class != "" && !c.NetworkFences {
		reason, message = v1alpha1.ReasonNetworkFencesOff, "forceDetach.networkFence has no effect, but the rest has: the controller runs without --network-fences. Install the chart with networkFences.enabled=true, in mode Standalone"
	}
	if reason == "" && fact.Workers > 0 && c.Arbiter.Cooperative {
		reason, message = v1alpha1.ReasonWorkersNotCounted, "workers bounds only what Moorage attaches and detaches itself, but the rest has effect: in Cooperative mode kube-controller-manager attaches and detaches for bound pods, and counts no workers. Have the driver's own limits bound it, such as --worker-threads of its external-attacher, or run Moorage in mode Standalone"
	}
	return next, say(v1alpha1.PolicyInEffect, metav1.ConditionFalse, reason, message)
}

// idle says why a policy has no effect; empty: it has.
func idle(s ledger.Snapshot, p ledger.Policy) (reason, message string) {
	if counts := s.Policy(p.Driver, p.Class); counts != nil && counts.Name != p.Name {
		return v1alpha1.ReasonShadowed, fmt.Sprintf("AttachPolicy %s is for the same driver and class, and older: it counts, and this one does not", counts.Name)
	}
	if !(ledger.VolumeID{Driver: p.Driver}).NoAttach() && !s.KnowsDriver(p.Driver) {
		return v1alpha1.ReasonDriverUnknown, fmt.Sprintf("there is no CSIDriver %s, and no node registers it: is the name right? kubectl get csidrivers", p.Driver)
	}
	if p.Class != "" && s.StorageClass(p.Class) == nil {
		return v1alpha1.ReasonClassUnknown, fmt.Sprintf("there is no StorageClass %s: is the name right? kubectl get storageclasses", p.Class)
	}
	return "", ""
}
