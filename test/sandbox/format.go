// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// indent sets a block of text off.
func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// compact is a part of an object as one line of JSON; empty if it isn't there.
func compact(part any) string {
	if part == nil {
		return ""
	}
	data, err := json.Marshal(part)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// withoutMeta is what an object has beside metadata, spec and status; nil if
// that is nothing.
func withoutMeta(o *unstructured.Unstructured) any {
	rest := map[string]any{}
	for key, value := range o.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "spec", "status":
		default:
			rest[key] = value
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// eventTime is when an event was last seen, from any of its fields.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
