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

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

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

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
