// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/networkfence"
)

// Pauses between looks: the longest, the shortest with changes, and after a failed write.
const (
	longestPause  = 30 * time.Second
	shortestPause = 100 * time.Millisecond
	firstRetry    = time.Second
	longestRetry  = 30 * time.Second
)

// Cache has the facts; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Node(name ledger.NodeName) (*corev1.Node, bool)
	Saw(object runtime.Object)
	Apply(e ledger.Event)
	Subscribe(f func(ledger.Touched))
}

// Events tells people; package report implements it.
type Events interface {
	NetworkFence(node ledger.NodeName, driver, text string)
	NetworkFenceHeld(node ledger.NodeName, driver, why string)
}

// Config is a Controller's configuration.
type Config struct {
	Watcher *Watcher
	Cache   Cache
	Kube    kubernetes.Interface
	Moorage client.Interface
	Dynamic dynamic.Interface
	// Turn waits for the next permitted request, Timeout bounds each.
	Turn    func(context.Context) error
	Timeout time.Duration
	Now     func() time.Time
	Events  Events
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Watcher == nil || c.Cache == nil || c.Kube == nil || c.Moorage == nil || c.Dynamic == nil || c.Turn == nil || c.Timeout <= 0 || c.Now == nil || c.Events == nil {
		return errors.New("networkfence: Watcher, Cache, the clients, Turn, Timeout, Now and Events are needed")
	}
	return nil
}

// Controller makes and ends NetworkFences while it runs.
type Controller struct {
	config Config
	due    chan struct{}
	told   map[networkfence.Trouble]bool
	tried  map[key]attempts
	// believed: the Nodes' statements were compared with the NetworkFences.
	believed   bool
	complained time.Time
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, due: make(chan struct{}, 1), told: map[networkfence.Trouble]bool{}, tried: map[key]attempts{}}
	config.Watcher.Subscribe(c.kick)
	config.Cache.Subscribe(func(t ledger.Touched) {
		if len(t.Nodes) > 0 || len(t.Policies) > 0 {
			c.kick()
		}
	})
	return c, nil
}

func (c *Controller) kick() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// Run works until ctx is done and the last write is answered.
func (c *Controller) Run(ctx context.Context) {
	for c.wait(ctx, c.look(ctx)) {
	}
}

// wait lasts at most a pause, at least the shortest. False: ctx is done.
func (c *Controller) wait(ctx context.Context, pause time.Duration) bool {
	longest, least := time.NewTimer(max(pause, shortestPause)), time.NewTimer(shortestPause)
	defer longest.Stop()
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-longest.C:
		return true
	case <-c.due:
	}
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
		return true
	}
}

type key struct {
	do     networkfence.Verb
	node   ledger.NodeName
	driver string
}

type attempts struct {
	pause  time.Duration
	before time.Time
}

// look decides and writes once. It returns the longest time to the next.
func (c *Controller) look(ctx context.Context) time.Duration {
	if !c.config.Watcher.synced() {
		c.complain(ctx)
		return firstRetry
	}
	s, now := c.config.Cache.Snapshot(), c.config.Now()
	state := c.config.Watcher.state(s, now)
	state.Addresses = c.addresses(s)
	actions, troubles, again := state.Decide()
	c.tell(troubles)
	if again == 0 || again > longestPause {
		again = longestPause
	}
	taken := true // all other conditions are removed
	due := map[key]bool{}
	for _, a := range actions {
		k := key{a.Do, a.Node, a.Driver}
		due[k] = true
		if ctx.Err() != nil {
			return longestPause
		}
		if left := c.tried[k].before.Sub(now); left > 0 {
			again, taken = min(again, left), taken && a.Do != networkfence.Unmark
			continue
		}
		if err := c.try(ctx, k, a); err != nil {
			again, taken = min(again, c.tried[k].pause), taken && a.Do != networkfence.Unmark
		}
	}
	for k, t := range c.tried {
		if !due[k] && !now.Before(t.before) {
			delete(c.tried, k)
		}
	}
	if taken && !c.believed {
		c.believed = true
		c.config.Cache.Apply(ledger.CutOffBelieved{Believed: true})
	}
	return again
}

// try makes a write, and notes when it may be repeated, also after a success: others may undo it again and
// again.
func (c *Controller) try(ctx context.Context, k key, a networkfence.Action) error {
	err := c.do(ctx, a)
	pause := firstRetry
	switch logger := klog.FromContext(ctx); {
	case err == nil:
		logger.V(1).Info("A step of a NetworkFence is written", "step", a.Do.String(), "node", a.Node, "driver", a.Driver, "networkFence", a.Name)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		pause = shortestPause // decided on old facts
	default:
		pause = min(max(2*c.tried[k].pause, firstRetry), longestRetry)
		logger.Error(err, "A step of a NetworkFence failed; trying again", "step", a.Do.String(), "node", a.Node, "driver", a.Driver, "networkFence", a.Name, "after", pause)
	}
	c.tried[k] = attempts{pause, c.config.Now().Add(pause)}
	return err
}

