// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
)

// DefaultInterval is the time between rounds.
const DefaultInterval = 2 * time.Minute

// Cache has the facts; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Pod(namespace, name string) (*corev1.Pod, bool)
	Hold(ledger.VolumeID) (*v1alpha1.VolumeHold, bool)
}

// Repair hands a difference to its stage.
type Repair struct {
	Volume func(ledger.VolumeID)
	Ticket func(ledger.TicketID)
	Pod    func(uid string)
}

// Config is a Checker's configuration.
type Config struct {
	Cache    Cache
	Arbiter  rules.Arbiter
	Repair   Repair
	Now      func() time.Time
	Interval time.Duration
	// Waits: a volume waits for its turn, and its next step is not late. May be nil.
	Waits   func(ledger.VolumeID) bool
	Metrics *report.Metrics // may be nil
	Events  *report.Events  // may be nil
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Cache == nil || c.Now == nil || c.Repair.Volume == nil || c.Repair.Ticket == nil || c.Repair.Pod == nil {
		return errors.New("truth: Cache, Now and all of Repair are needed")
	}
	if c.Interval <= 0 {
		return fmt.Errorf("truth: Interval must be above 0, and is %s", c.Interval)
	}
	return nil
}

// Checker compares. Add is for parallel use.
type Checker struct {
	config Config
	queue  *work.Queue[ledger.VolumeID]

	mu     sync.Mutex
	others map[string]bool       // UIDs of others' known attachments
	before map[string]Difference // overdue in the last round
	told   map[string]bool       // reported, and lasting
}

// New returns a Checker that ignores others' existing attachments.
func New(config Config) (*Checker, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Checker{config: config, others: map[string]bool{}, before: map[string]Difference{}, told: map[string]bool{}}
	c.queue = work.New("truth", func(_ context.Context, v ledger.VolumeID) (time.Duration, error) { c.Look(v); return 0, nil })
	for v := range config.Cache.Snapshot().Volumes() {
		c.strangers(v)
	}
	return c, nil
}

// Add has a volume looked at.
func (c *Checker) Add(v ledger.VolumeID) { c.queue.Add(v) }

// Run looks at added volumes, and at intervals at everything, until ctx is done.
func (c *Checker) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.queue.Run(ctx, 1) })
	tick := time.NewTicker(c.config.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Round()
		}
	}
}

// Look reports a volume's present faults.
func (c *Checker) Look(id ledger.VolumeID) {
	s := c.config.Cache.Snapshot()
	found := AtOnce(c.config.Arbiter, s, id, c.config.Now())
	if v := s.Volume(id); v != nil {
		found = append(found, c.strangers(v)...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range found {
		c.tell(d)
	}
}

// Round looks at everything. It reports work that is overdue for the second round, and hands all overdue
// work to its stage.
func (c *Checker) Round() {
	s, now := c.config.Cache.Snapshot(), c.config.Now()
	overdue := Overdue(c.config.Arbiter, s, now)
	for p := range s.Pods() {
		overdue = append(overdue, c.pod(s, p)...)
	}
	var wrong []Difference
	for v := range s.Volumes() {
		wrong = append(wrong, AtOnce(c.config.Arbiter, s, v.ID, now)...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]Difference{}
	for _, d := range overdue {
		found[d.key()] = d
		c.repair(d)
		if _, again := c.before[d.key()]; again && !c.waits(d) {
			wrong = append(wrong, d)
		}
	}
	c.forget(wrong)
	for _, d := range wrong {
		c.tell(d)
	}
	c.count(wrong)
	c.before = found
	c.prune(s)
}

func (c *Checker) waits(d Difference) bool {
	return d.Code == StepOverdue && c.config.Waits != nil && c.config.Waits(d.Volume)
}

func (c *Checker) pod(s ledger.Snapshot, p *ledger.Pod) []Difference {
	object, ok := c.config.Cache.Pod(p.Namespace, p.Name)
	if !ok || string(object.UID) != p.UID {
		return nil
	}
	status, told := v1alpha1.VolumeStatusOf(object)
	if !told {
		return nil
	}
	return Told(s, c.config.Arbiter, p, func(volume string) (bool, bool) {
		for _, v := range status.Volumes {
			if v.Name == volume {
				return v.SafeToMount, true
			}
		}
		return false, false
	})
}

// strangers are others' attachments since New, beside Moorage in Standalone mode.
func (c *Checker) strangers(v *ledger.Volume) []Difference {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Difference
	for i := range v.OnNodes {
		for _, a := range v.OnNodes[i].Attachments() {
			if a.Ours || c.others[a.UID] {
				continue
			}
			c.others[a.UID] = true
			if !c.config.Arbiter.Cooperative {
				list = append(list, Difference{
					Code: OtherController, Volume: v.ID, At: report.OfAttachment(a),
					Message: fmt.Sprintf("somebody else has made VolumeAttachment %s of %s at %s, and in mode standalone nobody should: "+
						"does kube-controller-manager run with --controllers=*,-persistentvolume-attach-detach-controller?", a.Name, v.ID, a.Node),
				})
			}
		}
	}
	return list
}

// tell reports a difference once while it lasts. It is serial.
func (c *Checker) tell(d Difference) {
	if c.told[d.key()] {
		return
	}
	c.told[d.key()] = true
	c.config.Metrics.Difference(d.Code)
	c.config.Events.Difference(c.at(d), d.Code, d.Message)
}

// at is the event's object, with its UID if it exists.
func (c *Checker) at(d Difference) report.Object {
	if d.At.Kind == v1alpha1.KindVolumeHold {
		if hold, ok := c.config.Cache.Hold(d.Volume); ok {
			return d.At.WithUID(hold.UID)
		}
	}
	return d.At
}

// forget drops differences that are over. It is serial.
func (c *Checker) forget(wrong []Difference) {
	still := map[string]bool{}
	for _, d := range wrong {
		still[d.key()] = true
	}
	for key := range c.told {
		if !still[key] {
			delete(c.told, key)
		}
	}
}

func (c *Checker) count(wrong []Difference) {
	counts := map[string]int{}
	for _, d := range wrong {
		counts[d.Code]++
	}
	for _, code := range Codes() {
		c.config.Metrics.Differences(code, counts[code])
	}
}

func (c *Checker) repair(d Difference) {
	switch {
	case d.Pod != "":
		c.config.Repair.Pod(d.Pod)
	case d.Ticket != (ledger.TicketID{}):
		c.config.Repair.Ticket(d.Ticket)
	case !d.Volume.IsZero():
		c.config.Repair.Volume(d.Volume)
	}
}

// prune forgets deleted attachments. It is serial.
func (c *Checker) prune(s ledger.Snapshot) {
	exists := map[string]bool{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			for _, a := range v.OnNodes[i].Attachments() {
				exists[a.UID] = true
			}
		}
	}
	for uid := range c.others {
		if !exists[uid] {
			delete(c.others, uid)
		}
	}
}
