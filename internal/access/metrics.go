// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/serving"
)

// Limits of scrapes' requests, by their own client: invalid tokens cost this process no writes.
const (
	reviewQPS   = 5
	reviewBurst = 10
)

// SecureMetricsHelp is the help of --secure-metrics.
const SecureMetricsHelp = "serve probes and metrics over TLS, and /metrics only to bearer tokens whose account may get it, as the API server says"

// maxToken is in bytes.
const maxToken = 64 << 10

// Scrapes decides who may get metrics. Nil: all, without TLS.
type Scrapes struct {
	tokens  *Tokens
	reviews *Reviews
	tls     *tls.Config
}

// NewScrapes lets in bearer tokens that the API server lets get the path, as controller-runtime's filters
// and kube-scheduler do. Empty kubeconfig: a pod; name is the component. It signs its own certificate:
// scrapers reach pods by address, and no authority certifies these. Not secure: nil.
func NewScrapes(secure bool, kubeconfig, name string) (*Scrapes, error) {
	if !secure {
		return nil, nil
	}
	config, err := connect.Rest(kubeconfig, name)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = reviewQPS, reviewBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client that asks who may get metrics: %w", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	return &Scrapes{
		tokens:  NewTokens(client.AuthenticationV1().TokenReviews(), clock.RealClock{}),
		reviews: NewReviews(client.AuthorizationV1().SubjectAccessReviews(), clock.RealClock{}),
		tls:     &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}, nil
}

// TLS is the metrics' configuration; nil: without TLS.
func (s *Scrapes) TLS() *tls.Config {
	if s == nil {
		return nil
	}
	return s.tls
}

// Guard passes permitted requests to next.
func (s *Scrapes) Guard(next http.Handler) http.Handler {
	if s == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := s.refuse(r); refusal != nil {
			if refusal.Code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			serving.WriteError(w, "metrics", refusal)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse says why a request is refused; nil: it is not.
func (s *Scrapes) refuse(r *http.Request) *serving.RequestError {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return &serving.RequestError{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized,
			Message: "send the bearer token of an account that may get the nonResourceURL " + r.URL.Path}
	}
	user, err := s.tokens.Who(r.Context(), token)
	if err != nil {
		return unknown(r, err)
	}
	if user == nil {
		return &serving.RequestError{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "the API server does not know the token"}
	}
	question := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}
	for name, values := range user.Extra {
		if question.Extra == nil {
			question.Extra = map[string]authorizationv1.ExtraValue{}
		}
		question.Extra[name] = authorizationv1.ExtraValue(values)
	}
	switch may, err := s.reviews.May(r.Context(), question); {
	case err != nil:
		return unknown(r, err)
	case !may:
		return &serving.RequestError{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("%q may not %s the nonResourceURL %s", user.Username, question.NonResourceAttributes.Verb, r.URL.Path)}
	}
	return nil
}

// unknown: the API server did not answer. Its error goes only to the log.
func unknown(r *http.Request, err error) *serving.RequestError {
	klog.FromContext(r.Context()).Error(err, "It can't be found out who may get metrics")
	return serving.Unavailable("the API server does not say who may get metrics")
}
