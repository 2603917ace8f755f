// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/execute/apitest"
	"github.com/moorage-dev/moorage/internal/observe"
)

func putPolicy(s *apitest.Server) {
	s.Put("validatingadmissionpolicies", &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}})
}

func putBinding(s *apitest.Server, actions ...admissionv1.ValidationAction) {
	s.Put("validatingadmissionpolicybindings", &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policyName, ValidationActions: actions}})
}

// Exactly one of two controllers can write volumesAttached, or nothing begins.
func TestGuard(t *testing.T) {
	tests := map[string]struct {
		setUp       func(*apitest.Server)
		standalone  bool
		cooperative bool
	}{
		"nothing":     {func(*apitest.Server) {}, false, true},
		"not bound":   {putPolicy, false, true},
		"only warned": {func(s *apitest.Server) { putPolicy(s); putBinding(s, admissionv1.Warn) }, false, true},
		"guarded":     {func(s *apitest.Server) { putPolicy(s); putBinding(s, admissionv1.Deny) }, true, false},
	}
	for name, test := range tests {
		server := apitest.Start(t)
		test.setUp(server)
		err := guard{kube: server.Kube}.await(t.Context())
		if (err == nil) != test.standalone || err != nil && !errors.Is(err, errUnguarded) {
			t.Errorf("%s, standalone: %v", name, err)
		}
		err = guard{kube: server.Kube, cooperative: true}.await(t.Context())
		if (err == nil) != test.cooperative || err != nil && !errors.Is(err, errShutOut) {
			t.Errorf("%s, cooperative: %v", name, err)
		}
		if err := (guard{kube: server.Kube, skip: true}).await(t.Context()); err != nil {
			t.Errorf("%s, not to be looked at: %v", name, err)
		}
	}
	// Without an answer nobody knows, and nothing begins.
	server := apitest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	server.Intercept(func(apitest.Request, func()) error {
		cancel()
		return errors.New("no connection")
	})
	if err := (guard{kube: server.Kube}).await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without an API server: %v", err)
	}
}

// Work ends when somebody takes the policy away; not because nobody answers.
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
	server.Remove("validatingadmissionpolicybindings", "", policyName)
	if err := <-ended; !errors.Is(err, errUnguarded) {
		t.Errorf("error %v", err)
	}
}

// A process that waits to lead for a long time looks again before it begins.
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

// Work that ends by itself keeps its result.
func TestGuardOfWorkThatEnds(t *testing.T) {
	server := apitest.Start(t)
	putPolicy(server)
	putBinding(server, admissionv1.Deny)
	mine := errors.New("mine")
	if err := (guard{kube: server.Kube}).keep(t.Context(), func(context.Context) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("error %v", err)
	}
}

// A FlexVolume would wait for ever, so nothing begins.
func TestFlexVolumes(t *testing.T) {
	flex := &corev1.FlexVolumeSource{Driver: "vendor/driver"}
	for name, put := range map[string]func(*apitest.Server){
		"PersistentVolume pv": func(s *apitest.Server) {
			s.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: flex.Driver}}}})
		},
		"pod shop/db": func(s *apitest.Server) {
			s.Put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{FlexVolume: flex}}}}})
		},
	} {
		server := apitest.Start(t)
		put(server)
		observer, err := observe.New(observe.Config{Kube: server.Kube, Moorage: server.Moorage})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { observer.Run(ctx); close(ended) }()
		if err := observer.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		if got := observer.FlexVolume(); got != name {
			t.Errorf("found %q, want %q", got, name)
		}
		for _, c := range []struct {
			config Config
			ok     bool
		}{{Config{Mode: ModeStandalone}, false}, {Config{Mode: ModeStandalone, AllowFlexVolumes: true}, true}, {Config{Mode: ModeCooperative}, true}} {
			if err := (termConfig{Config: c.config, observer: observer}).refuseFlexVolumes(); (err == nil) != c.ok || err != nil && !errors.Is(err, errFlex) {
				t.Errorf("%s, %+v: %v", name, c.config, err)
			}
		}
		cancel()
		<-ended
	}
}
