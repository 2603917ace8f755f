// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const attachDetach = "attach-detach-controller"

var ofMoorage = metav1.ListOptions{LabelSelector: v1alpha1.LabelPartOf + "=" + v1alpha1.PartOf}

// Moorage still attaches the namespace's volumes.
func (s *story) switchOff(ctx context.Context) error {
	w, err := s.makeWorkload(ctx, "shop", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	s.workload = w
	// kubectl fails on a namespace that goes while it is about to be labelled.
	if err := until(ctx, "no namespace is going", s.noNamespaceGoes); err != nil {
		return err
	}
	if err := s.run(ctx, stepSwitchOff, nil); err != nil {
		return err
	}
	if err := s.untouched(ctx, w); err != nil {
		return err
	}
	later, err := s.makeWorkload(ctx, "later", nil)
	if err != nil {
		return err
	}
	if name := later.pod.Spec.SchedulerName; name != corev1.DefaultSchedulerName {
		return fmt.Errorf("a pod that did not opt in is placed by %s", name)
	}
	if err := s.untouched(ctx, w); err != nil {
		return err
	}
	return s.remove(ctx, later)
}

func (s *story) noNamespaceGoes(ctx context.Context) error {
	list, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is", list.Items[i].Name)
		}
	}
	return nil
}

func (s *story) uninstall(ctx context.Context) error {
	if err := s.takeOut(ctx); err != nil {
		return err
	}
	if err := s.untouched(ctx, s.workload); err != nil {
		return fmt.Errorf("after Moorage is gone: %w", err)
	}
	return s.instancesAreInert(ctx)
}

func (s *story) takeOut(ctx context.Context) error {
	if err := s.run(ctx, stepUninstall, nil); err != nil {
		return err
	}
	err := until(ctx, "Moorage's pods are gone", func(ctx context.Context) error {
		pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are left", len(pods.Items))
		}
		return err
	})
	if err != nil {
		return err
	}
	// Only the garbage collector deletes the policy's binding.
	return until(ctx, "nothing is left", s.nothingLeft)
}

// The definitions are kept.
func (s *story) nothingLeft(ctx context.Context) error {
	var errs []error
	for _, resource := range []schema.GroupVersionResource{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		{Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
		{Version: "v1", Resource: "services"},
	} {
		left, err := s.dynamic.Resource(resource).List(ctx, ofMoorage)
		if err != nil {
			return err
		}
		for _, o := range left.Items {
			errs = append(errs, fmt.Errorf("%s %s is left", o.GetKind(), o.GetName()))
		}
	}
	return errors.Join(errs...)
}

func (s *story) instancesAreInert(ctx context.Context) error {
	for _, resource := range []schema.GroupVersionResource{sandbox.TicketResource(), sandbox.HoldResource()} {
		left, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("the definitions are to be kept: %w", err)
		}
		for _, o := range left.Items {
			if len(o.GetFinalizers()) > 0 {
				return fmt.Errorf("%s %s has finalizers that nobody takes away: %v", o.GetKind(), o.GetName(), o.GetFinalizers())
			}
		}
	}
	return nil
}

func (s *story) takeBack(ctx context.Context) error {
	if !s.handedBack {
		return nil
	}
	s.handedBack = false
	return s.pods.Stop(ctx, attachDetach)
}

func (s *story) startAttachDetach() error {
	if s.launched {
		err := s.pods.StartAgain(attachDetach)
		s.handedBack = err == nil
		return err
	}
	err := s.pods.Launch(attachDetach, filepath.Join(s.binaries, "moorage-sandbox"), sandbox.ComponentCommand, sandbox.ControllerManager,
		"--kubeconfig="+s.cluster.Kubeconfig(), "--controllers=persistentvolume-attach-detach-controller",
		"--leader-elect=false", "--secure-port=0")
	s.launched, s.handedBack = err == nil, err == nil
	return err
}

func (s *story) handBack(ctx context.Context) error {
	w := s.workload
	if err := s.startAttachDetach(); err != nil {
		return err
	}
	if err := s.client.CoreV1().Pods(w.namespace).Delete(ctx, w.pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	err := until(ctx, "the volume is detached", func(ctx context.Context) error {
		nodes, err := s.attachedAt(ctx, w)
		if err == nil && len(nodes) > 0 {
			err = fmt.Errorf("it is attached at %v", nodes)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.makePod(ctx, w, "db-after"); err != nil {
		return err
	}
	if w.pod.Annotations[v1alpha1.AnnotationVolumeStatus] != "" || w.pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return errors.New("a new pod still bears Moorage's marks")
	}
	if err := s.untouched(ctx, w); err != nil {
		return err
	}
	if err := s.remove(ctx, w); err != nil {
		return err
	}
	violations, err := s.cluster.Disk().Finish(ctx)
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return fmt.Errorf("the judge saw %d violations, the first: %s: %s", len(violations), violations[0].Rule, violations[0].Message)
	}
	return nil
}
