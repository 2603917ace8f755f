// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/scheduler"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	dto "github.com/prometheus/client_model/go"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	driver          = "ebs.csi.aws.com"
	loadedNamespace = "loaded-0"
	volumesPerPod   = 3
	abreast         = 30
)

// Parameters: premade is the number of claims beforehand, loaded the volumes per node.
func preload(tCtx testContext, _ *scheduler.Scheduler, w *perf.Workload, nodes *corev1.NodeList) error {
	premade, loaded := parameter(w, "premade"), parameter(w, "loaded")
	m := maker{kube: tCtx.Client()}
	m.parallel(tCtx, premade, func(i int) error {
		_, err := m.volume(tCtx, measuredNamespace, fmt.Sprintf("claim-%d", i))
		return err
	})
	m.parallel(tCtx, len(nodes.Items)*loaded/volumesPerPod, func(i int) error {
		return m.runningPod(tCtx, nodes.Items[i%len(nodes.Items)].Name, i)
	})
	if premade+loaded == 0 || len(m.errs) > 0 {
		return errors.Join(m.errs...)
	}
	return settled(tCtx)
}

func parameter(w *perf.Workload, name string) int {
	n, err := w.GetParam(name)
	if err != nil {
		return 0
	}
	return n
}

// It collects errors; all methods are safe for parallel use.
type maker struct {
	kube kubernetes.Interface

	mu   sync.Mutex
	errs []error
}

func (m *maker) parallel(ctx context.Context, count int, each func(i int) error) {
	workqueue.ParallelizeUntil(ctx, abreast, count, func(i int) {
		if err := each(i); err != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.errs = append(m.errs, err)
		}
	})
}

func (m *maker) volume(ctx context.Context, namespace, name string) (string, error) {
	pv := namespace + "-" + name
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	noClass := ""
	claims := m.kube.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: pv, StorageClassName: &noClass, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	claim.Status.Phase = corev1.ClaimBound
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	_, err = m.kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pv},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: pv}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name},
		},
	}, metav1.CreateOptions{})
	return pv, err
}

func (m *maker) runningPod(ctx context.Context, node string, number int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", number)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}},
	}
	for i := range volumesPerPod {
		claim := fmt.Sprintf("claim-%d-%d", number, i)
		pv, err := m.volume(ctx, loadedNamespace, claim)
		if err != nil {
			return err
		}
		_, err = m.kube.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: pv}, ledger.NodeName(node))},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("vol-%d", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	_, err := m.kube.CoreV1().Pods(loadedNamespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// settled waits until the API server gets fewer than idle requests in a second.
func settled(ctx context.Context) error {
	const idle, patience = 50, 5 * time.Minute
	last := -1.0
	return wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(context.Context) (bool, error) {
		total := 0.0
		read().each("apiserver_request_total", nil, func(m *dto.Metric) { total += m.GetCounter().GetValue() })
		quiet := last >= 0 && total-last < idle
		last = total
		return quiet, nil
	})
}
