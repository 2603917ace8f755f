// SPDX-License-Identifier: Apache-2.0

// Package tickettest is a cluster for the tests of integrators that use package ticket: it
// keeps VolumeTickets in memory, and the test is its controller. What it does as the API server
// does: server-side apply of labels that belong to another manager, preconditions, watches, and
// nothing once a request's context has ended. It has no admission and no other kinds.
package tickettest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Cluster is an API server that has VolumeTickets. Safe for parallel use.
type Cluster struct {
	client.Interface // nil: there is no other kind

	mu      sync.Mutex
	tickets map[types.NamespacedName]*v1alpha1.VolumeTicket
	version int
	history []event
	changed chan struct{} // closed and made anew with each change
	failing error
	satisfy bool
}

// event is a change, as watches see it.
type event struct {
	version int
	watch.Event
}

var _ client.Interface = &Cluster{}

// New makes a cluster in which tickets wait until the test says otherwise.
func New() *Cluster {
	return &Cluster{tickets: map[types.NamespacedName]*v1alpha1.VolumeTicket{}, changed: make(chan struct{})}
}

// SatisfyAll has each ticket satisfied as soon as it is made, and those that there are.
func (c *Cluster) SatisfyAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.satisfy = true
	for _, t := range c.tickets {
		c.put(satisfied(t))
	}
}

// Grant has a ticket that waits granted, with its volumes not attached yet.
func (c *Cluster) Grant(namespace, name string) {
	c.change(namespace, name, granted)
}

// Satisfy has a ticket granted, and its volumes attached. It is not asked to let go of them.
func (c *Cluster) Satisfy(namespace, name string) {
	c.change(namespace, name, satisfied)
}

// Wait has a ticket wait for a reason; one that was satisfied has lost its volumes, and is not asked
// to let go of them any more.
func (c *Cluster) Wait(namespace, name, reason, message string) {
	c.change(namespace, name, func(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
		out := notAsked(t)
		say(out, v1alpha1.TicketGranted, metav1.ConditionUnknown, reason, message)
		if meta.FindStatusCondition(out.Status.Conditions, v1alpha1.TicketSatisfied) != nil {
			say(out, v1alpha1.TicketSatisfied, metav1.ConditionFalse, reason, message)
		}
		return out
	})
}

// Yield has a ticket that is satisfied be asked to let go of its volumes, at a time; an empty
// message asks it no longer.
func (c *Cluster) Yield(namespace, name, message string, at time.Time) {
	c.change(namespace, name, func(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
		out := notAsked(t)
		if message != "" {
			meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{
				Type: v1alpha1.TicketYielding, Status: metav1.ConditionTrue, Reason: "Outranked", Message: message, LastTransitionTime: metav1.NewTime(at),
			})
		}
		return out
	})
}

// End deletes a ticket, as the controller does when its time is over.
func (c *Cluster) End(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(types.NamespacedName{Namespace: namespace, Name: name})
}

// Drain does what the controller does when a node is cordoned: tickets there that say onDrain: End are
// deleted, and those that say Move are asked to let go of their volumes, at a time; Moved has them
// elsewhere.
func (c *Cluster) Drain(node, message string, at time.Time) {
	for key, then := range c.at(node) {
		switch then {
		case v1alpha1.OnDrainEnd:
			c.End(key.Namespace, key.Name)
		case v1alpha1.OnDrainMove:
			c.Yield(key.Namespace, key.Name, message, at)
		case v1alpha1.OnDrainStay, "":
		}
	}
}

// at are the tickets at a node, with what they say of a drain.
func (c *Cluster) at(node string) map[types.NamespacedName]v1alpha1.OnDrain {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := map[types.NamespacedName]v1alpha1.OnDrain{}
	for key, t := range c.tickets {
		if t.Node() == node {
			list[key] = t.Spec.OnDrain
		}
	}
	return list
}

