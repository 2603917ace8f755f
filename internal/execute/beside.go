// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// What is done beside kube-controller-manager's attach/detach controller.

// proveAbsent reads a Node, consistently, and proves that a volume is neither
// in use there nor reported as attached. It writes nothing: volumesAttached is
// another's.
func (e *Executor) proveAbsent(ctx context.Context, step arbiter.Step) error {
	node, err := call(ctx, e, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Get(ctx, string(step.Node), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err) && step.NodeUID == "":
		e.unreported(step)
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: node %s is gone", ErrStale, step.Node)
	case err != nil:
		return fmt.Errorf("read node %s: %w", step.Node, err)
	}
	e.config.Observer.Saw(node)
	if !Absent(node, step) {
		return fmt.Errorf("%w: node %s is not as it was", ErrStale, step.Node)
	}
	e.unreported(step)
	return nil
}

// Absent says whether a Node proves a step's volume absent: volumesAttached does
// not name it, nor does volumesInUse, unless a rule of force holds for this
// version of the Node. It is pure.
func Absent(node *corev1.Node, step arbiter.Step) bool {
	name := translate.UniqueName(step.Volume)
	if string(node.UID) != step.NodeUID ||
		slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == name }) {
		return false
	}
	if step.Rule != "" {
		return node.ResourceVersion == step.NodeVersion
	}
	return !slices.Contains(node.Status.VolumesInUse, name)
}

// deleteWithin lists the pods of a step's node once more, and deletes its
// attachment within step.Within of that.
func (e *Executor) deleteWithin(ctx context.Context, step arbiter.Step) error {
	bounded, cancel := context.WithDeadline(ctx, time.Now().Add(step.Within))
	defer cancel()
	err := e.confirmUnwanted(bounded, step)
	switch {
	case err != nil:
		return err
	case !e.unwanted(step):
		return fmt.Errorf("%w: a pod of node %s may want the volume", ErrStale, step.Node)
	}
	err = e.deleteAttachment(bounded, step)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("delete VolumeAttachment %s: the API server took longer than %s: %w", step.Attachment, step.Within, err)
	}
	return err
}

// unwanted says whether the proof of a detach stands.
func (e *Executor) unwanted(step arbiter.Step) bool {
	place := e.snapshot().Volume(step.Volume).Place(step.Node)
	return place != nil && place.Proof.Stage == ledger.ProofUnwanted
}
