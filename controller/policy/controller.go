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
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/internal/work"
)

// Cache is what is known: package observe has it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Policy(name string) (*v1alpha1.AttachPolicy, bool)
}

// Writer is how a policy's status is written: package execute has it.
type Writer interface {
	WritePolicyStatus(context.Context, *v1alpha1.AttachPolicy) error
}

// Config is what a Controller works with.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter arbiter.Arbiter
	Now     func() time.Time
}

// Validate says what is missing.
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

// New returns a Controller that is ready to Run.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config}
	c.queue = work.New("policies", func(ctx context.Context, name string) (time.Duration, error) { return 0, c.look(ctx, name) })
	return c, nil
}

// Add has the policy of a name looked at.
func (c *Controller) Add(name string) { c.queue.Add(name) }

// All has every policy looked at.
func (c *Controller) All() {
	for p := range c.config.Cache.Snapshot().Policies() {
		c.Add(p.Name)
	}
}

// Run works until ctx is done, and returns when the last write is answered.
func (c *Controller) Run(ctx context.Context) { c.queue.Run(ctx, 1) }

// look writes what is to be said of a policy, unless it says so already.
func (c *Controller) look(ctx context.Context, name string) error {
	object, ok := c.config.Cache.Policy(name)
	if !ok {
		return nil
	}
	next, changed := Judge(c.config.Arbiter, object, c.config.Now())
	if !changed {
		return nil
	}
	err := c.config.Write.WritePolicyStatus(ctx, next)
	if err != nil && !errors.Is(err, execute.ErrStale) {
		return fmt.Errorf("say of AttachPolicy %s whether it is refused: %w", name, err)
	}
	return err
}

// Judge returns the policy with what is to be said of it, and whether that is new.
// It is pure.
func Judge(a arbiter.Arbiter, object *v1alpha1.AttachPolicy, now time.Time) (next *v1alpha1.AttachPolicy, changed bool) {
	next = object.DeepCopy()
	verdict := a.Accepts(translate.Policy(object))
	if verdict.Allowed() {
		return next, meta.RemoveStatusCondition(&next.Status.Conditions, v1alpha1.PolicyRefused)
	}
	return next, meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: v1alpha1.PolicyRefused, Status: metav1.ConditionTrue, ObservedGeneration: object.Generation,
		Reason: string(verdict.First().Code), Message: verdict.First().Message(), LastTransitionTime: metav1.NewTime(now),
	})
}