// Moved has a ticket that left its node to the controller have its volumes at another one, as Satisfy
// does. A handle that has not let go before is over.
func (c *Cluster) Moved(namespace, name, node string) {
	c.change(namespace, name, func(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
		out := t.DeepCopy()
		out.Status.NodeName = node
		return satisfied(out)
	})
}

// Fail has every request fail with an error from now on, as where the API server is away; nil:
// no more. Watches break off, and no new one begins.
func (c *Cluster) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err
	close(c.changed)
	c.changed = make(chan struct{})
}

// Ticket is a ticket as it is now, nil when there is none.
func (c *Cluster) Ticket(namespace, name string) *v1alpha1.VolumeTicket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tickets[types.NamespacedName{Namespace: namespace, Name: name}]; t != nil {
		return t.DeepCopy()
	}
	return nil
}

// Await returns as soon as a ticket is as is asks; nil is a ticket that does not exist. It
// reports false when ctx ends before.
func (c *Cluster) Await(ctx context.Context, namespace, name string, is func(*v1alpha1.VolumeTicket) bool) bool {
	for {
		c.mu.Lock()
		t, changed := c.tickets[types.NamespacedName{Namespace: namespace, Name: name}], c.changed
		c.mu.Unlock()
		if is(t) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// VolumeTickets are those of a namespace, or all with an empty one.
func (c *Cluster) VolumeTickets(namespace string) client.VolumeTicketInterface {
	return &tickets{c, namespace}
}

// ChosenNode is the node that is chosen for tickets that name none.
const ChosenNode = "worker-1"

func granted(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
	out := notAsked(t)
	if out.Spec.Wherever && out.Status.NodeName == "" {
		out.Status.NodeName = ChosenNode
	}
	say(out, v1alpha1.TicketGranted, metav1.ConditionTrue, v1alpha1.ReasonGranted, "")
	return out
}

// notAsked is a copy of a ticket that is not asked to let go of its volumes: with the condition goes
// what an answer to it means.
func notAsked(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
	out := t.DeepCopy()
	meta.RemoveStatusCondition(&out.Status.Conditions, v1alpha1.TicketYielding)
	return out
}

func satisfied(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
	out := granted(t)
	say(out, v1alpha1.TicketSatisfied, metav1.ConditionTrue, v1alpha1.ReasonSatisfied, "")
	return out
}

func say(t *v1alpha1.VolumeTicket, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}

// change panics where there is no such ticket: a test that steers one that nobody made is
// wrong.
func (c *Cluster) change(namespace, name string, next func(*v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tickets[types.NamespacedName{Namespace: namespace, Name: name}]
	if t == nil {
		panic(fmt.Sprintf("tickettest: there is no ticket %s/%s", namespace, name))
	}
	c.put(next(t))
}

// put keeps a ticket that no one else has, and tells watches. The lock is held, as below.
func (c *Cluster) put(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	old, kind := c.tickets[key], watch.Modified
	if old == nil {
		kind = watch.Added
	} else if equality.Semantic.DeepEqual(old, t) {
		return old
	}
	c.version++
	t.ResourceVersion = strconv.Itoa(c.version)
	c.tickets[key] = t
	c.tell(kind, t)
	return t
}

func (c *Cluster) drop(key types.NamespacedName) {
	t := c.tickets[key]
	if t == nil {
		return
	}
	delete(c.tickets, key)
	c.version++
	last := t.DeepCopy()
	last.ResourceVersion = strconv.Itoa(c.version)
	c.tell(watch.Deleted, last)
}

func (c *Cluster) tell(kind watch.EventType, t *v1alpha1.VolumeTicket) {
	c.history = append(c.history, event{c.version, watch.Event{Type: kind, Object: t}})
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cluster) make(t *v1alpha1.VolumeTicket) *v1alpha1.VolumeTicket {
	t.UID = types.UID(fmt.Sprintf("uid-%d", c.version+1))
	t.CreationTimestamp = metav1.NewTime(time.Unix(int64(c.version+1), 0))
	t.Status = v1alpha1.VolumeTicketStatus{}
	t = c.put(t)
	if c.satisfy {
		t = c.put(satisfied(t))
	}
	return t
}

// tickets is the client of a namespace.
type tickets struct {
	cluster   *Cluster
	namespace string
}

// away is why a request is not answered: the test says so, or its context has ended.
func (c *Cluster) away(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.failing
}

// do runs a request, and copies what it answers.
func (k *tickets) do(ctx context.Context, request func(*Cluster) (*v1alpha1.VolumeTicket, error)) (*v1alpha1.VolumeTicket, error) {
	k.cluster.mu.Lock()
	defer k.cluster.mu.Unlock()
	if err := k.cluster.away(ctx); err != nil {
		return nil, err
	}
	t, err := request(k.cluster)
	if t == nil || err != nil {
		return nil, err
	}
	return t.DeepCopy(), nil
}

func (k *tickets) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: k.namespace, Name: name}
}

var resource = v1alpha1.Resource(v1alpha1.ResourceVolumeTickets)

func (k *tickets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*v1alpha1.VolumeTicket, error) {
	return k.do(ctx, func(c *Cluster) (*v1alpha1.VolumeTicket, error) {
		if t := c.tickets[k.key(name)]; t != nil {
			return t, nil
		}
		return nil, apierrors.NewNotFound(resource, name)
	})
}

func (k *tickets) Create(ctx context.Context, t *v1alpha1.VolumeTicket, _ metav1.CreateOptions) (*v1alpha1.VolumeTicket, error) {
	return k.do(ctx, func(c *Cluster) (*v1alpha1.VolumeTicket, error) {
		if c.tickets[k.key(t.Name)] != nil {
			return nil, apierrors.NewAlreadyExists(resource, t.Name)
		}
		next := t.DeepCopy()
		next.Namespace = k.namespace
		return c.make(next), nil
	})
}

func (k *tickets) Update(ctx context.Context, t *v1alpha1.VolumeTicket, _ metav1.UpdateOptions) (*v1alpha1.VolumeTicket, error) {
	return k.update(ctx, t, func(old, next *v1alpha1.VolumeTicket) { next.Status = old.Status })
}

func (k *tickets) UpdateStatus(ctx context.Context, t *v1alpha1.VolumeTicket, _ metav1.UpdateOptions) (*v1alpha1.VolumeTicket, error) {
	return k.update(ctx, t, func(old, next *v1alpha1.VolumeTicket) {
		status := next.Status
		*next = *old.DeepCopy()
		next.Status = status
	})
}

func (k *tickets) update(ctx context.Context, t *v1alpha1.VolumeTicket, keep func(old, next *v1alpha1.VolumeTicket)) (*v1alpha1.VolumeTicket, error) {
	return k.do(ctx, func(c *Cluster) (*v1alpha1.VolumeTicket, error) {
		old := c.tickets[k.key(t.Name)]
		switch {
		case old == nil:
			return nil, apierrors.NewNotFound(resource, t.Name)
		case t.ResourceVersion != "" && t.ResourceVersion != old.ResourceVersion, t.UID != "" && t.UID != old.UID:
			return nil, apierrors.NewConflict(resource, t.Name, fmt.Errorf("it is at version %s", old.ResourceVersion))
		}
		next := t.DeepCopy()
		next.Namespace = k.namespace
		keep(old, next)
		next.UID, next.ResourceVersion, next.CreationTimestamp = old.UID, old.ResourceVersion, old.CreationTimestamp
		return k.unchanged(old, next)
	})
}

// unchanged keeps a ticket whose spec is the one before.
func (k *tickets) unchanged(old, next *v1alpha1.VolumeTicket) (*v1alpha1.VolumeTicket, error) {
	if !equality.Semantic.DeepEqual(old.Spec, next.Spec) {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket).GroupKind(), next.Name, nil)
	}
	return k.cluster.put(next), nil
}

