// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// Kubelets report every second, so that scenarios do not wait for them.
func threeByFour(shape *sandbox.Shape) {
	shape.Nodes, shape.Slots = 3, 4
	shape.KubeletStatusInterval = time.Second
}

func (s *story) claim(name string) {
	s.must(s.CreateClaim(s.ctx, sandbox.Claim(name, corev1.ReadWriteOnce)))
}

func (s *story) pod(name, claim string) { s.must(s.CreatePod(s.ctx, sandbox.Pod(name, claim))) }

func (s *story) podAt(node, name, claim string) types.UID {
	pod := sandbox.Pod(name, claim)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	s.must(s.CreatePod(s.ctx, pod))
	return pod.UID
}

func (s *story) forceDelete(ctx context.Context, name string) error {
	return s.Client.CoreV1().Pods(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

func (s *story) remove(name string) { s.must(s.DeletePod(s.ctx, name)) }

func (s *story) statefulSet(name string) { s.statefulSetWith(name, func(*appsv1.StatefulSet) {}) }

func (s *story) statefulSetWith(name string, change func(*appsv1.StatefulSet)) {
	labels := map[string]string{sandbox.AppLabel: name}
	claim := sandbox.Claim("data", corev1.ReadWriteOnce)
	spec := sandbox.PodSpec("data")
	spec.Volumes = nil // the StatefulSet adds one per claim template
	spec.Containers[0].VolumeMounts[0].Name = claim.Name
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name,
			Replicas:    new(int32(1)),
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       spec,
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}
	change(set)
	_, err := s.Client.AppsV1().StatefulSets(s.Namespace).Create(s.ctx, set, metav1.CreateOptions{})
	if err != nil {
		s.must(fmt.Errorf("create statefulset %s: %w", name, err))
	}
}

func (s *story) adopt(name string) {
	labels := map[string]string{sandbox.AppLabel: name}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: sandbox.PodSpec(name)},
		},
	}
	if _, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(s.ctx, set, metav1.CreateOptions{}); err != nil {
		s.must(fmt.Errorf("create replicaset %s: %w", name, err))
	}
}

func (s *story) orphan(name string) {
	s.must(s.Client.AppsV1().ReplicaSets(s.Namespace).Delete(s.ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}))
}

func (s *story) deployment(d *appsv1.Deployment) { s.must(s.CreateDeployment(s.ctx, d)) }

func (s *story) cordon(node string) {
	s.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

func (s *story) uncordon(node string) {
	s.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
}

// outOfService is how an administrator vouches that a node is switched off.
func outOfService() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
}

func (s *story) taint(node string, taint corev1.Taint) {
	s.changeNode(node, func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, taint) })
}

func (s *story) untaint(node string, taint corev1.Taint) {
	s.changeNode(node, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	})
}

// changeNode tries again until no other write comes between.
func (s *story) changeNode(name string, change func(*corev1.Node)) {
	nodes := s.Client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = nodes.Update(s.ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		s.must(fmt.Errorf("change node %s: %w", name, err))
	}
}
