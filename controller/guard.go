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

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// policyName names the chart's ValidatingAdmissionPolicy and the Standalone leader's binding. With both,
// only this controller writes volumesAttached.
const (
	policyName = "moorage-volumes-attached"
	policyKind = "ValidatingAdmissionPolicy"
)

var (
	errUnguarded = errors.New("another attach/detach controller could write volumesAttached too: " +
		"apply Moorage's policies (the chart's, or manifests/policies.yaml), or pass --skip-policy-check for development")
	// errStandalone ends a process in Cooperative mode: a Standalone controller has led meanwhile.
	errStandalone     = errors.New("Standalone mode has begun meanwhile: this process ends, and the next one goes on in that mode")
	errHandOver       = errors.New("Standalone mode is handed over: this process ends, and the next one works in Cooperative mode")
	errAnotherRelease = errors.New("another release of Moorage attaches and detaches in this cluster: uninstall one of the two")
)

// guardPause is between attempts to read the policy, guardInterval between a leader's looks.
const (
	guardPause    = time.Second
	guardInterval = 10 * time.Second
)

// guard makes sure that exactly one controller can write volumesAttached: this one in Standalone mode,
// kube-controller-manager's in Cooperative mode.
//
// The binding outlives its controller: without a leader, kube-controller-manager must not begin. With a
// binding, a controller installed for Cooperative mode continues in Standalone mode: after a rollback no
// controller would attach otherwise, since kube-controller-manager's is off or refused, and Moorage's waits
// for it. A person ends Standalone mode by an annotation of the binding, or deletes the policy for good,
// and the garbage collector deletes the binding. If the policy is made again, with another UID, the leader
// remakes the binding.
//
// The binding reaches API servers with a delay: it stops mistakes. The tests in each JSON Patch keep two
// writers apart at any instant.
type guard struct {
	kube        kubernetes.Interface
	namespace   string // of this release
	cooperative bool
	goesOn      bool // Standalone mode that a person may hand over
	leads       bool // no other process has led since this one saw or made the binding
	skip        bool
	patience    time.Duration // await's time for an installation's missing objects
	interval    time.Duration // guardInterval if zero
}

// settle returns the mode's guard: Standalone while that mode stands, even if installed for Cooperative
// mode.
func (g guard) settle(ctx context.Context) (guard, error) {
	if !g.cooperative {
		return g, nil
	}
	err := g.patiently(ctx, func(ctx context.Context) error {
		binding, err := g.binding(ctx)
		if err == nil {
			g.goesOn, err = g.stands(ctx, binding)
		}
		return err
	})
	g.cooperative = !g.goesOn
	return g, err
}

// await returns nil when this controller may lead.
func (g guard) await(ctx context.Context) error {
	return g.patiently(ctx, func(ctx context.Context) error {
		_, err := g.check(ctx)
		return err
	})
}

// patiently calls look until nil or a final error. A silent API server is never final. For the guard's
// patience, a missing policy or right is not final either.
func (g guard) patiently(ctx context.Context, look func(context.Context) error) error {
	began := time.Now()
	return g.persist(ctx, func(err error) bool {
		return decided(err) && (!beingInstalled(err) || time.Since(began) >= g.patience)
	}, look)
}

// beingInstalled: a running installation can mend the error: Helm creates Deployments before kinds unknown
// to it, such as ValidatingAdmissionPolicy, and API servers learn of roles with a delay.
func beingInstalled(err error) bool {
	return errors.Is(err, errUnguarded) || apierrors.IsForbidden(err)
}

func (g guard) persist(ctx context.Context, final func(error) bool, look func(context.Context) error) error {
	for !g.skip {
		err := look(ctx)
		if err == nil || final(err) {
			return err
		}
		klog.FromContext(ctx).Error(err, "Can't tell yet who may write volumesAttached; asking again")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(guardPause):
		}
	}
	return nil
}

// decided: the API server's answer forbids leading.
func decided(err error) bool {
	for _, final := range []error{errUnguarded, errStandalone, errHandOver, errAnotherRelease} {
		if errors.Is(err, final) {
			return true
		}
	}
	return apierrors.IsForbidden(err)
}

// keep does work while only this controller may write volumesAttached, or in Cooperative mode
// kube-controller-manager's: from when the binding fits the mode until it no longer can.
func (g guard) keep(ctx context.Context, work func(context.Context) error) error {
	if err := g.persist(ctx, decided, g.establish); err != nil {
		return err
	}
	g.leads = true
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

// watch returns an error when this controller must stop leading; nil: ctx is done. A silent API server is
// no reason.
func (g guard) watch(ctx context.Context) error {
	if g.skip {
		return nil
	}
	if g.interval == 0 {
		g.interval = guardInterval
	}
	tick := time.NewTicker(g.interval)
	defer tick.Stop()
	missed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := g.establish(ctx)
		if g.goesOn && errors.Is(err, errUnguarded) && !missed {
			missed = true // a tool may replace the policy; the next process would have the wrong mode
			continue
		}
		if err != nil && decided(err) && ctx.Err() == nil {
			return err
		}
		missed = missed && err != nil // a look without an answer does not count
	}
}