func (k *tickets) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := k.do(ctx, func(c *Cluster) (*v1alpha1.VolumeTicket, error) {
		t := c.tickets[k.key(name)]
		switch p := opts.Preconditions; {
		case t == nil:
			return nil, apierrors.NewNotFound(resource, name)
		case p != nil && p.UID != nil && *p.UID != t.UID:
			return nil, apierrors.NewConflict(resource, name, fmt.Errorf("its UID is %s", t.UID))
		case p != nil && p.ResourceVersion != nil && *p.ResourceVersion != t.ResourceVersion:
			return nil, apierrors.NewConflict(resource, name, fmt.Errorf("it is at version %s", t.ResourceVersion))
		}
		c.drop(k.key(name))
		return nil, nil
	})
	return err
}

func (k *tickets) List(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.VolumeTicketList, error) {
	k.cluster.mu.Lock()
	defer k.cluster.mu.Unlock()
	if err := k.cluster.away(ctx); err != nil {
		return nil, err
	}
	out := &v1alpha1.VolumeTicketList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(k.cluster.version)}}
	for _, t := range k.cluster.tickets {
		if k.selects(opts, t) {
			out.Items = append(out.Items, *t.DeepCopy())
		}
	}
	slices.SortFunc(out.Items, func(a, b v1alpha1.VolumeTicket) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, nil
}

