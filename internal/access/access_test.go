// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/internal/serving"
)

type cluster struct {
	users  map[string]authenticationv1.UserInfo // by token
	let    map[string]bool                      // users
	fails  error
	tokens int // reviews of either kind
	rights []authorizationv1.SubjectAccessReviewSpec
	now    *clocktesting.FakePassiveClock
	door   http.Handler
}

func newCluster() *cluster {
	c := &cluster{
		users: map[string]authenticationv1.UserInfo{
			"good":  {Username: "prometheus", UID: "1", Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}}},
			"other": {Username: "tenant"},
		},
		let: map[string]bool{"prometheus": true},
		now: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	kube := fake.NewClientset()
	kube.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		c.tokens++
		review.Status.User, review.Status.Authenticated = c.users[review.Spec.Token], c.users[review.Spec.Token].Username != ""
		return true, review, c.fails
	})
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		c.rights = append(c.rights, review.Spec)
		review.Status.Allowed = c.let[review.Spec.User]
		return true, review, c.fails
	})
	s := &Scrapes{
		tokens:  NewTokens(kube.AuthenticationV1().TokenReviews(), c.now),
		reviews: NewReviews(kube.AuthorizationV1().SubjectAccessReviews(), c.now),
	}
	c.door = s.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	return c
}

func (c *cluster) scrape(t *testing.T, authorization string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	c.door.ServeHTTP(w, r)
	if w.Code == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		t.Error("401 without a challenge")
	}
	return w.Code
}

func TestWhoGetsMetrics(t *testing.T) {
	c := newCluster()
	for authorization, want := range map[string]int{
		"Bearer good": http.StatusNoContent, "bearer  good": http.StatusNoContent,
		"Bearer other": http.StatusForbidden, "Bearer forged": http.StatusUnauthorized,
		"": http.StatusUnauthorized, "Bearer": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, "Basic good": http.StatusUnauthorized,
		"Bearer " + strings.Repeat("x", maxToken+1): http.StatusUnauthorized,
	} {
		if got := c.scrape(t, authorization); got != want {
			t.Errorf("%.20q: %d, want %d", authorization, got, want)
		}
	}
	asked := c.rights[0]
	for _, spec := range c.rights {
		if spec.User == "prometheus" {
			asked = spec
		}
	}
	attributes := asked.NonResourceAttributes
	if attributes == nil || attributes.Path != "/metrics" || attributes.Verb != "get" || asked.ResourceAttributes != nil ||
		strings.Join(asked.Groups, " ") != "scrapers "+allAuthenticated || asked.UID != "1" || len(asked.Extra["pod"]) != 1 {
		t.Errorf("asked: %+v", asked)
	}
}

// A lost right or token ends within a minute.
func TestAnswersCountForAWhile(t *testing.T) {
	c := newCluster()
	for range 3 {
		c.scrape(t, "Bearer good")
		c.scrape(t, "Bearer forged")
	}
	if c.tokens != 2 || len(c.rights) != 1 {
		t.Errorf("asked %d times who, and %d times what they may", c.tokens, len(c.rights))
	}
	delete(c.users, "good")
	if got := c.scrape(t, "Bearer good"); got != http.StatusNoContent {
		t.Errorf("whose answer still counts: %d", got)
	}
	c.now.SetTime(c.now.Now().Add(YesFor + time.Second))
	if got := c.scrape(t, "Bearer good"); got != http.StatusUnauthorized {
		t.Errorf("whose token has ended: %d", got)
	}
}

// No answer: no metrics, and nothing is remembered.
func TestWithoutTheAPIServer(t *testing.T) {
	c := newCluster()
	c.fails = errors.New("down, at 10.0.0.1")
	if got := c.scrape(t, "Bearer good"); got != http.StatusServiceUnavailable {
		t.Errorf("%d", got)
	}
	c.fails = nil
	if got := c.scrape(t, "Bearer good"); got != http.StatusNoContent {
		t.Errorf("later: %d", got)
	}
}

func TestNotSecure(t *testing.T) {
	s, err := NewScrapes(false, "", "x")
	if err != nil || s != nil || s.TLS() != nil {
		t.Fatalf("%v, %v", s, err)
	}
	w := httptest.NewRecorder()
	s.Guard(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}

func TestSecureMetrics(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			_, _ = io.WriteString(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"prometheus"}}}`)
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: api.URL}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	scrapes, err := NewScrapes(true, kubeconfig, "test")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrapes.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })))
	at, stop, err := serving.Probes(t.Context(), "127.0.0.1:0", mux, scrapes.TLS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for token, want := range map[string]int{"": http.StatusUnauthorized, "t": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("with token %q: %d, want %d", token, answer.StatusCode, want)
		}
	}
}
