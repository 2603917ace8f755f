// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	shop   = "shop"
	driver = "driver"
)

func (s *story) pagesOnUse(ctx context.Context) error {
	if err := s.run(ctx, stepCLI, nil); err != nil {
		return err
	}
	if err := s.enableShop(ctx); err != nil {
		return err
	}
	if err := s.run(ctx, stepTickets, nil); err != nil {
		return err
	}
	claim := sandbox.Claim("data", corev1.ReadWriteOncePod)
	if _, err := s.client.CoreV1().PersistentVolumeClaims(shop).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	w := &workload{namespace: shop}
	if err := s.makePod(ctx, w, "db-0"); err != nil {
		return err
	}
	if err := s.volumeOf(ctx, w); err != nil {
		return err
	}
	if err := s.waits(ctx, "db-1"); err != nil {
		return err
	}
	if err := s.standInDriver(ctx); err != nil {
		return err
	}
	bound, err := s.client.CoreV1().PersistentVolumeClaims(shop).Get(ctx, "data", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := s.run(ctx, stepLook, lookNames(bound.Spec.VolumeName, w.pod.Spec.NodeName, filepath.Join(s.dir, "bundle.tar.gz"))); err != nil {
		return err
	}
	controller, err := s.client.AppsV1().Deployments(driver).Get(ctx, "controller", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if image := controller.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "ghcr.io/moorage-dev/moorage-attacher:") {
		return fmt.Errorf("the driver's attacher has the image %s", image)
	}
	if err := s.client.CoreV1().Namespaces().Delete(ctx, driver, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return s.remove(ctx, w)
}

func lookNames(volume, node, bundle string) map[string]string {
	return map[string]string{
		"NAME": "db-1", "PV": volume, "NODE": node, "NAMESPACE": driver, "CONTROLLER": "controller", "FILE": bundle,
	}
}

func (s *story) enableShop(ctx context.Context) error {
	if err := s.exactNamespace(ctx, shop); err != nil {
		return err
	}
	if err := s.run(ctx, stepEnable, nil); err != nil {
		return err
	}
	return until(ctx, "pods of the namespace are stamped", func(ctx context.Context) error { return s.stamped(ctx, shop) })
}

func (s *story) exactNamespace(ctx context.Context, name string) error {
	return until(ctx, "namespace "+name+" is there", func(ctx context.Context) error {
		_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err = s.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (s *story) waits(ctx context.Context, name string) error {
	if _, err := s.client.CoreV1().Pods(shop).Create(ctx, sandbox.Pod(name, "data"), metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "pod "+name+" is told what it waits for", func(ctx context.Context) error {
		pod, err := s.client.CoreV1().Pods(shop).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "in use for pod") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", pod.Status.Conditions)
	})
}

// The Deployment runs nothing: it is for the command that puts our attacher in.
func (s *story) standInDriver(ctx context.Context) error {
	if err := s.exactNamespace(ctx, driver); err != nil {
		return err
	}
	name := map[string]string{"app": "controller"}
	_, err := s.client.AppsV1().Deployments(driver).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "controller"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: name},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: name},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "csi-attacher", Image: "registry.k8s.io/sig-storage/csi-attacher:v4.12.0"}}},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

func (s *story) pagesOnUpgrades(ctx context.Context) error {
	if err := s.monitoring(ctx); err != nil {
		return err
	}
	for _, step := range []string{stepUpgrade, stepMonitoring, stepRollback} {
		if err := s.run(ctx, step, nil); err != nil {
			return err
		}
	}
	return s.awaitMoorage(ctx)
}

func (s *story) cooperative(ctx context.Context) error {
	if err := s.enableShop(ctx); err != nil {
		return err
	}
	if _, err := s.client.CoreV1().PersistentVolumeClaims(shop).Create(ctx, sandbox.Claim("data", corev1.ReadWriteOnce), metav1.CreateOptions{}); err != nil {
		return err
	}
	w := &workload{namespace: shop}
	if err := s.makePod(ctx, w, "db"); err != nil {
		return err
	}
	if err := s.volumeOf(ctx, w); err != nil {
		return err
	}
	if err := s.untouched(ctx, w); err != nil {
		return err
	}
	if err := s.switchModes(ctx, w); err != nil {
		return err
	}
	if err := s.remove(ctx, w); err != nil {
		return err
	}
	return s.takeOut(ctx)
}

// The other attach/detach controller goes when Moorage is there.
func (s *story) quickStart(ctx context.Context) error {
	if err := s.run(ctx, stepInstall, nil); err != nil {
		return err
	}
	if err := s.takeBack(ctx); err != nil {
		return err
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	// The job goes on with cert-manager's certificate.
	err := s.whileStamping(ctx, func(ctx context.Context) error { return s.run(ctx, stepOwnCertificates, nil) })
	if err != nil {
		return err
	}
	for _, step := range []string{stepRenewNow, stepToCertManager} {
		if err := s.run(ctx, step, nil); err != nil {
			return err
		}
		if err := s.newCertificateShown(ctx); err != nil {
			return err
		}
		if err := s.awaitMoorage(ctx); err != nil {
			return err
		}
	}
	return s.takeOut(ctx)
}

func (s *story) forget(ctx context.Context) error {
	if err := s.takeOut(ctx); err != nil {
		return err
	}
	return s.run(ctx, stepForget, nil)
}
