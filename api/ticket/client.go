// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

var (
	// ErrTaken is why a ticket is not adopted that exists: another integrator or person has
	// made it, or it has another owner.
	ErrTaken = errors.New("the ticket is somebody else's")
	// ErrDifferent is why a ticket is not adopted that exists: it is this integrator's, and
	// asks for something else. A ticket's spec never changes: Release it, and Acquire again.
	ErrDifferent = errors.New("the ticket that exists asks for something else")
	// ErrEnded ends Acquire's wait for a ticket that is gone: it was deleted, or its time or its owner
	// is over.
	ErrEnded = errors.New("the ticket was deleted, or its time or its owner is over")
	// ErrReleased is the cause of the end of a handle's context after Release.
	ErrReleased = errors.New("the ticket was released")
	// ErrAsked is the cause of the end of Handle.Work when the ticket is asked to let go of its
	// volumes.
	ErrAsked = errors.New("the ticket is asked to let go of its volumes")
	// ErrLetGo is the cause of the end of a handle's context after LetGo.
	ErrLetGo = errors.New("the ticket has let go of its volumes")
	// ErrAdopted is why a handle neither releases its ticket nor lets go of its volumes: another Acquire
	// of this integrator has adopted the ticket since, and works by it.
	ErrAdopted = errors.New("the ticket was acquired again since")
	// ErrLeft is the cause of the end of a handle's context after Leave.
	ErrLeft = errors.New("the ticket was left for the next process")
)

// How long to wait after a failure before the API server is asked again.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Client makes the tickets of an integrator. Safe for parallel use.
type Client struct {
	api    client.Interface
	holder string
}

// New makes a client for the integrator with this name. Its processes have one name, so that each finds
// the tickets of its predecessor; two integrators never have the same. The name is the field manager of
// its tickets and their label app.kubernetes.io/managed-by: it must be valid as a label.
func New(api client.Interface, integrator string) (*Client, error) {
	if wrong := validation.IsValidLabelValue(integrator); integrator == "" || integrator == v1alpha1.ManagedBy || len(wrong) > 0 {
		return nil, fmt.Errorf("ticket: %q can't be an integrator's name %s", integrator, strings.Join(wrong, ", "))
	}
	return &Client{api: api, holder: integrator}, nil
}

// Acquire makes a ticket, or adopts the integrator's earlier ticket, and returns when all of its
// volumes are attached at its node. To adopt a ticket starts its TTL again, and so does Acquire while
// it waits: when it returns, half of the TTL is left at least, unless the API server was away.
//
// When ctx ends before, the error is a *NotSatisfiedError with what the ticket waits for. The
// ticket stays and asks on, so that a process that is stopped loses nothing: Release ends it.
// A ticket that ends meanwhile is a *NotSatisfiedError of ReasonEnded, which wraps ErrEnded.
// After it has returned, ctx no longer matters.
func (c *Client) Acquire(ctx context.Context, r Request) (*Handle, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	r, session := r.clone(), string(uuid.NewUUID())
	t, err := c.ask(ctx, r, session)
	if err != nil {
		return nil, err
	}
	h := newHandle(ctx, c, r, t.UID, session)
	go h.follow(t)
	select {
	case <-h.satisfied:
		return h, nil
	case <-h.life.Done():
		return nil, &NotSatisfiedError{Name: h.name(), Reason: ReasonEnded, Message: "it has ended while it waited", Err: ErrEnded}
	case <-ctx.Done():
		h.Leave()
		return nil, h.waits(context.Cause(ctx))
	}
}

// ask makes or adopts the ticket. Temporary failures are tried again; a refusal is an error.
func (c *Client) ask(ctx context.Context, r Request, session string) (*v1alpha1.VolumeTicket, error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		t, err := c.askOnce(ctx, r, session)
		if err == nil && t != nil {
			return t, nil
		}
		if err != nil {
			last = err
		}
		if err != nil && final(err) {
			return nil, err
		}
		if !sleep(ctx, pause) {
			return nil, &NotSatisfiedError{Name: r.Namespace + "/" + r.Name, Reason: v1alpha1.ReasonPending, Message: said(last), Err: context.Cause(ctx)}
		}
	}
}

