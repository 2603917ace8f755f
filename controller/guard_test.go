// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/test/apitest"
)

func putPolicy(s *apitest.Server) {
	s.Put("validatingadmissionpolicies", &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}})
}

func putBinding(s *apitest.Server, actions ...admissionv1.ValidationAction) {
	s.Put("validatingadmissionpolicybindings", &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policyName, ValidationActions: actions}})
}

func putBindingOf(s *apitest.Server, release string) *admissionv1.ValidatingAdmissionPolicyBinding {
	b := guard{namespace: release}.newBinding(&admissionv1.ValidatingAdmissionPolicy{})
	s.Put("validatingadmissionpolicybindings", b)
	return b
}

func askHandOver(s *apitest.Server) {
	var b admissionv1.ValidatingAdmissionPolicyBinding
	s.Get("validatingadmissionpolicybindings", "", policyName, &b)
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.AnnotationHandOver, "true")
	s.Put("validatingadmissionpolicybindings", &b)
}

func (g guard) leadMode(ctx context.Context) (standalone bool, err error) {
	if g, err = g.settle(ctx); err != nil {
		return false, err
	}
	return !g.cooperative, g.await(ctx)
}

// Exactly one controller may be able to write volumesAttached. If Standalone mode stands, a Cooperative
// controller goes on in it.
func TestGuard(t *testing.T) {
	guarded := func(s *apitest.Server) { putPolicy(s); putBindingOf(s, "moorage-system") }
	tests := map[string]struct {
		setUp                   func(*apitest.Server)
		standalone, cooperative error
		goesOn                  bool
	}{
		"nothing":                 {func(*apitest.Server) {}, errUnguarded, nil, false},
		"not bound":               {putPolicy, nil, nil, false},
		"only warned":             {func(s *apitest.Server) { putPolicy(s); putBinding(s, admissionv1.Warn) }, errUnguarded, nil, false},
		"guarded":                 {guarded, nil, nil, true},
		"guarded by an old chart": {func(s *apitest.Server) { putPolicy(s); putBinding(s, admissionv1.Deny) }, nil, nil, true},
		"guarded by another":      {func(s *apitest.Server) { putPolicy(s); putBindingOf(s, "storage") }, errAnotherRelease, errAnotherRelease, true},
		"handed over":             {func(s *apitest.Server) { guarded(s); askHandOver(s) }, nil, nil, false},
		"without its policy":      {func(s *apitest.Server) { putBindingOf(s, "moorage-system") }, errUnguarded, nil, false},
	}
	for name, test := range tests {
		server := apitest.Start(t)
		test.setUp(server)
		for mode, c := range map[string]struct {
			guard  guard
			want   error
			goesOn bool
		}{
			"standalone":  {guard{}, test.standalone, true},
			"cooperative": {guard{cooperative: true}, test.cooperative, test.goesOn},
			"skipped":     {guard{cooperative: true, skip: true}, nil, false},
		} {
			c.guard.kube, c.guard.namespace = server.Kube, "moorage-system"
			if standalone, err := c.guard.leadMode(t.Context()); !errors.Is(err, c.want) || standalone != c.goesOn {
				t.Errorf("%s, %s: in Standalone mode: %v, want %v; error %v, want %v", name, mode, standalone, c.goesOn, err, c.want)
			}
		}
		if writes := server.Writes(); len(writes) > 0 {
			t.Errorf("%s: it wrote %v before it leads", name, writes)
		}
	}
	server := apitest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	server.Intercept(func(apitest.Request, func()) error {
		cancel()
		return errors.New("no connection")
	})
	if _, err := (guard{kube: server.Kube, cooperative: true}).leadMode(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without an API server: %v", err)
	}
}

