// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Upstream needs two status intervals of a kubelet and some backoff to clean up.
const cleanupPatience = 4 * time.Minute

func (e *Env) Leftovers() error {
	var errs []error
	note := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, pod := range e.View.Pods(e.Namespace) {
		note("pod %s is still there", pod.Name)
	}
	for _, claim := range e.View.Claims(e.Namespace) {
		note("claim %s is still there", claim.Name)
	}
	for _, a := range e.View.Attachments() {
		note("a VolumeAttachment for %s is left (%s)", a.Spec.NodeName, attachmentState(a))
	}
	for _, n := range e.View.Nodes() {
		if handles := attachedHandles(n); len(handles) > 0 {
			note("%s has %v in volumesAttached", n.Name, sortedKeys(handles))
		}
		if handles := inUseHandles(n); len(handles) > 0 {
			note("%s has %v in volumesInUse", n.Name, sortedKeys(handles))
		}
	}
	for _, pv := range e.View.Volumes() {
		note("PersistentVolume %s is left (%s)", pv.Name, pv.Status.Phase)
	}
	for _, ticket := range e.View.Tickets(e.Namespace) {
		note("VolumeTicket %s is left", ticket.GetName())
	}
	for _, snapshot := range e.View.Snapshots(e.Namespace) {
		note("VolumeSnapshot %s is left", snapshot.GetName())
	}
	for _, content := range e.View.SnapshotContents() {
		note("VolumeSnapshotContent %s is left", content.GetName())
	}
	return errors.Join(errs...)
}

func (e *Env) noDisksAttached(ctx context.Context) error {
	disks, err := e.Disk.Disks(ctx)
	if err != nil {
		return err
	}
	for _, disk := range disks {
		if len(disk.Attached)+len(disk.Staged) > 0 {
			return fmt.Errorf("disk %s is attached at %d and staged at %d nodes", disk.Volume, len(disk.Attached), len(disk.Staged))
		}
	}
	snapshots, err := e.Disk.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, snapshot := range snapshots {
		return fmt.Errorf("snapshot %s of disk %s is left", snapshot.Handle, snapshot.Volume)
	}
	return nil
}

// deleteEverything deletes the content first: the namespace controller takes five seconds to begin.
func (e *Env) deleteEverything(ctx context.Context) error {
	everything, all := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{}
	errs := []error{
		e.Client.AppsV1().Deployments(e.Namespace).DeleteCollection(ctx, everything, all),
		e.Client.AppsV1().StatefulSets(e.Namespace).DeleteCollection(ctx, everything, all),
		e.Client.AppsV1().ReplicaSets(e.Namespace).DeleteCollection(ctx, everything, all),
		e.Client.CoreV1().Pods(e.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		e.Client.CoreV1().PersistentVolumeClaims(e.Namespace).DeleteCollection(ctx, everything, all),
	}
	if e.Cluster.Shape().Operations.On {
		errs = append(errs,
			e.Dynamic.Resource(GroupSnapshotResource()).Namespace(e.Namespace).DeleteCollection(ctx, everything, all),
			e.Dynamic.Resource(SnapshotResource()).Namespace(e.Namespace).DeleteCollection(ctx, everything, all))
	}
	err := e.Client.CoreV1().Namespaces().Delete(ctx, e.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete what the scenario made: %w", err)
	}
	return nil
}

func (e *Env) cleanUp(ctx context.Context) error {
	if err := errors.Join(e.Cluster.Heal(ctx), e.Disk.ClearFaults(ctx)); err != nil {
		return fmt.Errorf("end the faults: %w", err)
	}
	if e.Namespace == "" {
		return nil
	}
	if err := e.deleteEverything(ctx); err != nil {
		return err
	}
	return e.EventuallyWithin(ctx, cleanupPatience, "nothing is left over", func() error {
		if err := e.Leftovers(); err != nil {
			return err
		}
		return e.noDisksAttached(ctx)
	})
}