// complain reports that csi-addons' objects can't be read: then nothing is decided.
func (c *Controller) complain(ctx context.Context) {
	if now := c.config.Now(); now.Sub(c.complained) >= complainEvery {
		if !c.complained.IsZero() {
			klog.FromContext(ctx).Error(errUnread, "No NetworkFence is made, and none counts")
		}
		c.complained = now
	}
}

const complainEvery = time.Minute

var errUnread = errors.New("NetworkFences, NetworkFenceClasses and CSIAddonsNodes (csiaddons.openshift.io/v1alpha1) can't be read: are csi-addons' definitions installed, and is the chart's networkFences.enabled set?")

func (c *Controller) addresses(s ledger.Snapshot) map[ledger.NodeName][]netip.Addr {
	all := map[ledger.NodeName][]netip.Addr{}
	for n := range s.Nodes() {
		object, found := c.config.Cache.Node(n.Name)
		if !found {
			continue
		}
		for _, a := range object.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				all[n.Name] = append(all[n.Name], ip)
			}
		}
	}
	return all
}

func (c *Controller) tell(troubles []networkfence.Trouble) {
	now := map[networkfence.Trouble]bool{}
	for _, t := range troubles {
		now[t] = true
		if !c.told[t] {
			c.config.Events.NetworkFenceHeld(t.Node, t.Driver, t.Message)
		}
	}
	c.told = now
}

func (c *Controller) do(ctx context.Context, a networkfence.Action) error {
	if err := c.config.Turn(ctx); err != nil {
		return fmt.Errorf("waiting for a turn: %w", err)
	}
	term := ctx
	// A sent request is not given up at the term's end: it might be carried out later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.Timeout)
	defer cancel()
	fences := c.config.Dynamic.Resource(networkfence.GroupVersion.WithResource("networkfences"))
	switch a.Do {
	case networkfence.Make:
		_, err := fences.Create(ctx, a.Object(), metav1.CreateOptions{})
		if err == nil {
			c.config.Events.NetworkFence(a.Node, a.Driver, "the storage is asked to cut the machine off (NetworkFence "+a.Name+"): it can't be reached")
		}
		return err
	case networkfence.Delete:
		return fences.Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(a.UID)), ResourceVersion: ptr.To(a.Version)}})
	case networkfence.Mark, networkfence.Unmark:
		return c.mark(ctx, a)
	case networkfence.AskLook:
		return c.askLook(ctx, a)
	case networkfence.Confirm, networkfence.Doubt, networkfence.End, networkfence.NoteLook, networkfence.Unfence:
		return c.change(term, ctx, a)
	}
	return nil
}

// change changes a NetworkFence, unless the term ends during its reads.
func (c *Controller) change(term, ctx context.Context, a networkfence.Action) error {
	var is ledger.NodeState
	if a.Do == networkfence.Confirm || a.Do == networkfence.Doubt {
		node, err := c.config.Kube.CoreV1().Nodes().Get(ctx, string(a.Node), metav1.GetOptions{})
		if err = cmp.Or(err, term.Err()); err != nil {
			return err
		}
		c.config.Cache.Saw(node)
		is = convert.Node(node)
	}
	patch, err := json.Marshal(a.Patch(is))
	if err != nil {
		return fmt.Errorf("encode a patch of NetworkFence %s: %w", a.Name, err)
	}
	_, err = c.config.Dynamic.Resource(networkfence.GroupVersion.WithResource("networkfences")).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil && a.Do == networkfence.Unfence {
		c.config.Events.NetworkFence(a.Node, a.Driver, "the storage is asked to let the machine in again (NetworkFence "+a.Name+")")
	}
	return err
}

// mark sets or removes the Node's condition at the version decided on.
func (c *Controller) mark(ctx context.Context, a networkfence.Action) error {
	condition := map[string]any{"type": a.ConditionType(), "$patch": "delete"}
	if a.Do == networkfence.Mark {
		condition = a.Condition(metav1.NewTime(c.config.Now()))
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.Version},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return fmt.Errorf("encode a patch of Node %s: %w", a.Node, err)
	}
	node, err := c.config.Kube.CoreV1().Nodes().Patch(ctx, string(a.Node), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	if a.Do == networkfence.Mark {
		c.config.Events.NetworkFence(a.Node, a.Driver, "the storage has cut the machine off (NetworkFence "+a.Name+"): its volumes may leave it")
	}
	c.config.Cache.Saw(node)
	return nil
}

func (c *Controller) askLook(ctx context.Context, a networkfence.Action) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.Version},
		"spec":     map[string]any{"look": a.Machine.Look},
	})
	if err != nil {
		return fmt.Errorf("encode a patch of NodeMountReport %s: %w", a.Node, err)
	}
	word, err := c.config.Moorage.NodeMountReports().Patch(ctx, string(a.Node), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	c.config.Cache.Saw(word)
	return nil
}
