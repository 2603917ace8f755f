// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Change is what became of an object: one of Object, Patch and Gone is set.
type Change struct {
	// Resource names the list that it is of, as ObjectsFile does, without folder and ending.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Object is the whole object, Patch a JSON merge patch (RFC 7396) that leads from the
	// object before to it; whichever is smaller.
	Object json.RawMessage `json:"object,omitempty"`
	Patch  json.RawMessage `json:"patch,omitempty"`
	Gone   bool            `json:"gone,omitempty"`
}

// Set makes the change of an object from JSON to JSON; before is nil where there was none.
// False: nothing has changed.
func (c *Change) Set(before, after []byte) (bool, error) {
	if bytes.Equal(before, after) {
		return false, nil
	}
	c.Object = after
	if before == nil {
		return true, nil
	}
	var from, to map[string]any
	if err := errors.Join(utiljson.Unmarshal(before, &from), utiljson.Unmarshal(after, &to)); err != nil {
		return false, fmt.Errorf("change of %s %s/%s: %w", c.Resource, c.Namespace, c.Name, err)
	}
	patch, err := json.Marshal(difference(from, to))
	if err != nil {
		return false, err
	}
	if len(patch) < len(after) {
		c.Object, c.Patch = nil, patch
	}
	return true, nil
}

// WithoutNulls takes out of a value, in place, what is null in a map: to the API it is the same
// as what is not there, and a merge patch can't tell of it.
func WithoutNulls(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			WithoutNulls(each)
		}
	case map[string]any:
		for key, below := range v {
			if below == nil {
				delete(v, key)
			} else {
				WithoutNulls(below)
			}
		}
	}
}

// difference is the merge patch that leads from one object to another, neither of which has
// nulls.
func difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, stays := to[key]; !stays {
			patch[key] = nil
		}
	}
	for key, is := range to {
		was, had := from[key]
		if had && reflect.DeepEqual(was, is) {
			continue
		}
		below, deeper := is.(map[string]any)
		if wasMap, ok := was.(map[string]any); ok && deeper {
			patch[key] = difference(wasMap, below)
		} else {
			patch[key] = is
		}
	}
	return patch
}

// merge is an object as a merge patch makes it. Neither is changed: the result has parts of
// both. took is told of each map that is made anew, with how many entries.
func merge(object, patch map[string]any, took func(entries int) error) (map[string]any, error) {
	if err := took(len(object) + len(patch)); err != nil {
		return nil, err
	}
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range patch {
		deeper, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			was, _ := out[key].(map[string]any)
			below, err := merge(was, deeper, took)
			if err != nil {
				return nil, err
			}
			out[key] = below
		default:
			out[key] = value
		}
	}
	return out, nil
}
