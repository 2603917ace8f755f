// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"crypto/tls"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/serving"
)

// allowing lets those through to next who may bind every pod.
type allowing struct {
	next    http.Handler
	reviews *access.Reviews
}

// Allowing lets requests through to next whose sender may create pods/binding in every
// namespace, as the API server says (SubjectAccessReview). The sender is whom the
// certificate of its connection names: user and groups, as the API server reads them.
func Allowing(next http.Handler, reviews *access.Reviews) http.Handler {
	return &allowing{next: next, reviews: reviews}
}

// ServeHTTP implements http.Handler.
func (a *allowing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, groups := sender(r.TLS)
	if user == "" {
		forbid(w, "the connection's certificate names nobody")
		return
	}
	allowed, err := a.reviews.May(r.Context(), authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"},
	})
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