// Helm creates the policy after the controller, and the right to read it arrives late.
func TestGuardWaitsForTheInstallation(t *testing.T) {
	server := apitest.Start(t)
	refusals := []func() error{
		func() error { return nil }, // there is none yet
		func() error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingadmissionpolicies"}, policyName, nil)
		},
		func() error { putPolicy(server); return nil },
	}
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.String() == "get validatingadmissionpolicies "+policyName && len(refusals) > 0 {
			next := refusals[0]
			refusals = refusals[1:]
			if err := next(); err != nil {
				return err
			}
		}
		serve()
		return nil
	})
	if err := (guard{kube: server.Kube, namespace: "moorage-system", patience: time.Hour}).await(t.Context()); err != nil {
		t.Errorf("the policy came, and still: %v", err)
	}
	if len(refusals) > 0 {
		t.Errorf("it went on before the policy was there")
	}
	putBindingOf(server, "storage")
	if err := (guard{kube: server.Kube, namespace: "moorage-system", patience: time.Hour}).await(t.Context()); !errors.Is(err, errAnotherRelease) {
		t.Errorf("beside another release: %v", err)
	}
}

func bound(server *apitest.Server) bool {
	return server.Get("validatingadmissionpolicybindings", "", policyName, &admissionv1.ValidatingAdmissionPolicyBinding{})
}

// A Cooperative controller removes the binding only when a person asks for it.
func TestBindingOfTheLeader(t *testing.T) {
	server := apitest.Start(t)
	putPolicy(server)
	lead := func(installed guard, want bool) error {
		t.Helper()
		installed.kube, installed.namespace = server.Kube, "moorage-system"
		g, err := installed.settle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return g.keep(t.Context(), func(context.Context) error {
			if bound(server) != want {
				t.Errorf("while it works, bound is %v, want %v", !want, want)
			}
			return nil
		})
	}
	if err := lead(guard{cooperative: true}, false); err != nil {
		t.Errorf("cooperative, at first: %v", err)
	}
	if err := lead(guard{}, true); err != nil || !bound(server) {
		t.Errorf("error %v, bound afterwards: %v", err, bound(server))
	}
	if err := lead(guard{cooperative: true}, true); err != nil || !bound(server) {
		t.Errorf("after a rollback: error %v, bound afterwards: %v", err, bound(server))
	}
	askHandOver(server)
	if err := lead(guard{}, true); err != nil || !bound(server) {
		t.Errorf("installed for Standalone mode: error %v, bound afterwards: %v", err, bound(server))
	}
	if err := lead(guard{cooperative: true}, false); err != nil || bound(server) {
		t.Errorf("handed over: error %v, bound afterwards: %v", err, bound(server))
	}
}

// Two modes never work in one process.
func TestModeChanges(t *testing.T) {
	for name, test := range map[string]struct {
		before bool // others are kept from writing volumesAttached
		change func(*apitest.Server)
		want   error
	}{
		"a Standalone controller leads": {false, func(s *apitest.Server) { putBindingOf(s, "moorage-system") }, errStandalone},
		"handed over":                   {true, askHandOver, errHandOver},
		"the policy is deleted": {true, func(s *apitest.Server) {
			s.Remove("validatingadmissionpolicies", "", policyName)
			s.Remove("validatingadmissionpolicybindings", "", policyName)
		}, errUnguarded},
	} {
		server := apitest.Start(t)
		putPolicy(server)
		if test.before {
			putBindingOf(server, "moorage-system")
		}
		g, err := guard{kube: server.Kube, namespace: "moorage-system", cooperative: true, interval: time.Millisecond}.settle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = g.keep(t.Context(), func(ctx context.Context) error {
			test.change(server)
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
	}
}

func TestPolicyOwnsTheBinding(t *testing.T) {
	server := apitest.Start(t)
	server.Put("validatingadmissionpolicies", &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName, UID: "the-policy"}})
	if err := (guard{kube: server.Kube, namespace: "moorage-system"}).keep(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var b admissionv1.ValidatingAdmissionPolicyBinding
	server.Get("validatingadmissionpolicybindings", "", policyName, &b)
	if owners := b.OwnerReferences; len(owners) != 1 || owners[0].UID != "the-policy" || owners[0].Name != policyName {
		t.Errorf("its owners are %v", owners)
	}
}

func putPolicyOf(s *apitest.Server, uid types.UID) {
	s.Put("validatingadmissionpolicies", &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName, UID: uid}})
}

