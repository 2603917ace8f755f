// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const ticketName = "keep-it-here"

func (s *story) stamped(ctx context.Context, namespace string) error {
	pod, err := s.client.CoreV1().Pods(namespace).Create(ctx, sandbox.Pod("dry-run", "data"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err != nil:
		return err
	case pod.Annotations[v1alpha1.AnnotationVolumeStatus] == "":
		return errors.New("the pod is not stamped")
	case pod.Spec.SchedulerName != v1alpha1.SchedulerName:
		return fmt.Errorf("the pod is left to %s", pod.Spec.SchedulerName)
	}
	return nil
}

type workload struct {
	namespace string
	pod       *corev1.Pod
	volume    string // the disk's handle
}

func (s *story) makeWorkload(ctx context.Context, prefix string, labels map[string]string) (*workload, error) {
	name, err := s.namespace(ctx, prefix, labels)
	if err != nil {
		return nil, err
	}
	w := &workload{namespace: name}
	_, err = s.client.CoreV1().PersistentVolumeClaims(name).Create(ctx, sandbox.Claim("data", corev1.ReadWriteOnce), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := s.makePod(ctx, w, "db"); err != nil {
		return nil, err
	}
	return w, s.volumeOf(ctx, w)
}

func (s *story) volumeOf(ctx context.Context, w *workload) error {
	claim, err := s.client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, "data", metav1.GetOptions{})
	if err != nil {
		return err
	}
	volume, err := s.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.volume = volume.Spec.CSI.VolumeHandle
	return nil
}

func (s *story) makePod(ctx context.Context, w *workload, name string) error {
	if _, err := s.client.CoreV1().Pods(w.namespace).Create(ctx, sandbox.Pod(name, "data"), metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "pod "+name+" runs", func(ctx context.Context) error {
		pod, err := s.client.CoreV1().Pods(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		w.pod = pod
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s, on node %q", pod.Status.Phase, pod.Spec.NodeName)
		}
		return nil
	})
}

func (s *story) untouched(ctx context.Context, w *workload) error {
	pod, err := s.client.CoreV1().Pods(w.namespace).Get(ctx, w.pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.UID != w.pod.UID || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is another one, or does not run: %s", pod.Name, pod.Status.Phase)
	}
	nodes, err := s.attachedAt(ctx, w)
	if err != nil {
		return err
	}
	if len(nodes) != 1 || nodes[0] != diskapi.NodeID(pod.Spec.NodeName) {
		return fmt.Errorf("its volume is attached at %v, and the pod on %s", nodes, pod.Spec.NodeName)
	}
	return nil
}

func (s *story) attachedAt(ctx context.Context, w *workload) ([]string, error) {
	disks, err := s.cluster.Disk().Disks(ctx)
	if err != nil {
		return nil, err
	}
	for _, disk := range disks {
		if disk.Volume == w.volume {
			nodes := make([]string, len(disk.Attached))
			for i, attachment := range disk.Attached {
				nodes[i] = attachment.Node
			}
			return nodes, nil
		}
	}
	return nil, fmt.Errorf("the disk service has no disk %s", w.volume)
}

func (s *story) ticket(ctx context.Context, namespace, name string) (*v1alpha1.VolumeTicket, error) {
	o, err := s.dynamic.Resource(sandbox.TicketResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var ticket v1alpha1.VolumeTicket
	return &ticket, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ticket)
}

func (s *story) createTicket(ctx context.Context, ticket *v1alpha1.VolumeTicket) error {
	ticket.APIVersion, ticket.Kind = v1alpha1.SchemeGroupVersion.String(), v1alpha1.KindVolumeTicket
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ticket)
	if err != nil {
		return err
	}
	delete(raw, "status")
	_, err = s.dynamic.Resource(sandbox.TicketResource()).Namespace(ticket.Namespace).Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{})
	return err
}

func (s *story) granted(ctx context.Context, w *workload) error {
	ticket, err := s.ticket(ctx, w.namespace, ticketName)
	if err != nil {
		return err
	}
	for _, kind := range []string{v1alpha1.TicketGranted, v1alpha1.TicketSatisfied} {
		if !meta.IsStatusConditionTrue(ticket.Status.Conditions, kind) {
			return fmt.Errorf("the ticket is not %s: %+v", kind, ticket.Status.Conditions)
		}
	}
	return nil
}

func (s *story) makeTickets(ctx context.Context) error {
	w, err := s.makeWorkload(ctx, "upgrade", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	if w.pod.Spec.SchedulerName != v1alpha1.SchedulerName {
		return fmt.Errorf("the pod was placed by %s", w.pod.Spec.SchedulerName)
	}
	s.workload = w
	err = s.createTicket(ctx, &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: ticketName},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketManual, NodeName: w.pod.Spec.NodeName, TTLSeconds: new(int64(3600)),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}},
		},
	})
	if err != nil {
		return err
	}
	err = until(ctx, "the ticket is granted and satisfied", func(ctx context.Context) error { return s.granted(ctx, w) })
	return errors.Join(err, s.endOlderGrants(ctx))
}
