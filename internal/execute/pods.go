// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// podQuestion asks whether an unfinished pod of a node wants a volume.
type podQuestion struct {
	step arbiter.Step
	done chan error
}

func (q *podQuestion) result() chan error { return q.done }

// confirmUnwanted tells the ledger Unwanted, or of the pod that wants the
// volume. All questions about a node that came before a list was asked for
// share it.
func (e *Executor) confirmUnwanted(ctx context.Context, step arbiter.Step) error {
	return e.lists.add(ctx, step.Node, &podQuestion{step, make(chan error, 1)}, e.askPods)
}

func (e *Executor) askPods(ctx context.Context, node ledger.NodeName, batch []*podQuestion) {
	list, err := call(ctx, e, func(ctx context.Context) (*corev1.PodList, error) {
		return e.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", string(node)).String(),
		})
	})
	if err != nil {
		err = fmt.Errorf("list the pods of node %s: %w", node, err)
	} else {
		for i := range list.Items {
			e.config.Observer.Saw(&list.Items[i])
		}
		err = e.resolve(ctx, list.Items)
	}
	for _, q := range batch {
		if err == nil && !e.wanted(list.Items, q.step.Volume) {
			e.config.Observer.Apply(ledger.Unwanted{
				Volume: q.step.Volume, Node: node, UID: q.step.UID, Version: q.step.Version,
			})
		}
		q.done <- err
	}
}

// wanted says whether an unfinished pod wants a volume, as far as is known.
func (e *Executor) wanted(pods []corev1.Pod, v ledger.VolumeID) bool {
	s := e.snapshot()
	for i := range pods {
		pod, _ := translate.Pod(&pods[i]) // a broken source names no volume
		if pod.Phase == ledger.PodFinished {
			continue
		}
		if slices.Contains(s.PodAt(pod.UID), v) {
			return true
		}
		for _, volume := range pod.Volumes {
			if id, _ := s.ResolvePod(&pod, volume); id == v {
				return true
			}
		}
	}
	return false
}

// resolve reads the claims and PersistentVolumes of unfinished pods that the
// caches can't follow: one of them may be newer than the caches, and lead to
// any volume.
func (e *Executor) resolve(ctx context.Context, pods []corev1.Pod) error {
	s := e.snapshot()
	for i := range pods {
		pod, _ := translate.Pod(&pods[i])
		if pod.Phase == ledger.PodFinished {
			continue
		}
		for _, volume := range pod.Volumes {
			if _, link := s.ResolvePod(&pod, volume); volume.Claim == "" || link == ledger.LinkVolume || link == ledger.LinkNone {
				continue
			}
			if err := e.readClaim(ctx, pod.Namespace, volume.Claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// readClaim takes in a claim, and what it is bound to, as they are now.
func (e *Executor) readClaim(ctx context.Context, namespace, name string) error {
	claim, err := call(ctx, e, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return e.config.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s/%s: %w", namespace, name, err)
	}
	e.config.Observer.Saw(claim)
	if claim.Spec.VolumeName == "" || e.snapshot().PersistentVolume(claim.Spec.VolumeName) != nil {
		return nil
	}
	pv, err := call(ctx, e, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return e.config.Kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %s: %w", claim.Spec.VolumeName, err)
	}
	e.config.Observer.Saw(pv)
	return nil
}

// podsOf iterates over the pods that use a volume.
func (e *Executor) podsOf(step arbiter.Step) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		s := e.snapshot()
		v := s.Volume(step.Volume)
		if v == nil {
			return
		}
		for i := range v.Places {
			for _, u := range v.Places[i].Users {
				uid := u.Pod
				if t := s.Ticket(u.Ticket); t != nil {
					uid = t.Pod
				}
				fact := s.Pod(uid)
				if fact == nil {
					continue
				}
				if pod, ok := e.config.Observer.Pod(fact.Namespace, fact.Name); ok && string(pod.UID) == uid && !yield(pod) {
					return
				}
			}
		}
	}
}

// removePod deletes a pod at once, if it is still the one that was meant.
func (e *Executor) removePod(ctx context.Context, step arbiter.Step) error {
	pod := e.snapshot().Pod(step.UID)
	if pod == nil {
		return nil
	}
	err := e.try(ctx, func(ctx context.Context) error {
		return e.config.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			Preconditions:      &metav1.Preconditions{UID: ptr.To(types.UID(step.UID))},
		})
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("remove pod %s/%s of a node that is out of service: %w", pod.Namespace, pod.Name, err)
}
