// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/client"
)

type Request struct {
	Verb     string // get, list, watch, create, update, patch, delete
	Resource string // plural, with "/status" for the subresource
	Name     string // with its namespace, if it has one
	Body     string
}

func (r Request) String() string { return strings.TrimSpace(r.Verb + " " + r.Resource + " " + r.Name) }

func (r Request) Writes() bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete"
}

// Server is the API server. Its methods are safe for parallel use.
type Server struct {
	Kube    kubernetes.Interface
	Moorage client.Interface
	Any     dynamic.Interface
	URL     string

	t      *testing.T
	ending chan struct{}

	mu        sync.Mutex
	changed   *sync.Cond
	version   int
	objects   map[string]object // by resource/namespace/name
	history   []event
	requests  []Request
	intercept func(Request, func()) error
	outages   int               // how many there were
	out       bool              // there is one now
	lags      bool              // watches show nothing new
	unknown   map[string]string // field of status that is dropped, by resource
	compacted int               // the history before this version is lost
}

// Start returns a server that ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{t: t, version: 100, objects: map[string]object{}, ending: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	web := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.ending)
		s.wake()
		web.CloseClientConnections()
		web.Close()
	})
	s.URL = web.URL
	config := &rest.Config{Host: web.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	s.Kube = kubernetes.NewForConfigOrDie(config)
	own, err := client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s.Moorage, s.Any = own, dynamic.NewForConfigOrDie(config)
	return s
}

func Kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + url +
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Intercept has each request go through f, and f calls serve. An *apierrors.StatusError is answered as it
// is, any other error breaks the connection. Nil ends it.
func (s *Server) Intercept(f func(r Request, serve func()) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Outage ends all watches and answers no request while f runs. f's changes are in no history.
func (s *Server) Outage(f func()) {
	s.mu.Lock()
	s.outages++
	s.out = true
	s.changed.Broadcast()
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.history, s.compacted = nil, s.version
	s.out = false
	s.mu.Unlock()
}

// Unknown has the server drop a field of status, as with an older definition. Empty: none.
func (s *Server) Unknown(resource, field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = map[string]string{resource: field}
}

// Lag stops news to watches, or resumes them.
func (s *Server) Lag(lags bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lags = lags
	s.changed.Broadcast()
}

// Writes returns the writes since the last Forget, in order, without bodies and events.
func (s *Server) Writes() []string {
	var list []string
	for _, r := range s.Requests() {
		if r.Writes() {
			list = append(list, r.String())
		}
	}
	return list
}

func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path == "/version" {
		reply(w, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1"}, nil)
		return
	}
	call, ok := parse(r, body)
	if !ok {
		reply(w, nil, failure(http.StatusNotFound, "not served"))
		return
	}
	s.mu.Lock()
	intercept, out := s.intercept, s.out
	if !strings.HasPrefix(call.Resource, "events") {
		s.requests = append(s.requests, call.Request)
	}
	s.mu.Unlock()
	if out {
		reply(w, nil, failure(http.StatusServiceUnavailable, "the server is out"))
		return
	}
	if call.Verb == "watch" {
		s.watch(w, r, call)
		return
	}
	var answer any
	status := failure(http.StatusServiceUnavailable, "not served")
	do := func() { answer, status = s.do(call) }
	if intercept == nil {
		do()
	} else if err := intercept(call.Request, do); err != nil {
		api, ok := err.(interface{ Status() metav1.Status })
		if !ok {
			panic(http.ErrAbortHandler) // the client sees a broken connection
		}
		refused := api.Status()
		answer, status = nil, &refused
	}
	reply(w, answer, status)
}

func reply(w http.ResponseWriter, answer any, status *metav1.Status) {
	w.Header().Set("Content-Type", "application/json")
	if status != nil {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(status.Code))
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone needs no answer
}

type call struct {
	Request
	namespace, name string
	status          bool // the status subresource
	patchType       string
	query           map[string]string
}

// parse reports false for a path without a resource.
func parse(r *http.Request, body []byte) (call, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	c := call{query: map[string]string{}, patchType: r.Header.Get("Content-Type")}
	c.Body = string(body)
	for k, v := range r.URL.Query() {
		c.query[k] = v[0]
	}
	depth := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if depth == 0 || len(parts) <= depth {
		return c, false
	}
	parts = parts[depth:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	c.Resource = parts[0]
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.status = parts[2] == "status"
		c.Resource += "/" + parts[2]
	}
	c.Name = strings.Trim(c.namespace+"/"+c.name, "/")
	switch {
	case r.Method == http.MethodPost:
		c.Verb, c.Name = "create", named(body, c.namespace)
	case r.Method == http.MethodPut:
		c.Verb = "update"
	case r.Method == http.MethodPatch:
		c.Verb = "patch"
	case r.Method == http.MethodDelete:
		c.Verb = "delete"
	case c.query["watch"] != "":
		c.Verb = "watch"
	case c.name == "":
		c.Verb = "list"
	default:
		c.Verb = "get"
	}
	return c, true
}

func named(body []byte, namespace string) string {
	var o struct{ Metadata metav1.ObjectMeta }
	if json.Unmarshal(body, &o) != nil {
		return ""
	}
	return strings.Trim(namespace+"/"+o.Metadata.Name, "/")
}

func failure(code int, format string, args ...any) *metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: fmt.Sprintf(format, args...)}
}
