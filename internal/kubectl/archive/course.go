// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/moorage-dev/moorage/internal/kubectl/unpack"
)

// object is one version of an object. It is not changed; what it is as a typed object is made
// once.
type object struct {
	namespace, name string
	content         map[string]any
	typed           runtime.Object
}

func compareObjects(a, b *object) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// newObject refuses what no API server has: an object without a name, or with one that can't be.
func newObject(file string, content map[string]any) (*object, error) {
	u := unstructured.Unstructured{Object: content}
	o := &object{namespace: u.GetNamespace(), name: u.GetName(), content: content}
	if o.name == "" {
		return nil, fmt.Errorf("%s has an object without a name, which no API server has", file)
	}
	if err := possible(file, u); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return o, nil
}

// course is the objects of a resource at each time of an archive. A time is reached from the
// one that was asked for last, or from the checkpoint before it.
type course struct {
	file   string
	raw    []byte // the List; nil once it was asked for
	steps  []step // by time
	budget *unpack.Budget

	list    map[string]any // the List without its items
	now     state
	points  []state // checkpoints, by time
	reached int     // so many steps have been made once, and paid for
}

// step is a change at a time, which is a place in Archive.times.
type step struct {
	at     int
	change Change
}

// state is the objects after a number of steps. Those of a resource that changes are sorted,
// as the API server sorts them.
type state struct {
	done    int
	objects []*object
}

// There is a checkpoint after so many steps, or after one for so many objects where that is
// more: one takes eight bytes for each object, and all together then no more for each step
// than what it is paid for.
const between, objectsPerStep = 256, 8

// begin reads the objects that there were at first.
func (c *course) begin() error {
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(c.raw); err != nil {
		return err
	}
	objects := make([]*object, 0, len(list.Items))
	for i := range list.Items {
		o, err := newObject(c.file, list.Items[i].Object)
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	if len(c.steps) > 0 {
		slices.SortStableFunc(objects, compareObjects)
	}
	c.now, c.points = state{objects: objects}, []state{{objects: slices.Clone(objects)}}
	c.list = map[string]any{}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		if value, ok := list.Object[key]; ok {
			c.list[key] = value
		}
	}
	c.raw = nil
	return nil
}

// at is the objects as they were at a time.
func (c *course) at(time int) ([]*object, error) {
	count, _ := slices.BinarySearchFunc(c.steps, time, func(s step, time int) int {
		if s.at <= time {
			return -1
		}
		return 1
	})
	after, _ := slices.BinarySearchFunc(c.points, count, func(s state, count int) int {
		if s.done <= count {
			return -1
		}
		return 1
	})
	if point := c.points[after-1]; c.now.done > count || point.done > c.now.done {
		c.now = state{point.done, slices.Clone(point.objects)}
	}
	for c.now.done < count {
		if err := c.step(&c.steps[c.now.done].change); err != nil {
			// What was done of it is not known: begin anew when asked again.
			c.now = state{0, slices.Clone(c.points[0].objects)}
			return nil, fmt.Errorf("changes of %s: %w", c.file, err)
		}
		c.now.done++
		c.reached = max(c.reached, c.now.done)
		if last := c.points[len(c.points)-1]; c.now.done >= last.done+max(between, len(c.now.objects)/objectsPerStep) {
			c.points = append(c.points, state{c.now.done, slices.Clone(c.now.objects)})
		}
	}
	return slices.Clone(c.now.objects), nil
}

// step makes a change.
func (c *course) step(change *Change) error {
	place, found := slices.BinarySearchFunc(c.now.objects, &object{namespace: change.Namespace, name: change.Name}, compareObjects)
	if change.Gone {
		if found {
			c.now.objects = slices.Delete(c.now.objects, place, place+1)
		}
		return nil
	}
	raw := change.Object
	if raw == nil {
		raw = change.Patch
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return err
	}
	if change.Object == nil {
		if !found {
			return fmt.Errorf("what %q was before is missing", strings.Trim(change.Namespace+"/"+change.Name, "/"))
		}
		merged, err := merge(c.now.objects[place].content, content, c.took)
		if err != nil {
			return err
		}
		content = merged
	}
	next, err := newObject(c.file, content)
	if err != nil {
		return err
	}
	if next.namespace != change.Namespace || next.name != change.Name {
		return fmt.Errorf("%q has become %q", change.Namespace+"/"+change.Name, next.namespace+"/"+next.name)
	}
	if found {
		c.now.objects[place] = next
	} else {
		c.now.objects = slices.Insert(c.now.objects, place, next)
	}
	return nil
}

// took pays for a map that was made, when its step is made for the first time: checkpoints
// keep some of them.
func (c *course) took(entries int) error {
	if c.now.done < c.reached {
		return nil
	}
	return c.budget.Map(entries)
}

// readChanges reads what a file of changes has.
func readChanges(raw []byte) (changesAt, error) {
	var out changesAt
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, err
	}
	for i := range out.Changes {
		c := &out.Changes[i]
		is := 0
		for _, set := range []bool{c.Object != nil, c.Patch != nil, c.Gone} {
			if set {
				is++
			}
		}
		if c.Name == "" || is != 1 {
			return out, fmt.Errorf("the change of %s %q says no one thing", c.Resource, c.Name)
		}
	}
	return out, nil
}
