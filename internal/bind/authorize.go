// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/serving"
)

// How long an answer of the API server counts, which says whether somebody may bind pods,
// and how long a question takes at most.
const (
	allowedFor    = time.Minute
	deniedFor     = 10 * time.Second
	reviewTimeout = 2 * time.Second
)

// maxAskers bounds of how many askers an answer is kept.
const maxAskers = 1000

// Reviews is what Allowing asks the API server by.
type Reviews = authorizationclient.SubjectAccessReviewInterface

// allowing lets those through to next who may bind every pod.
type allowing struct {
	next    http.Handler
	reviews Reviews
	now     func() time.Time

	mu    sync.Mutex
	known map[string]answered
}

type answered struct {
	allowed bool
	until   time.Time
}

// Allowing lets requests through to next whose sender may create pods/binding in every
// namespace, as the API server says (SubjectAccessReview). The sender is whom the
// certificate of its connection names: user and groups, as the API server reads them.
func Allowing(next http.Handler, reviews Reviews) http.Handler {
	return &allowing{next: next, reviews: reviews, now: time.Now, known: map[string]answered{}}
}

// ServeHTTP implements http.Handler.
func (a *allowing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, groups := sender(r.TLS)
	if user == "" {
		forbid(w, "the connection's certificate names nobody")
		return
	}
	allowed, err := a.may(r.Context(), user, groups)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "It can't be found out who may bind pods", "user", user)
		serving.WriteError(w, server, useTicket(err))
	case !allowed:
		forbid(w, fmt.Sprintf("%q may not create pods/binding in every namespace", user))
	default:
		a.next.ServeHTTP(w, r)
	}
}

func forbid(w http.ResponseWriter, why string) {
	serving.WriteError(w, server, &serving.RequestError{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: why})
}

// sender is whom a connection's verified certificate names, as the API server reads it
// (k8s.io/apiserver, authentication/request/x509, CommonNameUserConversion).
func sender(connection *tls.ConnectionState) (user string, groups []string) {
	if connection == nil || len(connection.VerifiedChains) == 0 {
		return "", nil
	}
	subject := connection.VerifiedChains[0][0].Subject
	return subject.CommonName, subject.Organization
}

// may says whether somebody may bind every pod.
func (a *allowing) may(ctx context.Context, user string, groups []string) (bool, error) {
	key := user + "\x00" + strings.Join(groups, "\x00")
	now := a.now()
	a.mu.Lock()
	last, known := a.known[key]
	a.mu.Unlock()
	if known && now.Before(last.until) {
		return last.allowed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: append(slices.Clone(groups), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server whether %q may bind pods: %w", user, err)
	}
	next := answered{allowed: review.Status.Allowed, until: now.Add(deniedFor)}
	if next.allowed {
		next.until = now.Add(allowedFor)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAskers {
		clear(a.known)
	}
	a.known[key] = next
	return next.allowed, nil
}