func ownedBy(s *apitest.Server, uid types.UID) bool {
	var b admissionv1.ValidatingAdmissionPolicyBinding
	return s.Get("validatingadmissionpolicybindings", "", policyName, &b) && len(b.OwnerReferences) == 1 && b.OwnerReferences[0].UID == uid
}

func comesBack(ctx context.Context, s *apitest.Server, uid types.UID) error {
	end := time.After(patience)
	for !ownedBy(s, uid) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return errors.New("the binding does not come back")
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Without a hand-over, the lost binding comes back, also for a new policy.
func TestBindingComesBack(t *testing.T) {
	unbind := func(s *apitest.Server) { s.Remove("validatingadmissionpolicybindings", "", policyName) }
	remade := func(s *apitest.Server) {
		s.Remove("validatingadmissionpolicies", "", policyName)
		putPolicyOf(s, "second")
	}
	for name, test := range map[string]struct {
		change func(*apitest.Server)
		owner  types.UID
	}{
		"somebody deletes it":                   {unbind, "first"},
		"the policy is replaced":                {remade, "second"},
		"and the garbage collector was at work": {func(s *apitest.Server) { remade(s); unbind(s) }, "second"},
	} {
		for _, cooperative := range []bool{false, true} {
			server := apitest.Start(t)
			putPolicyOf(server, "first")
			g := guard{kube: server.Kube, namespace: "moorage-system", interval: time.Millisecond}
			if err := g.establish(t.Context()); err != nil || !ownedBy(server, "first") {
				t.Fatalf("%s: not bound at first, error %v", name, err)
			}
			g.cooperative = cooperative
			g, err := g.settle(t.Context())
			if err != nil || g.cooperative || g.goesOn != cooperative {
				t.Fatalf("%s: it does not go on in Standalone mode, error %v", name, err)
			}
			err = g.keep(t.Context(), func(ctx context.Context) error {
				test.change(server)
				return comesBack(ctx, server, test.owner)
			})
			if err != nil {
				t.Errorf("%s, installed for Cooperative mode %t: error %v", name, cooperative, err)
			}
		}
	}
}

// Otherwise the next process would work in the other installed mode.
func TestPolicyIsMissingForAMoment(t *testing.T) {
	server := apitest.Start(t)
	putPolicyOf(server, "first")
	if err := (guard{kube: server.Kube, namespace: "moorage-system"}).establish(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := guard{kube: server.Kube, namespace: "moorage-system", cooperative: true, interval: time.Millisecond}.settle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = g.keep(t.Context(), func(ctx context.Context) error {
		replaced := false
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.String() != "get validatingadmissionpolicies "+policyName || replaced {
				serve()
				return nil
			}
			replaced = true
			server.Remove("validatingadmissionpolicies", "", policyName)
			server.Remove("validatingadmissionpolicybindings", "", policyName)
			serve() // it finds none
			putPolicyOf(server, "second")
			return nil
		})
		return comesBack(ctx, server, "second")
	})
	if err != nil {
		t.Errorf("error %v", err)
	}
}

// A process that waited during the hand-over does not bind again.
func TestHandOverIsNotUndone(t *testing.T) {
	server := apitest.Start(t)
	putPolicyOf(server, "first")
	of := guard{kube: server.Kube, namespace: "moorage-system"}
	if err := of.establish(t.Context()); err != nil {
		t.Fatal(err)
	}
	of.cooperative = true
	waits, err := of.settle(t.Context())
	if err != nil || !waits.goesOn {
		t.Fatalf("it goes on: %t, error %v", waits.goesOn, err)
	}
	server.Remove("validatingadmissionpolicies", "", policyName)
	putPolicyOf(server, "second")
	waits.leads = true
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" {
			askHandOver(server)
		}
		serve()
		return nil
	})
	if err := waits.establish(t.Context()); err == nil || !ownedBy(server, "first") {
		t.Errorf("a hand-over is lost, error %v", err)
	}
	if err := waits.establish(t.Context()); !errors.Is(err, errHandOver) {
		t.Errorf("handed over: error %v", err)
	}
	server.Intercept(nil)
	waits.leads = false
	server.Remove("validatingadmissionpolicybindings", "", policyName)
	err = waits.keep(t.Context(), func(context.Context) error {
		t.Error("the work begins")
		return nil
	})
	if !errors.Is(err, errHandOver) || bound(server) {
		t.Errorf("handed over while it waited: error %v, bound %t", err, bound(server))
	}
}