// askOnce is nil without an error if a ticket of that name is about to go, or to come.
func (c *Client) askOnce(ctx context.Context, r Request, session string) (*v1alpha1.VolumeTicket, error) {
	tickets := c.api.VolumeTickets(r.Namespace)
	t, err := tickets.Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c.make(ctx, r, session)
	case err != nil:
		return nil, fmt.Errorf("read the ticket %s/%s: %w", r.Namespace, r.Name, err)
	case t.DeletionTimestamp != nil:
		return nil, nil
	}
	if err := r.mine(c.holder, t); err != nil {
		return nil, err
	}
	adopted, err := c.adopt(ctx, r, t, session)
	if apierrors.IsInvalid(err) {
		// The API server also says that for another UID: the ticket was made again meanwhile.
		if now, read := tickets.Get(ctx, r.Name, metav1.GetOptions{}); read != nil || now.UID != t.UID {
			return nil, nil
		}
	}
	return adopted, err
}

// make makes a new ticket. If another writer was faster it is nil without an error: the next read shows
// the owner.
func (c *Client) make(ctx context.Context, r Request, session string) (*v1alpha1.VolumeTicket, error) {
	t, err := c.api.VolumeTickets(r.Namespace).Create(ctx, r.ticket(c.holder, session, time.Now()), metav1.CreateOptions{FieldManager: c.holder})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("make the ticket %s/%s: %w", r.Namespace, r.Name, err)
	}
	return t, nil
}

// adopt writes the request to an existing ticket by server-side apply, for its UID only.
func (c *Client) adopt(ctx context.Context, r Request, was *v1alpha1.VolumeTicket, session string) (*v1alpha1.VolumeTicket, error) {
	body, err := r.patch(c.holder, session, was, time.Now())
	if err != nil {
		return nil, err
	}
	t, err := c.api.VolumeTickets(r.Namespace).Patch(ctx, r.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: c.holder, Force: new(true)})
	if err != nil {
		return nil, fmt.Errorf("apply the ticket %s/%s: %w", r.Namespace, r.Name, err)
	}
	return t, nil
}

// note writes annotations of the ticket with that UID; with a version, only of that version: otherwise
// it is a conflict.
func (c *Client) note(ctx context.Context, r Request, uid types.UID, version string, annotations map[string]string) error {
	about := map[string]any{"uid": uid}
	if len(annotations) > 0 {
		about["annotations"] = annotations
	}
	if version != "" {
		about["resourceVersion"] = version
	}
	body, err := json.Marshal(map[string]any{"metadata": about})
	if err != nil {
		return err
	}
	_, err = c.api.VolumeTickets(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.holder})
	return err
}

// Release ends a ticket of this integrator without having acquired it, such as a ticket for something
// that is not needed any more. A missing ticket is no error.
func (c *Client) Release(ctx context.Context, namespace, name string) error {
	t, err := c.api.VolumeTickets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the ticket %s/%s: %w", namespace, name, err)
	}
	if err := heldBy(c.holder, t); err != nil {
		return err
	}
	err = c.delete(ctx, t, "")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the ticket %s/%s: %w", namespace, name, err)
	}
	return nil
}

// delete deletes the ticket with that UID, and no other of its name; with a version, only that version:
// otherwise it is a conflict.
func (c *Client) delete(ctx context.Context, t *v1alpha1.VolumeTicket, version string) error {
	only := &metav1.Preconditions{UID: &t.UID}
	if version != "" {
		only.ResourceVersion = &version
	}
	return c.api.VolumeTickets(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: only})
}

// final says whether an error would be the same for another try. A conflict is not: the ticket is read
// again, and either adopted or found to be foreign.
func final(err error) bool {
	return errors.Is(err, ErrTaken) || errors.Is(err, ErrDifferent) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err)
}

func said(err error) string {
	if err == nil {
		return "the ticket of that name is being deleted"
	}
	return err.Error()
}

// sleep is false when ctx ends before.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
