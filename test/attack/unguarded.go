// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	byHolder = "the controller: the volume stays where it is"
	byWriter = "the controller, which corrects the VolumeHold"
)

// RunUnguarded repeats policy-stopped attempts with the policies off: the controller stops them by
// attachments.
func RunUnguarded(ctx context.Context, s *Scene, out io.Writer) error {
	return s.run(ctx, unguarded(), out)
}

func unguarded() []attempt {
	keeper := actor{name: "somebody who may write VolumeHolds", user: "attack-keeper", groups: []string{"system:masters"}}
	holder := func(s *Scene) map[string]any {
		return map[string]any{"node": s.elsewhere}
	}
	return []attempt{
		{wildcard(), "a forged grant of the victim's volume at another node", byHolder, forgeGrant(1)},
		{wildcard(), "a forged grant with the highest epoch", byHolder, forgeGrant(math.MaxInt64)},
		{keeper, "a VolumeHold that names another holder", byWriter, forgeHold(func(s *Scene) map[string]any { return map[string]any{"holder": holder(s)} })},
		{keeper, "a VolumeHold that names nobody", byWriter, forgeHold(func(*Scene) map[string]any { return map[string]any{"holder": nil} })},
		{keeper, "a VolumeHold of no PersistentVolume", byWriter, forgeHold(func(s *Scene) map[string]any {
			return map[string]any{"holder": holder(s), "persistentVolumes": nil}
		})},
		{keeper, "deleting the VolumeHold", byWriter, func(ctx context.Context, s *Scene, c clients) error {
			name, err := s.holdName(ctx)
			if err != nil {
				return err
			}
			if err := c.dynamic.Resource(sandbox.HoldResource()).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return s.heldByVictim(ctx, name)
		}},
	}
}

// A later status of the controller shows that it has seen the forged grant.
func forgeGrant(epoch int64) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		ticket := s.ticket("unguarded", v1alpha1.TicketManual, "data")
		setIn(ticket, "volumes", []any{map[string]any{"persistentVolume": s.victimVolume}})
		setIn(ticket, "nodeName", s.elsewhere)
		if err := s.unlessGuarded(ctx, func() error { return c.make(ctx, ticket) }); err != nil {
			return err
		}
		defer s.end(ctx, "unguarded")
		forged := fmt.Sprintf(`{"status":{"epoch":%d,"conditions":[
			{"type":"Granted","status":"True","reason":"Granted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
			{"type":"Satisfied","status":"True","reason":"Attached","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, epoch)
		tickets := c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own)
		err := s.unlessGuarded(ctx, func() error {
			_, err := tickets.Patch(ctx, "unguarded", types.MergePatchType, []byte(forged), metav1.PatchOptions{}, "status")
			return err
		})
		if err != nil {
			return err
		}
		return s.stays(ctx, "unguarded")
	}
}

func (s *Scene) stays(ctx context.Context, name string) error {
	tickets := s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own)
	var ticket v1alpha1.VolumeTicket
	err := wait.PollUntilContextTimeout(ctx, pollInterval, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		o, err := tickets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ticket = v1alpha1.VolumeTicket{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ticket)
		return meta.IsStatusConditionFalse(ticket.Status.Conditions, v1alpha1.TicketSatisfied), err
	})
	if err != nil {
		return fmt.Errorf("the ticket goes on to be satisfied (%+v): %w", ticket.Status.Conditions, err)
	}
	attached, err := s.attachedAt(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(attached, []string{s.victimPod.Spec.NodeName}) {
		return fmt.Errorf("the volume has VolumeAttachments for %v", attached)
	}
	hold, err := s.holdName(ctx)
	if err != nil {
		return err
	}
	if err := s.heldByVictim(ctx, hold); stopper(err) != byWriter {
		return err
	}
	return outcome(byHolder)
}

func (s *Scene) attachedAt(ctx context.Context) ([]string, error) {
	list, err := s.admin.kube.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, va := range list.Items {
		if ofVolume(&va, s.victimVolume) {
			nodes = append(nodes, va.Spec.NodeName)
		}
	}
	return nodes, nil
}

func ofVolume(va *storagev1.VolumeAttachment, name string) bool {
	return va.Spec.Source.PersistentVolumeName != nil && *va.Spec.Source.PersistentVolumeName == name
}

func forgeHold(status func(*Scene) map[string]any) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		name, err := s.holdName(ctx)
		if err != nil {
			return err
		}
		patch := &unstructured.Unstructured{Object: map[string]any{"status": status(s)}}
		raw, err := patch.MarshalJSON()
		if err != nil {
			return err
		}
		err = s.unlessGuarded(ctx, func() error {
			holds := c.dynamic.Resource(sandbox.HoldResource())
			forged, err := holds.Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				if patch, err = s.newHold(ctx, name, status(s)); err == nil {
					forged, err = holds.Create(ctx, patch, metav1.CreateOptions{})
				}
			}
			if err != nil {
				return err
			}
			if node, _, _ := unstructured.NestedString(forged.Object, "status", "holder", "node"); node == s.victimPod.Spec.NodeName {
				return fmt.Errorf("the forged VolumeHold names %s", node)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.heldByVictim(ctx, name)
	}
}

func (s *Scene) holdName(ctx context.Context) (string, error) {
	pv, err := s.admin.kube.CoreV1().PersistentVolumes().Get(ctx, s.victimVolume, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return v1alpha1.VolumeHoldName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle), nil
}

func (s *Scene) newHold(ctx context.Context, name string, status map[string]any) (*unstructured.Unstructured, error) {
	pv, err := s.admin.kube.CoreV1().PersistentVolumes().Get(ctx, s.victimVolume, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindVolumeHold,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"driver": pv.Spec.CSI.Driver, "handle": pv.Spec.CSI.VolumeHandle},
		"status":   status,
	}}, nil
}

// Without a VolumeHold the volume must be attached to the victim's node only.
func (s *Scene) heldByVictim(ctx context.Context, name string) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		o, err := s.admin.dynamic.Resource(sandbox.HoldResource()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			at, err := s.attachedAt(ctx)
			return slices.Equal(at, []string{s.victimPod.Spec.NodeName}), err
		}
		if err != nil {
			return false, err
		}
		var hold v1alpha1.VolumeHold
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &hold); err != nil {
			return false, err
		}
		last = fmt.Sprintf("%+v", hold.Status)
		holder := hold.Status.Holder
		return holder != nil && holder.Node == s.victimPod.Spec.NodeName && slices.Equal(hold.Status.PersistentVolumes, []string{s.victimVolume}), nil
	})
	if err != nil {
		return fmt.Errorf("the VolumeHold says %s: %w", last, err)
	}
	return outcome(byWriter)
}

// A removed policy may deny for a moment.
func (s *Scene) unlessGuarded(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, sandbox.Patience, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil || deniedBy.FindString(last.Error()) == "", nil
	})
	return errors.Join(err, last)
}
