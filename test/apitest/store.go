// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type object map[string]any

func (o object) meta() map[string]any {
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}

func (o object) text(field string) string { s, _ := o.meta()[field].(string); return s }

func (o object) clone() object {
	var out object
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("apitest: object %v: %v", o, err))
	}
	return out
}

// prune leaves empty lists out, as the API server's types do.
func prune(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case []any:
			if len(value) == 0 {
				delete(fields, name)
			}
		case map[string]any:
			prune(value)
		}
	}
}

func hasStatus(resource string) bool {
	return resource == "networkfences" || resource == "volumetickets" || resource == "attachpolicies" || resource == "nodemountreports" || resource == "nodes" || resource == "pods" || resource == "volumeattachments"
}

// Put creates or replaces an object with its status as another actor, and returns its version.
func (s *Server) Put(resource string, from runtime.Object) string {
	s.t.Helper()
	raw, err := json.Marshal(from)
	if err != nil {
		s.t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := resource + "/" + o.text("namespace") + "/" + o.text("name")
	if old, ok := s.objects[key]; ok && o.text("uid") == "" {
		o.meta()["uid"] = old.text("uid")
	}
	return s.store(key, o).text("resourceVersion")
}

// Remove ignores finalizers.
func (s *Server) Remove(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(resource + "/" + namespace + "/" + name)
}

func (s *Server) Get(resource, namespace, name string, to any) bool {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[resource+"/"+namespace+"/"+name]
	if !ok {
		return false
	}
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return true
}

// store is called with mu held.
func (s *Server) store(key string, o object) object {
	resource, _, _ := strings.Cut(key, "/")
	o["kind"], o["apiVersion"] = kindOf(resource)
	if status, ok := o["status"].(map[string]any); ok {
		outer, inner, nested := strings.Cut(s.unknown[resource], ".")
		if fields, ok := status[outer].(map[string]any); nested && ok {
			delete(fields, inner)
		} else {
			delete(status, outer)
		}
	}
	kind := "ADDED"
	if old, ok := s.objects[key]; ok {
		kind = "MODIFIED"
		o.meta()["resourceVersion"] = old.text("resourceVersion")
		same := o.clone()
		prune(same)
		if reflect.DeepEqual(old, same) {
			return old // a write that changes nothing does not raise the version
		}
	}
	if resource == "networkfences" {
		count(o, s.objects[key])
	}
	s.version++
	if o.text("uid") == "" {
		o.meta()["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	if o.text("creationTimestamp") == "" {
		o.meta()["creationTimestamp"] = time.Unix(int64(s.version), 0).UTC().Format(time.RFC3339)
	}
	o.meta()["resourceVersion"] = strconv.Itoa(s.version)
	o = o.clone()
	prune(o)
	s.objects[key] = o
	s.log(kind, key, o)
	return o
}

// The generation grows with every change of the spec.
func count(o, old object) {
	was, _ := old["metadata"].(map[string]any)
	generation, _ := was["generation"].(float64)
	if old == nil || !reflect.DeepEqual(old["spec"], o.clone()["spec"]) {
		generation++
	}
	o.meta()["generation"] = generation
}

func (s *Server) drop(key string) {
	o, ok := s.objects[key]
	if !ok {
		return
	}
	delete(s.objects, key)
	s.version++
	last := o.clone()
	last.meta()["resourceVersion"] = strconv.Itoa(s.version)
	s.log("DELETED", key, last)
}

func (s *Server) do(c call) (any, *metav1.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := strings.TrimSuffix(c.Resource, "/status")
	key := resource + "/" + c.namespace + "/" + c.name
	if c.Verb == "list" {
		return s.list(resource, c), nil
	}
	switch {
	case resource == "pods/binding":
		return s.bind(c)
	case c.Verb == "create":
		return s.create(resource, c)
	}
	old, ok := s.objects[key]
	if !ok {
		_, version := kindOf(resource)
		group, _, _ := strings.Cut(version, "/")
		if version == group { // the core's
			group = ""
		}
		status := apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, c.name).Status()
		return nil, &status
	}
	switch c.Verb {
	case "get":
		return old, nil
	case "delete":
		return s.delete(key, old, c)
	}
	next, failed := c.change(resource, old.clone())
	if failed != nil {
		return nil, failed
	}
	if finalizers, _ := next.meta()["finalizers"].([]any); next.text("deletionTimestamp") != "" && len(finalizers) == 0 {
		s.drop(key) // the last finalizer was all that kept it
		return next, nil
	}
	return s.store(key, next), nil
}

func (s *Server) create(resource string, c call) (any, *metav1.Status) {
	var o object
	if err := json.Unmarshal([]byte(c.Body), &o); err != nil {
		return nil, failure(http.StatusBadRequest, "%v", err)
	}
	if c.namespace != "" {
		o.meta()["namespace"] = c.namespace
	}
	key := resource + "/" + c.namespace + "/" + o.text("name")
	if _, ok := s.objects[key]; ok {
		exists := failure(http.StatusConflict, "%s already exists", key)
		exists.Reason = metav1.StatusReasonAlreadyExists
		return nil, exists
	}
	delete(o.meta(), "resourceVersion")
	if hasStatus(resource) {
		delete(o, "status")
	}
	return s.store(key, o), nil
}

func (s *Server) bind(c call) (any, *metav1.Status) {
	var binding corev1.Binding
	if err := json.Unmarshal([]byte(c.Body), &binding); err != nil {
		return nil, failure(http.StatusBadRequest, "%v", err)
	}
	key := "pods/" + c.namespace + "/" + c.name
	old, ok := s.objects[key]
	if !ok {
		return nil, failure(http.StatusNotFound, "pods %s not found", c.Name)
	}
	pod := old.clone()
	spec, _ := pod["spec"].(map[string]any)
	switch {
	case binding.UID != "" && string(binding.UID) != pod.text("uid"):
		return nil, failure(http.StatusConflict, "pod %s has the UID %s, not %s", c.name, pod.text("uid"), binding.UID)
	case binding.ResourceVersion != "" && binding.ResourceVersion != pod.text("resourceVersion"):
		return nil, failure(http.StatusConflict, "pod %s has the version %s, not %s", c.name, pod.text("resourceVersion"), binding.ResourceVersion)
	case pod.text("deletionTimestamp") != "":
		return nil, failure(http.StatusConflict, "pod %s is being deleted, cannot be assigned to a host", c.name)
	case spec["nodeName"] != nil:
		return nil, failure(http.StatusConflict, "pod %s is already assigned to node %q", c.name, spec["nodeName"])
	}
	if spec == nil {
		spec = map[string]any{}
		pod["spec"] = spec
	}
	spec["nodeName"] = binding.Target.Name
	s.store(key, pod)
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

func (s *Server) list(resource string, c call) any {
	var keys []string
	for key, o := range s.objects {
		if strings.HasPrefix(key, resource+"/"+c.namespace) && c.selects(o) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	items := []object{}
	for _, key := range keys {
		items = append(items, s.objects[key])
	}
	kind, apiVersion := kindOf(resource)
	return map[string]any{
		"kind": kind + "List", "apiVersion": apiVersion, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
	}
}

// It takes any field that has text.
func (c call) selects(o object) bool {
	selector, err := fields.ParseSelector(c.query["fieldSelector"])
	if err != nil {
		return false
	}
	values := fields.Set{}
	for _, r := range selector.Requirements() {
		values[r.Field], _, _ = unstructured.NestedString(o, strings.Split(r.Field, ".")...)
	}
	return selector.Matches(values)
}

func (s *Server) delete(key string, old object, c call) (any, *metav1.Status) {
	var opts metav1.DeleteOptions
	if c.Body != "" {
		if err := json.Unmarshal([]byte(c.Body), &opts); err != nil {
			return nil, failure(http.StatusBadRequest, "%v", err)
		}
	}
	if p := opts.Preconditions; p != nil {
		if p.UID != nil && string(*p.UID) != old.text("uid") || p.ResourceVersion != nil && *p.ResourceVersion != old.text("resourceVersion") {
			return nil, failure(http.StatusConflict, "the precondition of the delete of %s does not hold", key)
		}
	}
	if finalizers, _ := old.meta()["finalizers"].([]any); len(finalizers) > 0 {
		next := old.clone()
		if next.text("deletionTimestamp") == "" {
			next.meta()["deletionTimestamp"] = time.Unix(int64(s.version), 0).UTC().Format(time.RFC3339)
		}
		return s.store(key, next), nil
	}
	s.drop(key)
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

func (c call) change(resource string, old object) (object, *metav1.Status) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, failure(http.StatusInternalServerError, "%v", err)
	}
	after := []byte(c.Body)
	switch {
	case c.Verb == "update":
	case strings.HasPrefix(c.patchType, string(types.JSONPatchType)):
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(after); err == nil {
			after, err = patch.Apply(before)
		}
	case strings.HasPrefix(c.patchType, string(types.MergePatchType)):
		after, err = jsonpatch.MergePatch(before, after)
	default:
		after, err = strategicpatch.StrategicMergePatch(before, after, corev1.Pod{})
	}
	if err != nil {
		return nil, failure(http.StatusUnprocessableEntity, "%v", err)
	}
	var next object
	if err := json.Unmarshal(after, &next); err != nil {
		return nil, failure(http.StatusBadRequest, "%v", err)
	}
	if v := next.text("resourceVersion"); v != "" && v != old.text("resourceVersion") || next.text("uid") != "" && next.text("uid") != old.text("uid") {
		return nil, failure(http.StatusConflict, "%s %s has another version or UID", resource, c.Name)
	}
	if hasStatus(resource) && !c.status {
		next["status"] = old["status"]
		if old["status"] == nil {
			delete(next, "status")
		}
	} else if c.status && (resource == "volumetickets" || resource == "attachpolicies" || resource == "nodemountreports") {
		next["spec"] = old["spec"]
	}
	next.meta()["uid"] = old.text("uid")
	next.meta()["creationTimestamp"] = old.text("creationTimestamp")
	return next, nil
}
