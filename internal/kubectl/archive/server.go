// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
)

// Server answers reads like the API server at the archive's time, with that time as Date header. It refuses
// writes; a watch has no events. Safe for parallel use.
type Server struct{ archive *Archive }

// NewServer serves an archive.
func NewServer(a *Archive) *Server { return &Server{a} }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.archive.Now().UTC().Format(http.TimeFormat))
	if r.Method != http.MethodGet {
		status := apierrors.NewMethodNotSupported(schema.GroupResource{}, strings.ToLower(r.Method)).ErrStatus
		status.Message = "a bundle is read only: nothing in it can be changed"
		refuse(w, status)
		return
	}
	if raw, ok := s.archive.files[DiscoveryFile(r.URL.Path)]; ok {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw) // the client has gone
		return
	}
	if u := s.archive.unread(r.URL.Path); u != nil {
		refuse(w, u.Status)
		return
	}
	request, ok := parse(r.URL.Path)
	if !ok {
		refuse(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path).ErrStatus)
		return
	}
	s.serve(w, r, request)
}

// request reads all objects of a resource, a namespace's, or one.
type request struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// parse takes /api/v1/… or /apis/GROUP/VERSION/…, a resource, perhaps behind namespaces/NAME/, and perhaps
// a name.
func parse(url string) (request, bool) {
	parts := strings.Split(strings.Trim(url, "/"), "/")
	var r request
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.resource.Group, r.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return request{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource.Resource = parts[0]
	if len(parts) == 2 {
		r.name = parts[1]
	}
	return r, len(parts) <= 2
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, q request) {
	if u := s.archive.unread(Path(q.resource)); u != nil && (q.namespace == "" || q.namespace != u.Namespace) {
		refuse(w, u.Status)
		return
	}
	list, err := s.archive.list(q.resource)
	if err != nil {
		refuse(w, apierrors.NewInternalError(err).ErrStatus)
		return
	}
	if list == nil {
		refuse(w, apierrors.NewNotFound(q.resource.GroupResource(), q.name).ErrStatus)
		return
	}
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		// A client that asks for a list as a watch then falls back to a normal list.
		refuse(w, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil).ErrStatus)
	case query.Get("watch") != "" && query.Get("watch") != "false" && query.Get("watch") != "0":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case q.name != "":
		for i := range list.Items {
			if o := &list.Items[i]; o.GetName() == q.name && o.GetNamespace() == q.namespace {
				answer(w, o.Object)
				return
			}
		}
		refuse(w, apierrors.NewNotFound(q.resource.GroupResource(), q.name).ErrStatus)
	default:
		selected, err := choose(list, q.namespace, query.Get("labelSelector"), query.Get("fieldSelector"))
		if err != nil {
			refuse(w, apierrors.NewBadRequest(err.Error()).ErrStatus)
			return
		}
		answer(w, selected.UnstructuredContent())
	}
}

// choose returns the objects that match both selectors; empty namespace: all.
func choose(list *unstructured.UnstructuredList, namespace, byLabels, byFields string) (*unstructured.UnstructuredList, error) {
	labelled, err := labels.Parse(byLabels)
	if err != nil {
		return nil, err
	}
	having, err := fields.ParseSelector(byFields)
	if err != nil {
		return nil, err
	}
	chosen := &unstructured.UnstructuredList{Object: list.Object}
	for _, o := range list.Items {
		if (namespace == "" || o.GetNamespace() == namespace) && labelled.Matches(labels.Set(o.GetLabels())) && has(o, having.Requirements()) {
			chosen.Items = append(chosen.Items, o)
		}
	}
	return chosen, nil
}

// has takes a missing field as empty.
func has(o unstructured.Unstructured, required fields.Requirements) bool {
	for _, r := range required {
		value, _, err := unstructured.NestedString(o.Object, strings.Split(r.Field, ".")...)
		if err != nil || (value == r.Value) == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // the client has gone
}

func refuse(w http.ResponseWriter, status metav1.Status) {
	status.Kind, status.APIVersion, status.Status = "Status", "v1", metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	if status.Code < 400 || status.Code > 599 {
		status.Code = http.StatusInternalServerError
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client has gone
}

// Config returns a client configuration for this server, in this process.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: "http://archive", Transport: s} }

// RoundTrip answers a request; a watch lasts until its context ends.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, to := io.Pipe()
	w := &response{header: http.Header{}, code: make(chan int, 1), body: to}
	go func() {
		s.ServeHTTP(w, r)
		_ = to.Close() // it never fails
	}()
	return &http.Response{StatusCode: <-w.code, Header: w.header, Body: body, ContentLength: -1, Request: r}, nil
}

type response struct {
	header http.Header
	begun  bool
	code   chan int
	body   *io.PipeWriter
}

// Header is the answer's header.
func (r *response) Header() http.Header { return r.header }

// WriteHeader begins the answer.
func (r *response) WriteHeader(code int) {
	if !r.begun {
		r.begun = true
		r.code <- code
	}
}

// Write writes a part of the body.
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}
