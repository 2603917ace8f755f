// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type try = func(ctx context.Context, s *Scene, c clients) error

func (s *Scene) ticket(name string, kind v1alpha1.TicketType, claim string) *unstructured.Unstructured {
	spec := map[string]any{"type": string(kind), "nodeName": s.pod.Spec.NodeName, "ttlSeconds": int64(600),
		"volumes": []any{map[string]any{"claim": map[string]any{"name": claim}}}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindVolumeTicket,
		"metadata": map[string]any{"name": name, "namespace": s.Own}, "spec": spec,
	}}
}

func (c clients) make(ctx context.Context, ticket *unstructured.Unstructured) error {
	_, err := c.dynamic.Resource(sandbox.TicketResource()).Namespace(ticket.GetNamespace()).Create(ctx, ticket, metav1.CreateOptions{})
	return err
}

func ticketOf(kind v1alpha1.TicketType, change func(s *Scene, o *unstructured.Unstructured)) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		ticket := s.ticket("attack", kind, "data")
		if change != nil {
			change(s, ticket)
		}
		return c.make(ctx, ticket)
	}
}

func setIn(o *unstructured.Unstructured, field string, value any) {
	spec, _ := o.Object["spec"].(map[string]any)
	if value == nil {
		delete(spec, field)
		return
	}
	spec[field] = value
}

func patchPod(patch string, subresource ...string) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		_, err := c.kube.CoreV1().Pods(s.Own).Patch(ctx, s.pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
		return err
	}
}

// The webhook may rewrite the pod's volume status in this dry run.
func makePod(in func(*Scene) string, change func(s *Scene, pod *corev1.Pod)) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		pod := sandbox.Pod("attack", "data")
		change(s, pod)
		made, err := c.kube.CoreV1().Pods(in(s)).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Annotations[v1alpha1.AnnotationVolumeStatus] != pod.Annotations[v1alpha1.AnnotationVolumeStatus] {
			return outcome(byWebhook)
		}
		return err
	}
}

func inOwn(s *Scene) string    { return s.Own }
func inStrict(s *Scene) string { return s.Strict }
func inPlain(s *Scene) string  { return s.Plain }

func patchNode(patch string) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		_, err := c.kube.CoreV1().Nodes().Patch(ctx, s.pod.Spec.NodeName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
}

func annotated(key, value string) string {
	return `{"metadata":{"annotations":{"` + key + `":"` + value + `"}}}`
}

func conditioned(kind string) string {
	return `{"status":{"conditions":[{"type":"` + kind + `","status":"True","reason":"Forged"}]}}`
}

func hold(ctx context.Context, s *Scene, c clients) error {
	_, err := c.dynamic.Resource(sandbox.HoldResource()).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindVolumeHold,
		"metadata": map[string]any{"name": "vh-attack"}, "spec": map[string]any{"driver": "disk.example.com", "handle": s.victimVolume},
		"status": map[string]any{"holder": map[string]any{"node": s.pod.Spec.NodeName}},
	}}, metav1.CreateOptions{})
	return err
}

func policyOfOthers(ctx context.Context, _ *Scene, c clients) error {
	_, err := c.dynamic.Resource(sandbox.PolicyResource()).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "AttachPolicy", "metadata": map[string]any{"name": "attack"},
		"spec": map[string]any{"driver": "disk.example.com", "maxVolumesPerNode": int64(0)},
	}}, metav1.CreateOptions{})
	return err
}

func bindByHand(ctx context.Context, s *Scene, c clients) error {
	return c.kube.CoreV1().Pods(s.Own).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Own, Name: "waits"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: s.pod.Spec.NodeName},
	}, metav1.CreateOptions{})
}

func works(do try) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		if err := do(ctx, s, c); err != nil {
			return err
		}
		return s.works(ctx)
	}
}
