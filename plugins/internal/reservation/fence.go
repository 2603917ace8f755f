// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// fencer makes binds fail that were sent before, by a write into the pod: each bind
// names the pod's resource version, and takes another one only where no other process
// has written a fence since. Safe for parallel use.
type fencer struct {
	facts   Facts
	kube    kubernetes.Interface
	process string // what this process's fences begin with
	count   atomic.Int64
}

func newFencer(facts Facts, kube kubernetes.Interface) *fencer {
	return &fencer{facts: facts, kube: kube, process: string(uuid.NewUUID()) + "/"}
}

// fenceOf is the fence that a version of a pod carries; empty for none.
func fenceOf(pod *corev1.Pod) string { return pod.Annotations[v1alpha1.AnnotationBindFence] }

// stops says whether a pod carries a fence of another process that known, an older
// version of it, does not: whoever wrote it takes what known was reserved by away.
func (f *fencer) stops(known, now *corev1.Pod) bool {
	fence := fenceOf(now)
	return fence != fenceOf(known) && !strings.HasPrefix(fence, f.process)
}

// fence has every bind of a ticket's pod fail that was sent before. It returns true
// when the pod has no node, and false when it is bound or gone: then nothing was to be
// fenced. After an error it is to be tried again.
func (f *fencer) fence(ctx context.Context, t *ledger.Ticket) (unbound bool, err error) {
	pod, err := f.facts.ConfirmPod(ctx, t.ID.Namespace, t.PodName, t.Pod)
	if err != nil || pod == nil || pod.Spec.NodeName != "" {
		return false, err
	}
	patch, err := translate.BindFence(string(pod.UID), pod.ResourceVersion, f.process+strconv.FormatInt(f.count.Add(1), 10))
	if err != nil {
		return false, err
	}
	// The status may be written by whoever schedules; the object itself may not.
	written, err := f.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("fence pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return written.Spec.NodeName == "", nil
}