// selects knows the field selector by name.
func (k *tickets) selects(opts metav1.ListOptions, t *v1alpha1.VolumeTicket) bool {
	name, by := strings.CutPrefix(opts.FieldSelector, metav1.ObjectNameField+"=")
	return (k.namespace == "" || t.Namespace == k.namespace) && (!by || t.Name == name)
}

// Patch takes server-side apply and merge patches.
func (k *tickets) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, _ ...string) (*v1alpha1.VolumeTicket, error) {
	var said v1alpha1.VolumeTicket
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if kind != types.ApplyPatchType && kind != types.MergePatchType {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", resource, name, "", 0, false)
	}
	said.Name = name
	return k.do(ctx, func(c *Cluster) (*v1alpha1.VolumeTicket, error) {
		old := c.tickets[k.key(name)]
		switch {
		case old == nil && kind == types.ApplyPatchType && said.UID == "":
			said.Namespace = k.namespace
			return c.make(&said), nil
		case old == nil && kind == types.ApplyPatchType, old != nil && said.UID != "" && said.UID != old.UID:
			return nil, apierrors.NewConflict(resource, name, fmt.Errorf("uid mismatch"))
		case old != nil && said.ResourceVersion != "" && said.ResourceVersion != old.ResourceVersion:
			return nil, apierrors.NewConflict(resource, name, fmt.Errorf("it is at version %s", old.ResourceVersion))
		case old == nil:
			return nil, apierrors.NewNotFound(resource, name)
		}
		forced := kind == types.MergePatchType || opts.Force != nil && *opts.Force
		return k.merge(old, &said, forced)
	})
}

// merge puts what is said of a ticket into it. What is said otherwise is somebody else's, and
// a conflict unless it is forced.
func (k *tickets) merge(old, said *v1alpha1.VolumeTicket, forced bool) (*v1alpha1.VolumeTicket, error) {
	next := old.DeepCopy()
	for _, m := range []struct {
		is  *map[string]string
		say map[string]string
	}{{&next.Labels, said.Labels}, {&next.Annotations, said.Annotations}} {
		for key, value := range m.say {
			if was, ok := (*m.is)[key]; ok && was != value && !forced {
				return nil, apierrors.NewConflict(resource, old.Name, fmt.Errorf("%s is another manager's", key))
			}
		}
		if *m.is == nil {
			*m.is = map[string]string{}
		}
		maps.Copy(*m.is, m.say)
	}
	for _, o := range said.OwnerReferences {
		if !slices.ContainsFunc(next.OwnerReferences, func(n metav1.OwnerReference) bool { return n.UID == o.UID }) {
			next.OwnerReferences = append(next.OwnerReferences, o)
		}
	}
	if len(said.Spec.Volumes) > 0 {
		next.Spec = said.Spec
	}
	return k.unchanged(old, next)
}
