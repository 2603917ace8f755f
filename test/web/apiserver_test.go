// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

type object = map[string]any

type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	objects map[string]map[string]object // by the path of their list, then by namespace/name
	log     []change
	changed chan struct{}
	down    bool
}

type change struct {
	version    int
	path, kind string
	object     object
}

func startAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{objects: map[string]map[string]object{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func listPath(apiVersion, kind string) string {
	plural := strings.ToLower(kind) + "s"
	switch {
	case strings.HasSuffix(plural, "ys"):
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	case strings.HasSuffix(plural, "ss"):
		plural = strings.TrimSuffix(plural, "s") + "es"
	}
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion + "/" + plural
	}
	return "/api/" + apiVersion + "/" + plural
}

func nameOf(o object) string {
	meta, _ := o["metadata"].(object)
	namespace, _ := meta["namespace"].(string)
	return namespace + "/" + meta["name"].(string)
}

func (s *apiServer) put(objects ...object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		path := listPath(o["apiVersion"].(string), o["kind"].(string))
		kind := "MODIFIED"
		if s.objects[path] == nil {
			s.objects[path] = map[string]object{}
		}
		if s.objects[path][nameOf(o)] == nil {
			kind = "ADDED"
		}
		s.objects[path][nameOf(o)] = o
		s.tell(path, kind, o)
	}
}

func (s *apiServer) remove(apiVersion, kind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := listPath(apiVersion, kind)
	if o := s.objects[path][namespace+"/"+name]; o != nil {
		delete(s.objects[path], namespace+"/"+name)
		s.tell(path, "DELETED", o)
	}
}

func (s *apiServer) tell(path, kind string, o object) {
	s.version++
	meta := object{}
	for k, v := range o["metadata"].(object) {
		meta[k] = v
	}
	meta["resourceVersion"] = fmt.Sprint(s.version)
	o["metadata"] = meta
	s.log = append(s.log, change{s.version, path, kind, o})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *apiServer) fail(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.CloseClientConnections()
	}
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"37"}`)
	case query.Get("sendInitialEvents") == "true": // the client then lists in the usual way
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") != "" && query.Get("watch") != "0" && query.Get("watch") != "false":
		s.watch(w, r)
	default:
		s.list(w, r)
	}
}

var listKinds = map[string]string{
	"pods": "PodList", "persistentvolumeclaims": "PersistentVolumeClaimList", "persistentvolumes": "PersistentVolumeList", "nodes": "NodeList",
	"storageclasses": "StorageClassList", "csidrivers": "CSIDriverList", "csinodes": "CSINodeList", "volumeattachments": "VolumeAttachmentList",
	"volumetickets": "VolumeTicketList", "volumeholds": "VolumeHoldList", "attachpolicies": "AttachPolicyList", "events": "EventList", "leases": "LeaseList",
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	for _, o := range s.objects[r.URL.Path] {
		items = append(items, o)
	}
	at := strings.LastIndex(r.URL.Path, "/")
	kind, ok := listKinds[r.URL.Path[at+1:]]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	group := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path[:at], "/apis/"), "/api/")
	if strings.Contains(group, "/namespaces/") {
		group, _, _ = strings.Cut(group, "/namespaces/")
	}
	_ = json.NewEncoder(w).Encode(object{"kind": kind, "apiVersion": group, "metadata": object{"resourceVersion": fmt.Sprint(s.version)}, "items": items})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	var from int
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &from)
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush()
	for {
		s.mu.Lock()
		var out bytes.Buffer
		for _, c := range s.log {
			if c.version > from && c.path == r.URL.Path {
				_ = json.NewEncoder(&out).Encode(object{"type": c.kind, "object": c.object})
			}
		}
		from = s.version
		changed := s.changed
		s.mu.Unlock()
		if _, err := w.Write(out.Bytes()); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

func (s *apiServer) load(t testing.TB, folder string) {
	t.Helper()
	for _, path := range []string{"../../internal/kubectl/testdata/base.yaml", "../../internal/kubectl/testdata/" + folder + "/objects.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(raw))
		for {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if o != nil {
				s.put(o)
			}
		}
	}
}
