// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// policyName names the ValidatingAdmissionPolicy, and its binding, that let
// nobody but this controller write volumesAttached.
const policyName = "moorage-volumes-attached"

// errUnguarded says why the controller refuses to start.
var errUnguarded = errors.New("another attach/detach controller could write volumesAttached too: " +
	"apply Moorage's policies (the chart's, or manifests/policies.yaml), or pass --skip-policy-check for development")

// guardPause is between two attempts to read the policy.
const guardPause = time.Second

// guarded returns an error when nothing keeps others from writing
// volumesAttached. While the API server does not answer, it asks again.
func guarded(ctx context.Context, kube kubernetes.Interface) error {
	for {
		err := guardedNow(ctx, kube)
		if err == nil || errors.Is(err, errUnguarded) || apierrors.IsForbidden(err) {
			return err
		}
		klog.FromContext(ctx).Error(err, "Can't tell yet whether the policy for volumesAttached is there; asking again")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(guardPause):
		}
	}
}

func guardedNow(ctx context.Context, kube kubernetes.Interface) error {
	admission := kube.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Get(ctx, policyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the ValidatingAdmissionPolicy %s is missing: %w", policyName, errUnguarded)
	}
	if err != nil {
		return fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", policyName, err)
	}
	binding, err := admission.ValidatingAdmissionPolicyBindings().Get(ctx, policyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the ValidatingAdmissionPolicyBinding %s is missing: %w", policyName, errUnguarded)
	case err != nil:
		return fmt.Errorf("read ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
	case binding.Spec.PolicyName != policyName || !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny):
		return fmt.Errorf("the ValidatingAdmissionPolicyBinding %s does not deny: %w", policyName, errUnguarded)
	}
	return nil
}
