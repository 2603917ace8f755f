// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/internal/access"
)

// asks is a door to a server that lets everybody in whom the API server lets bind pods.
type asks struct {
	handler http.Handler
	reviews []authorizationv1.SubjectAccessReviewSpec
	let     map[string]bool // users
	fails   error
	passed  int
	now     *clocktesting.FakePassiveClock
}

func newAsks() *asks {
	a := &asks{let: map[string]bool{}, now: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	kube := fake.NewClientset()
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		a.reviews = append(a.reviews, review.Spec)
		review.Status.Allowed = a.let[review.Spec.User]
		return true, review, a.fails
	})
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { a.passed++; w.WriteHeader(http.StatusNoContent) })
	a.handler = Allowing(next, access.NewReviews(kube.AuthorizationV1().SubjectAccessReviews(), a.now))
	return a
}

// ask is a request by whoever showed a certificate for that name, and what is answered.
func (a *asks) ask(t *testing.T, user string, groups ...string) int {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, http.NoBody)
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}}
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w.Code
}

// Only who may bind every pod is let through; the API server is asked by the names in the
// certificate.
func TestWhoMayAsk(t *testing.T) {
	a := newAsks()
	a.let["scheduler"] = true
	if code := a.ask(t, "scheduler", "schedulers"); code != http.StatusNoContent || a.passed != 1 {
		t.Errorf("who may: %d", code)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "scheduler", Groups: []string{"schedulers", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"},
	}
	if got := a.reviews[0]; got.User != want.User || !slices.Equal(got.Groups, want.Groups) || *got.ResourceAttributes != *want.ResourceAttributes {
		t.Errorf("asked: %+v", got)
	}
	if code := a.ask(t, "tenant"); code != http.StatusForbidden {
		t.Errorf("who may not: %d", code)
	}
	if code := a.ask(t, ""); code != http.StatusForbidden || len(a.reviews) != 2 {
		t.Errorf("nobody: %d", code)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, http.NoBody))
	if w.Code != http.StatusForbidden || a.passed != 1 {
		t.Errorf("without TLS: %d", w.Code)
	}
}

// An answer counts for a while, for the same user in the same groups; a right that is taken
// away ends within a minute.
func TestAnswersAreKept(t *testing.T) {
	a := newAsks()
	a.let["scheduler"] = true
	a.ask(t, "scheduler")
	a.ask(t, "scheduler")
	a.ask(t, "tenant")
	a.ask(t, "tenant")
	if len(a.reviews) != 2 {
		t.Errorf("asked %d times", len(a.reviews))
	}
	a.ask(t, "scheduler", "a-group")
	if len(a.reviews) != 3 {
		t.Error("not asked for other groups")
	}
	a.let["scheduler"], a.let["tenant"] = false, true
	a.now.SetTime(a.now.Now().Add(access.NoFor + time.Second))
	if code := a.ask(t, "tenant"); code != http.StatusNoContent {
		t.Errorf("who was given the right: %d", code)
	}
	if code := a.ask(t, "scheduler"); code != http.StatusNoContent {
		t.Errorf("whose answer still counts: %d", code)
	}
	a.now.SetTime(a.now.Now().Add(access.YesFor + time.Second))
	if code := a.ask(t, "scheduler"); code != http.StatusForbidden {
		t.Errorf("whose right was taken: %d", code)
	}
}

// Where the API server does not say, nothing is bound, and nothing is remembered.
func TestNoAnswerIsNoRight(t *testing.T) {
	a := newAsks()
	a.let["scheduler"], a.fails = true, errors.New("down")
	if code := a.ask(t, "scheduler"); code != http.StatusConflict || a.passed != 0 {
		t.Errorf("without an answer: %d", code)
	}
	a.fails = nil
	if code := a.ask(t, "scheduler"); code != http.StatusNoContent {
		t.Errorf("later: %d", code)
	}
}
