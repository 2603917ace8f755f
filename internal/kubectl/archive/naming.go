// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Naming says at which times an object has changed that has one of the names, itself or in a
// field, then or at the beginning.
func (a *Archive) Naming(names []string) []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	times := make([]bool, len(a.times))
	for _, c := range a.courses {
		if len(c.steps) == 0 || c.raw != nil && c.begin() != nil {
			continue // what is broken is told where it is shown
		}
		named := map[[2]string]bool{}
		for _, o := range c.points[0].objects {
			if mentions(o.content, names) {
				named[[2]string{o.namespace, o.name}] = true
			}
		}
		for i := range c.steps {
			change := &c.steps[i].change
			key := [2]string{change.Namespace, change.Name}
			var content any
			raw := append(slices.Clip(change.Object), change.Patch...) // one of them is nil
			if !named[key] && raw != nil && utiljson.Unmarshal(raw, &content) == nil && mentions(content, names) {
				named[key] = true
			}
			times[c.steps[i].at] = times[c.steps[i].at] || named[key]
		}
	}
	return times
}

// mentions says whether a text in a value is one of the names, or ends in one as Nodes name volumes:
// with the driver before it.
func mentions(value any, names []string) bool {
	switch v := value.(type) {
	case string:
		return slices.ContainsFunc(names, func(name string) bool { return v == name || strings.HasSuffix(v, "^"+name) })
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return mentions(each, names) })
	case map[string]any:
		for _, each := range v {
			if mentions(each, names) {
				return true
			}
		}
	}
	return false
}
