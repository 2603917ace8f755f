// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"sort"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Moment is an archive at a time.
type Moment struct {
	archive *Archive
	at      int // place in its times
	// Now is the time, which may be after the last change before it.
	Now time.Time
}

// About says what the archive holds.
func (m Moment) About() About { return m.archive.About }

// Times are the times of an archive, each the one of a change; the first is when it was taken.
func (a *Archive) Times() []time.Time { return a.times }

// Busy says whether anything but Leases had changed at a time, a place in Times.
func (a *Archive) Busy(at int) bool { return a.busy[at] }

// Moment is the archive at one of its times, a place in Times.
func (a *Archive) Moment(at int) Moment { return Moment{a, at, a.times[at]} }

// End is the archive at its last time.
func (a *Archive) End() Moment { return a.Moment(len(a.times) - 1) }

// At is the archive at any time between its first and its last.
func (a *Archive) At(t time.Time) (Moment, error) {
	first, last := a.times[0], a.End().Now
	if t.Before(first) || t.After(last) {
		return Moment{}, fmt.Errorf("the file has no %s: it goes from %s to %s", t.Format(time.RFC3339Nano), first.Format(time.RFC3339Nano), last.Format(time.RFC3339Nano))
	}
	later := sort.Search(len(a.times), func(i int) bool { return a.times[i].After(t) })
	return Moment{a, later - 1, t}, nil
}

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

// objects returns all objects of a resource, and the List without them; nil if the archive has
// no such file. It is called with mu of the archive held.
func (m Moment) objects(r schema.GroupVersionResource) (*course, []*object, error) {
	c := m.archive.courses[ObjectsFile(r)]
	if c == nil {
		return nil, nil, nil
	}
	if c.raw != nil {
		if err := c.begin(); err != nil {
			return nil, nil, err
		}
	}
	list, err := c.at(m.at)
	return c, list, err
}

// list is all objects of a resource; nil if the archive has no such file.
func (m Moment) list(r schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
	m.archive.mu.Lock()
	defer m.archive.mu.Unlock()
	c, objects, err := m.objects(r)
	if c == nil || err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: c.list}
	for _, o := range objects {
		list.Items = append(list.Items, unstructured.Unstructured{Object: o.content})
	}
	return list, nil
}

// Objects is all objects of a resource as typed makes them of their content, once for each
// version of an object. Errors are those that the API server gave, or would have.
func (m Moment) Objects(r schema.GroupVersionResource, typed func(content map[string]any) (runtime.Object, error)) ([]runtime.Object, error) {
	if u := m.archive.unread(Path(r)); u != nil {
		return nil, &apierrors.StatusError{ErrStatus: u.Status}
	}
	m.archive.mu.Lock()
	defer m.archive.mu.Unlock()
	c, objects, err := m.objects(r)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, apierrors.NewNotFound(r.GroupResource(), "")
	}
	list := make([]runtime.Object, 0, len(objects))
	for _, o := range objects {
		if o.typed == nil {
			if o.typed, err = typed(o.content); err != nil {
				return nil, fmt.Errorf("%s: %s/%s: %w", c.file, o.namespace, o.name, err)
			}
		}
		list = append(list, o.typed)
	}
	return list, nil
}
