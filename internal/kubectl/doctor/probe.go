// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// tryPod has the API server admit a pod that it does not keep: the one way to
// learn whether it reaches the webhook and trusts it.
func tryPod(ctx context.Context, c *cluster.Cluster, e *Evidence, wanted bool) Probe {
	switch {
	case c.Kept != nil:
		return Probe{Skipped: "a file answers in the API server's place"}
	case !wanted:
		return Probe{Skipped: "--probe=false"}
	case e.Namespaces.Err != nil:
		return Probe{Skipped: "you may not list namespaces, so that one that has opted in can't be found"}
	case len(e.Namespaces.Items) == 0:
		return Probe{Skipped: "no namespace has opted in"}
	}
	var kept Probe
	for i := range e.Namespaces.Items[:min(len(e.Namespaces.Items), mostTried)] {
		p := tryPodIn(ctx, c, e.Namespaces.Items[i].Name)
		if p.Skipped == "" && p.Err == nil {
			return p
		}
		if i == 0 || kept.Err == nil && p.Err != nil {
			kept = p // what the API server says tells more than that nothing was tried
		}
	}
	return kept
}

// mostTried is in how many namespaces a pod is tried where others refuse it, such as by a quota
// that is full.
const mostTried = 5

// tryPodIn is tryPod in a namespace that has opted in.
func tryPodIn(ctx context.Context, c *cluster.Cluster, namespace string) Probe {
	p := Probe{Namespace: namespace}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.Namespace, Verb: "create", Resource: "pods"},
	}}
	review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		p.Skipped = "you may not create pods in namespace " + p.Namespace
		return p
	}
	answer, err := c.Kube.CoreV1().Pods(p.Namespace).Create(ctx, probePod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		p.Err = err
		return p
	}
	_, p.Stamped = answer.Annotations[v1alpha1.AnnotationVolumeStatus]
	p.Scheduler = answer.Spec.SchedulerName
	return p
}

// probePod is a pod with a claim that meets the restricted pod security
// standard, and quotas on requests.
func probePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "moorage-doctor-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65534)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "none", Image: "registry.invalid/none:1",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "moorage-doctor"},
			}}},
		},
	}
}