// A missing answer does not end the work.
func TestGuardIsKept(t *testing.T) {
	server := apitest.Start(t)
	putPolicy(server)
	putBinding(server, admissionv1.Deny)
	asked := make(chan struct{}, 1000)
	began, ended := make(chan struct{}), make(chan error, 1)
	g := guard{kube: server.Kube, interval: time.Millisecond}
	go func() {
		ended <- g.keep(t.Context(), func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			return nil
		})
	}()
	<-began
	server.Intercept(func(_ apitest.Request, serve func()) error {
		select {
		case asked <- struct{}{}:
		default:
		}
		return errors.New("no connection")
	})
	<-asked
	<-asked
	select {
	case err := <-ended:
		t.Fatalf("the work ended without an answer: %v", err)
	default:
	}
	server.Intercept(nil)
	server.Remove("validatingadmissionpolicies", "", policyName)
	if err := <-ended; !errors.Is(err, errUnguarded) {
		t.Errorf("error %v", err)
	}
}

// A waiting process looks again before it begins.
func TestGuardIsGoneBeforeWorkBegins(t *testing.T) {
	server := apitest.Start(t)
	putPolicy(server)
	putBinding(server, admissionv1.Deny)
	g := guard{kube: server.Kube, interval: time.Hour}
	if err := g.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Remove("validatingadmissionpolicies", "", policyName)
	err := g.keep(t.Context(), func(context.Context) error {
		t.Error("the work begins")
		return nil
	})
	if !errors.Is(err, errUnguarded) {
		t.Errorf("error %v", err)
	}
}

func TestGuardOfWorkThatEnds(t *testing.T) {
	server := apitest.Start(t)
	putPolicy(server)
	putBinding(server, admissionv1.Deny)
	mine := errors.New("mine")
	if err := (guard{kube: server.Kube}).keep(t.Context(), func(context.Context) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("error %v", err)
	}
}

func TestFlexVolumes(t *testing.T) {
	flex := &corev1.FlexVolumeSource{Driver: "vendor/driver"}
	volume := func(s *apitest.Server) {
		s.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: flex.Driver}}}})
	}
	pod := func(s *apitest.Server) {
		s.Put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{FlexVolume: flex}}}}})
	}
	standalone := Config{Mode: ModeStandalone}
	for name, test := range map[string]struct {
		put    []func(*apitest.Server)
		config Config
		told   int
	}{
		"a PersistentVolume and a pod": {[]func(*apitest.Server){volume, pod}, standalone, 2},
		"cooperative":                  {[]func(*apitest.Server){volume, pod}, Config{Mode: ModeCooperative}, 0},
		"a tenant's pod":               {[]func(*apitest.Server){pod}, standalone, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			for _, put := range test.put {
				put(server)
			}
			observer, err := watch.New(watch.Config{Kube: server.Kube, Moorage: server.Moorage})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { observer.Run(ctx); close(ended) }()
			defer func() { cancel(); <-ended }()
			if err := observer.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
			recorder := record.NewFakeRecorder(10)
			c := termConfig{Config: test.config, observer: observer, events: report.NewEventsWith(recorder)}
			var flex flexVolumes
			flex.tell(c)
			flex.tell(c)
			if len(recorder.Events) != test.told {
				t.Errorf("told %d times", len(recorder.Events))
			}
			for range test.told {
				if event := <-recorder.Events; !strings.Contains(event, "FlexVolumeNotAttached") {
					t.Errorf("event %s", event)
				}
			}
		})
	}
}
