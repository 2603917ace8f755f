// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const AppLabel = "app"

func Claim(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			StorageClassName: new("disk"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func PodSpec(claims ...string) corev1.PodSpec {
	spec := corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers:                    []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}},
	}
	for i, claim := range claims {
		name := fmt.Sprintf("v%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{
			Name: name, MountPath: "/" + name,
		})
	}
	return spec
}

func Pod(name string, claims ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{AppLabel: name}},
		Spec:       PodSpec(claims...),
	}
}

func Deployment(name string, claims ...string) *appsv1.Deployment {
	labels := map[string]string{AppLabel: name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       PodSpec(claims...),
			},
		},
	}
}

func (e *Env) CreateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := e.Client.CoreV1().PersistentVolumeClaims(e.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim %s: %w", claim.Name, err)
	}
	return nil
}

func (e *Env) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	made, err := e.Client.CoreV1().Pods(e.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	pod.UID = made.UID
	return nil
}

func (e *Env) DeletePod(ctx context.Context, name string) error {
	if err := e.Client.CoreV1().Pods(e.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

func (e *Env) CreateDeployment(ctx context.Context, d *appsv1.Deployment) error {
	if _, err := e.Client.AppsV1().Deployments(e.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create deployment %s: %w", d.Name, err)
	}
	return nil
}