// seen is the guard's basis; nil: missing.
type seen struct {
	policy  *admissionv1.ValidatingAdmissionPolicy // not read in Cooperative mode
	binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// check reads the binding and the policy, and whether this controller may lead. It writes nothing.
//
// Before it leads, a controller that goes on in Standalone mode takes a missing binding as handed over:
// another leader may have removed it. While it leads, no other process can have done so.
func (g guard) check(ctx context.Context) (seen, error) {
	binding, err := g.binding(ctx)
	is := seen{binding: binding}
	switch {
	case err != nil:
		return is, err
	case binding != nil && g.foreign(binding):
		return is, fmt.Errorf("the ValidatingAdmissionPolicyBinding %s belongs to the release in namespace %s: %w",
			policyName, binding.Annotations[v1alpha1.AnnotationRelease], errAnotherRelease)
	case g.goesOn && (binding == nil && !g.leads || binding != nil && handsOver(binding)):
		return is, errHandOver
	case !g.cooperative:
		is.policy, err = g.policyStands(ctx, binding)
		return is, err
	}
	stands, err := g.stands(ctx, binding)
	if err == nil && stands {
		err = errStandalone
	}
	return is, err
}

// establish creates a missing or outdated binding in Standalone mode. In Cooperative mode it removes a
// binding that is handed over or has no effect.
func (g guard) establish(ctx context.Context) error {
	is, err := g.check(ctx)
	switch {
	case err != nil:
		return err
	case g.cooperative && is.binding != nil:
		klog.FromContext(ctx).Info("volumesAttached is handed over to kube-controller-manager's attach/detach controller", "binding", policyName)
		return g.unbind(ctx, is.binding)
	case g.cooperative:
		return nil
	case is.binding != nil && !outlives(is.binding, is.policy):
		return nil
	case is.binding != nil:
		// The garbage collector deletes it anyway. A write since the read makes this fail.
		if err := g.unbind(ctx, is.binding); err != nil {
			return err
		}
	}
	return g.bind(ctx, is.policy)
}

// outlives: the binding is an earlier policy's. An older chart, or a person, set no owner.
func outlives(b *admissionv1.ValidatingAdmissionPolicyBinding, policy *admissionv1.ValidatingAdmissionPolicy) bool {
	earlier := false
	for _, owner := range b.OwnerReferences {
		if owner.Kind != policyKind || owner.Name != policyName {
			continue
		}
		if owner.UID == policy.UID {
			return false
		}
		earlier = true
	}
	return earlier
}

// unbind deletes only the version that was read.
func (g guard) unbind(ctx context.Context, b *admissionv1.ValidatingAdmissionPolicyBinding) error {
	as := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion}}
	err := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, policyName, as)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
	}
	return nil
}

// bind creates this release's binding. The policy owns it: both are deleted together, and a later
// installation does not find it.
func (g guard) bind(ctx context.Context, policy *admissionv1.ValidatingAdmissionPolicy) error {
	klog.FromContext(ctx).Info("From now on nobody else writes volumesAttached", "binding", policyName)
	_, err := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, g.newBinding(policy), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
	}
	return nil
}

func (g guard) newBinding(policy *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:        policyName,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelPartOf: v1alpha1.PartOf},
			Annotations: map[string]string{v1alpha1.AnnotationRelease: g.namespace},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: policyKind, Name: policyName, UID: policy.UID,
			}},
		},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// binding is nil if there is none.
func (g guard) binding(ctx context.Context) (*admissionv1.ValidatingAdmissionPolicyBinding, error) {
	binding, err := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, policyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
	}
	return binding, nil
}

// foreign: the binding names another release. An older chart, or a person, named no release.
func (g guard) foreign(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	release := b.Annotations[v1alpha1.AnnotationRelease]
	return release != "" && release != g.namespace
}

// policy is nil if there is none.
func (g guard) policy(ctx context.Context) (*admissionv1.ValidatingAdmissionPolicy, error) {
	policy, err := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, policyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", policyName, err)
	}
	return policy, nil
}

// policyStands errs unless the policy exists and any binding denies.
func (g guard) policyStands(ctx context.Context, binding *admissionv1.ValidatingAdmissionPolicyBinding) (*admissionv1.ValidatingAdmissionPolicy, error) {
	policy, err := g.policy(ctx)
	switch {
	case err != nil:
		return nil, err
	case policy == nil:
		return nil, fmt.Errorf("the ValidatingAdmissionPolicy %s is missing: %w", policyName, errUnguarded)
	case binding != nil && !denies(binding):
		return nil, fmt.Errorf("the ValidatingAdmissionPolicyBinding %s does not deny: %w", policyName, errUnguarded)
	}
	return policy, nil
}

// stands: policy and binding keep others from writing volumesAttached, without a request to hand over.
func (g guard) stands(ctx context.Context, binding *admissionv1.ValidatingAdmissionPolicyBinding) (bool, error) {
	if binding == nil || !denies(binding) || handsOver(binding) {
		return false, nil
	}
	policy, err := g.policy(ctx)
	return policy != nil, err
}

func denies(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	return b.Spec.PolicyName == policyName && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
}

// handsOver says whether a person has asked to end Standalone mode.
func handsOver(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	return b.Annotations[v1alpha1.AnnotationHandOver] == "true"
}
