// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const accessMode = "SINGLE_NODE_WRITER"

func (n *Node) greet(ctx context.Context) {
	for _, p := range n.books.untold() {
		if n.patchPod(ctx, p, podStatus(p.pod, corev1.PodPending)) {
			p.told = true
		}
	}
}

func (n *Node) mount(ctx context.Context) {
	if len(n.books.mountable(n.attached)) == 0 {
		return
	}
	// As in the kubelet only the present Node counts, not a cache.
	node, err := n.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		n.failed(ctx, "read the Node", err)
		return
	}
	for _, v := range n.books.mountable(attachedAt(node)) {
		if err := n.stage(ctx, v); err != nil {
			n.failed(ctx, "mount "+v.Handle, err)
		}
	}
}

func (n *Node) stage(ctx context.Context, v Volume) error {
	name := ledger.AttachmentName(ledger.VolumeID{Driver: n.config.Driver, Handle: v.Handle}, ledger.NodeName(n.name))
	attachment, err := n.kube.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("read the VolumeAttachment: %w", err)
	case attachment.DeletionTimestamp != nil || !attachment.Status.Attached:
		return fmt.Errorf("VolumeAttachment %s is not attached, though the Node lists the volume as attached", name)
	}
	if err := n.call(ctx, diskapi.NodeStage, v, attachment.Status.AttachmentMetadata); err != nil {
		return err
	}
	n.books.staged(v.Name)
	return nil
}

func (n *Node) call(ctx context.Context, call diskapi.Call, v Volume, publish map[string]string) error {
	request := diskapi.Request{Call: call, Volume: v.Handle, Node: nodeID(n.name), Args: diskapi.Args{Path: "/staged/" + v.Handle, Context: publish}}
	if call == diskapi.NodeStage {
		request.AccessMode = accessMode
	}
	answer, err := n.config.Disk.Do(ctx, request)
	if err == nil && answer.Code != okCode {
		err = fmt.Errorf("%s: %s: %s", call, answer.Code, answer.Message)
	}
	return err
}

func (n *Node) start(ctx context.Context) {
	for _, p := range n.books.startable() {
		if n.patchPod(ctx, p, podStatus(p.pod, corev1.PodRunning)) {
			p.running = true
		}
	}
}

func (n *Node) unmount(ctx context.Context) {
	for _, v := range n.books.unneeded() {
		if err := n.call(ctx, diskapi.NodeUnstage, v, nil); err != nil {
			n.failed(ctx, "unmount "+v.Handle, err)
			continue
		}
		n.books.unstaged(v.Name)
	}
}

func (n *Node) finish(ctx context.Context) {
	for _, p := range n.books.endable() {
		if !p.gone && !n.end(ctx, p) {
			continue
		}
		n.books.end(p.pod.UID)
	}
}

func (n *Node) end(ctx context.Context, p *podEntry) bool {
	if !n.patchPod(ctx, p, podStatus(p.pod, corev1.PodSucceeded)) {
		return false
	}
	err := n.kube.CoreV1().Pods(p.pod.Namespace).Delete(ctx, p.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		n.failed(ctx, "delete pod "+p.pod.Name, err)
		return false
	}
	return true
}

// It writes nothing if the pod is gone or replaced.
func (n *Node) patchPod(ctx context.Context, p *podEntry, status map[string]any) bool {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.pod.UID}, "status": status})
	if err == nil {
		_, err = n.kube.CoreV1().Pods(p.pod.Namespace).Patch(ctx, p.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		n.failed(ctx, "write the status of pod "+p.pod.Name, err)
		return false
	}
	return true
}

func podStatus(pod *corev1.Pod, phase corev1.PodPhase) map[string]any {
	now := metav1.NewTime(time.Now())
	ready, state := corev1.ConditionFalse, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	switch phase {
	case corev1.PodRunning:
		ready, state = corev1.ConditionTrue, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	case corev1.PodSucceeded:
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now}}
	}
	var containers []corev1.ContainerStatus
	for _, c := range pod.Spec.Containers {
		containers = append(containers, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: ready == corev1.ConditionTrue, Started: new(ready == corev1.ConditionTrue), State: state})
	}
	var conditions []corev1.PodCondition
	for kind, status := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodInitialized: corev1.ConditionTrue, corev1.PodReady: ready, corev1.ContainersReady: ready, corev1.PodReadyToStartContainers: ready,
	} {
		conditions = append(conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
	return map[string]any{"phase": phase, "conditions": conditions, "containerStatuses": containers, "startTime": now, "hostIP": "127.0.0.1", "podIP": "10.0.0.1"}
}
