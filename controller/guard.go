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

var (
	// errUnguarded says why the controller refuses to write in Standalone mode.
	errUnguarded = errors.New("another attach/detach controller could write volumesAttached too: " +
		"apply Moorage's policies (the chart's, or manifests/policies.yaml), or pass --skip-policy-check for development")
	// errShutOut says why it refuses to work beside another controller.
	errShutOut = errors.New("the policy " + policyName + " keeps kube-controller-manager's attach/detach controller from writing volumesAttached, " +
		"and in mode cooperative nobody else does: install Moorage with mode=Cooperative, or delete the policy and its binding")
)

// guardPause is between two attempts to read the policy, guardInterval between
// two looks at it while the controller leads.
const (
	guardPause    = time.Second
	guardInterval = 10 * time.Second
)

// guard sees to it that exactly one controller can write volumesAttached: this
// one in Standalone mode, the other in Cooperative mode.
type guard struct {
	kube        kubernetes.Interface
	cooperative bool
	skip        bool
	interval    time.Duration // guardInterval if zero
}

// await returns nil when the guard stands, and an error when it does not. While
// the API server does not answer, it asks again.
func (g guard) await(ctx context.Context) error {
	for !g.skip {
		err := g.look(ctx)
		if err == nil || decided(err) {
			return err
		}
		klog.FromContext(ctx).Error(err, "Can't tell yet whether the policy for volumesAttached is there; asking again")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(guardPause):
		}
	}
	return nil
}

func decided(err error) bool {
	return errors.Is(err, errUnguarded) || errors.Is(err, errShutOut) || apierrors.IsForbidden(err)
}

// keep does work, which begins when the guard stands, however long ago it was
// found to, and ends when it no longer does.
func (g guard) keep(ctx context.Context, work func(context.Context) error) error {
	if err := g.await(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := g.watch(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Nothing more is written")
			stop(err)
		}
	}()
	err := work(ctx)
	if cause := context.Cause(ctx); cause != nil && decided(cause) {
		err = cause
	}
	stop(nil)
	<-watched
	return err
}

// watch returns the error of a guard that no longer stands, and nil when ctx is
// done. That nobody answers is no reason to stop.
func (g guard) watch(ctx context.Context) error {
	if g.skip {
		return nil
	}
	if g.interval == 0 {
		g.interval = guardInterval
	}
	tick := time.NewTicker(g.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := g.look(ctx); err != nil && decided(err) && ctx.Err() == nil {
			return err
		}
	}
}

// look says whether the guard stands now.
func (g guard) look(ctx context.Context) error {
	err := denies(ctx, g.kube)
	switch {
	case !g.cooperative:
		return err
	case err == nil:
		return errShutOut
	case errors.Is(err, errUnguarded):
		return nil
	}
	return err
}

// denies returns nil when the policy and its binding keep others from writing
// volumesAttached, and errUnguarded when they don't.
func denies(ctx context.Context, kube kubernetes.Interface) error {
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
