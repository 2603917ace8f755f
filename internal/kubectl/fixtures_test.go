// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func timesIn(value any) []time.Time {
	var list []time.Time
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			list = append(list, timesIn(v)...)
		}
	case []any:
		for _, v := range value {
			list = append(list, timesIn(v)...)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			list = append(list, at)
		}
	}
	return list
}

// No object or event is older than its object's creation, and no ticket older than its pod.
func TestFixturesHavePossibleTimes(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/objects.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %d clusters: %v", len(paths), err)
	}
	for _, path := range paths {
		list, _ := objectsOf(t, path)
		pods := map[string]time.Time{}
		for _, o := range list {
			if o.GetKind() == "Pod" {
				pods[string(o.GetUID())] = o.GetCreationTimestamp().Time
			}
		}
		for _, o := range list {
			begun := o.GetCreationTimestamp().Time
			switch o.GetKind() {
			case "Pod", "VolumeHold", "VolumeAttachment":
			case "VolumeTicket":
				for _, owner := range o.GetOwnerReferences() {
					if made := pods[string(owner.UID)]; begun.Before(made) {
						t.Errorf("%s: ticket %s is older than its pod, of %s", path, o.GetName(), made)
					}
				}
			case "Event":
				uid, _, _ := unstructured.NestedString(o.Object, "involvedObject", "uid")
				begun = pods[uid]
			default:
				continue
			}
			if times := timesIn(o.Object); len(times) > 0 {
				if first := slices.MinFunc(times, time.Time.Compare); first.Before(begun) {
					t.Errorf("%s: %s %s says something of %s, and is of %s", path, o.GetKind(), o.GetName(), first, begun)
				}
			}
		}
	}
}
