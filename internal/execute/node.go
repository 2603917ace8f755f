// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// nodeChange is a Report or Unreport that waits for a write of its node.
type nodeChange struct {
	step arbiter.Step
	done chan error
}

func (c *nodeChange) result() chan error { return c.done }

// report puts a volume into volumesAttached, once its attachment is proved to
// be there to stay.
func (e *Executor) report(ctx context.Context, step arbiter.Step) error {
	if step.Attachment != "" && !e.confirmed.has(step.UID) {
		if err := e.confirm(ctx, step); err != nil {
			return err
		}
	}
	return e.changeNode(ctx, step)
}

func (e *Executor) changeNode(ctx context.Context, step arbiter.Step) error {
	return e.nodes.add(ctx, step.Node, &nodeChange{step, make(chan error, 1)}, e.writeNode)
}

// writeNode writes all changes of a batch that fit, with one patch.
func (e *Executor) writeNode(ctx context.Context, name ledger.NodeName, batch []*nodeChange) {
	node, known := e.config.Observer.Node(name)
	if !known {
		e.withoutNode(ctx, name, batch)
		return
	}
	var fitting []*nodeChange
	var steps []arbiter.Step
	for _, c := range batch {
		if !Fits(node, c.step) {
			c.done <- ErrStale
			continue
		}
		fitting, steps = append(fitting, c), append(steps, c.step)
	}
	if len(fitting) == 0 {
		return
	}
	err := e.patchNode(ctx, node, steps)
	for _, c := range fitting {
		if err == nil && c.step.Do == arbiter.Unreport {
			e.unreported(c.step)
		}
		c.done <- err
	}
}

// patchNode writes and takes the answer in. The Node comes first, what it
// proves after.
func (e *Executor) patchNode(ctx context.Context, node *corev1.Node, steps []arbiter.Step) error {
	patch, err := json.Marshal(NodePatch(node, steps))
	if err != nil {
		return fmt.Errorf("encode the patch of node %s: %w", node.Name, err)
	}
	written, err := call(ctx, e, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(written)
		return nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return e.rereadNode(ctx, node.Name)
	case mayFollow(err) && reports(steps):
		// Nothing else is written there until it is known whether this was:
		// an addition that comes late, to a list that meanwhile is again as it
		// was, would name a volume whose attachment has gone.
		if err := e.outlast(ctx); err != nil {
			return err
		}
		return e.rereadNode(ctx, node.Name)
	}
	return fmt.Errorf("write volumesAttached of node %s: %w", node.Name, err)
}

// reports says whether a patch puts anything into volumesAttached.
func reports(steps []arbiter.Step) bool {
	return slices.ContainsFunc(steps, func(s arbiter.Step) bool { return s.Do == arbiter.Report })
}

// rereadNode takes in the Node as it is now.
func (e *Executor) rereadNode(ctx context.Context, name string) error {
	node, err := call(ctx, e, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(node)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read node %s again: %w", name, err)
	}
	return fmt.Errorf("%w: node %s is not as it was", ErrStale, name)
}

// withoutNode settles a batch for a Node that is not known: a volume is out of
// its status when it does not exist.
func (e *Executor) withoutNode(ctx context.Context, name ledger.NodeName, batch []*nodeChange) {
	node, err := call(ctx, e, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Get(ctx, string(name), metav1.GetOptions{})
	})
	gone := apierrors.IsNotFound(err)
	switch {
	case err == nil:
		e.config.Observer.Saw(node)
		err = ErrStale
	case !gone:
		err = fmt.Errorf("read node %s: %w", name, err)
	}
	for _, c := range batch {
		switch {
		case gone && c.step.Do == arbiter.Unreport && c.step.NodeUID == "":
			e.unreported(c.step)
			c.done <- nil
		case gone:
			c.done <- fmt.Errorf("%w: node %s is gone", ErrStale, name)
		default:
			c.done <- err
		}
	}
}

func (e *Executor) unreported(step arbiter.Step) {
	e.config.Observer.Apply(ledger.Unreported{
		Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version, Forced: step.Rule != "",
	})
}
