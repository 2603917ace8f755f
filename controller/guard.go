// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// policyName names the ValidatingAdmissionPolicy, which the chart installs in
// Standalone mode, and its binding, which the Standalone controller creates once
// it leads. With both, nobody but this controller writes volumesAttached.
const policyName = "moorage-volumes-attached"

var (
	// errUnguarded is why the controller does not lead in Standalone mode.
	errUnguarded = errors.New("another attach/detach controller could write volumesAttached too: " +
		"apply Moorage's policies (the chart's, or manifests/standalone.yaml), or pass --skip-policy-check for development")
	// errShutOut is why it does not lead in Cooperative mode.
	errShutOut = errors.New("Moorage worked in Standalone mode here, and only its controller may write volumesAttached: " +
		"to go on in Standalone mode, install with mode=Standalone; to hand over to kube-controller-manager's attach/detach controller, " +
		"switch that controller on and install with mode=Cooperative by name, or delete the ValidatingAdmissionPolicyBinding " + policyName)
	// errModeUnknown is why it does not lead in a Cooperative mode that nobody chose.
	errModeUnknown = errors.New("a Moorage that did not say its mode has led here, perhaps in Standalone mode: " +
		"install with mode=Standalone or mode=Cooperative by name")
	// errAnotherRelease is why it does not lead beside another release of Moorage.
	errAnotherRelease = errors.New("another release of Moorage attaches and detaches in this cluster: uninstall one of the two")
)

// guardPause is between two attempts to read the policy, guardInterval between
// two looks at it while the controller leads.
const (
	guardPause    = time.Second
	guardInterval = 10 * time.Second
)

// guard makes sure that exactly one controller can write volumesAttached: this
// one in Standalone mode, kube-controller-manager's in Cooperative mode.
//
// The binding outlives the controller that created it: while nobody leads, the
// other controller must not begin. Only a hand-over or a person removes it. It
// reaches API servers with a delay, so that it stops mistakes; what keeps two
// writers apart at any instant are the tests in each JSON Patch.
type guard struct {
	kube        kubernetes.Interface
	namespace   string // of this release, and of its Lease
	cooperative bool
	handOver    bool // Cooperative: remove the binding of a Standalone controller
	skip        bool
	patience    time.Duration // how long await waits for what an installation has yet to create
	interval    time.Duration // guardInterval if zero
}

// await returns nil when this controller may lead, and an error when it must not.
// While the API server does not answer, it asks again; for the guard's patience also
// while the policy, or the right to read it, is missing.
func (g guard) await(ctx context.Context) error {
	began := time.Now()
	return g.persist(ctx, func(err error) bool {
		return decided(err) && (!beingInstalled(err) || time.Since(began) >= g.patience)
	}, func(ctx context.Context) error {
		_, err := g.check(ctx)
		return err
	})
}

// beingInstalled says whether an installation that is under way can mend the error: Helm
// creates Deployments before the kinds that it does not know, of which
// ValidatingAdmissionPolicy is one, and API servers learn of new roles with a delay.
func beingInstalled(err error) bool {
	return errors.Is(err, errUnguarded) || apierrors.IsForbidden(err)
}

// persist calls look until it returns nil or an error that is final.
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

// decided says whether the API server has answered that this controller must not lead.
func decided(err error) bool {
	for _, final := range []error{errUnguarded, errShutOut, errModeUnknown, errAnotherRelease} {
		if errors.Is(err, final) {
			return true
		}
	}
	return apierrors.IsForbidden(err)
}

// keep does work while this controller alone may write volumesAttached, or in
// Cooperative mode the other one. Work begins after the binding is as the mode
// wants it, and ends when it no longer can be.
func (g guard) keep(ctx context.Context, work func(context.Context) error) error {
	if err := g.persist(ctx, decided, g.establish); err != nil {
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

// watch returns an error when this controller must no longer lead, and nil when
// ctx is done. That the API server does not answer is no reason to stop.
func (g guard) watch(ctx context.Context) error {
	if g.skip {
		return nil
	}
	if g.interval == 0 {
		g.interval = guardInterval
	}
	g.handOver = false // it is over: a binding that comes now is somebody else's
	tick := time.NewTicker(g.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := g.establish(ctx); err != nil && decided(err) && ctx.Err() == nil {
			return err
		}
	}
}

// check reads the binding, nil when there is none, and whether this controller may
// lead. It writes nothing.
func (g guard) check(ctx context.Context) (*admissionv1.ValidatingAdmissionPolicyBinding, error) {
	binding, err := g.binding(ctx)
	switch {
	case err != nil:
		return nil, err
	case binding != nil && g.foreign(binding):
		return binding, fmt.Errorf("the ValidatingAdmissionPolicyBinding %s belongs to the release in namespace %s: %w",
			policyName, binding.Annotations[v1alpha1.AnnotationRelease], errAnotherRelease)
	case !g.cooperative:
		return binding, g.policyStands(ctx, binding)
	case g.handOver:
		return binding, nil
	case binding != nil:
		return binding, errShutOut
	}
	return nil, g.modeBefore(ctx)
}

// establish creates the binding in Standalone mode where it is missing, and
// removes it where a Standalone controller hands over.
func (g guard) establish(ctx context.Context) error {
	binding, err := g.check(ctx)
	if err != nil || g.cooperative == (binding == nil) {
		return err
	}
	bindings := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	if !g.cooperative {
		klog.FromContext(ctx).Info("From now on nobody else writes volumesAttached", "binding", policyName)
		_, err := bindings.Create(ctx, g.newBinding(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
		}
		return nil
	}
	klog.FromContext(ctx).Info("volumesAttached is handed over to kube-controller-manager's attach/detach controller", "binding", policyName)
	err = bindings.Delete(ctx, policyName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &binding.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ValidatingAdmissionPolicyBinding %s: %w", policyName, err)
	}
	return nil
}

// newBinding is the binding of this release.
func (g guard) newBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:        policyName,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelPartOf: v1alpha1.PartOf},
			Annotations: map[string]string{v1alpha1.AnnotationRelease: g.namespace},
		},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// binding reads the binding: nil when there is none.
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

// foreign says whether a binding names another release. One that names none was
// installed by an older chart, or by hand.
func (g guard) foreign(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	release := b.Annotations[v1alpha1.AnnotationRelease]
	return release != "" && release != g.namespace
}

// policyStands returns nil when the policy is there, and the binding, if it is
// there, denies.
func (g guard) policyStands(ctx context.Context, binding *admissionv1.ValidatingAdmissionPolicyBinding) error {
	_, err := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, policyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the ValidatingAdmissionPolicy %s is missing: %w", policyName, errUnguarded)
	case err != nil:
		return fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", policyName, err)
	case binding != nil && (binding.Spec.PolicyName != policyName || !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny)):
		return fmt.Errorf("the ValidatingAdmissionPolicyBinding %s does not deny: %w", policyName, errUnguarded)
	}
	return nil
}

// modeBefore returns nil unless a Moorage has led here in a mode that is not
// known to have been Cooperative: its Lease bears the mode since 0.3.
func (g guard) modeBefore(ctx context.Context) error {
	lease, err := g.kube.CoordinationV1().Leases(g.namespace).Get(ctx, v1alpha1.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Lease %s/%s: %w", g.namespace, v1alpha1.ControllerName, err)
	}
	switch mode := lease.Labels[v1alpha1.LabelMode]; {
	case strings.EqualFold(mode, ModeCooperative):
		return nil
	case mode == "":
		return errModeUnknown
	}
	return errShutOut
}
