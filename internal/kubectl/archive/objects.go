// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Now is the time of an archive's objects.
func (a *Archive) Now() time.Time { return a.About.Taken }

// unread is why a path was not read; nil where it was.
func (a *Archive) unread(path string) *Unread {
	for i := range a.About.Unread {
		if u := &a.About.Unread[i]; u.Path == path {
			return u
		}
	}
	return nil
}

// Path is where a resource is asked for.
func Path(r schema.GroupVersionResource) string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

// list is all objects of a resource; nil if the archive has no such file. It refuses objects that no API
// server has: without a name, or with a name that can't be.
func (a *Archive) list(r schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	file := ObjectsFile(r)
	if list := a.lists[file]; list != nil || a.files[file] == nil {
		return list, nil
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(a.files[file]); err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if o.GetName() == "" {
			return nil, fmt.Errorf("%s has an object without a name, which no API server has", file)
		}
		if err := possible(file, o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	a.lists[file] = list
	return list, nil
}

// Objects is all objects of a resource as typed makes them of their content. Errors are those that the
// API server gave, or would have.
func (a *Archive) Objects(r schema.GroupVersionResource, typed func(content map[string]any) (runtime.Object, error)) ([]runtime.Object, error) {
	if u := a.unread(Path(r)); u != nil {
		return nil, &apierrors.StatusError{ErrStatus: u.Status}
	}
	list, err := a.list(r)
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, apierrors.NewNotFound(r.GroupResource(), "")
	}
	objects := make([]runtime.Object, 0, len(list.Items))
	for _, o := range list.Items {
		object, err := typed(o.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %s/%s: %w", ObjectsFile(r), o.GetNamespace(), o.GetName(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
