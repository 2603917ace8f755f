// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// PodGroupLabel names a pod's PodGroup, in its own namespace
// (sigs.k8s.io/scheduler-plugins, apis/scheduling/v1alpha1).
const PodGroupLabel = "scheduling.x-k8s.io/pod-group"

// DefaultGroupTimeout is for PodGroups without scheduleTimeoutSeconds
// (sigs.k8s.io/scheduler-plugins, pkg/util, DefaultWaitTime).
const DefaultGroupTimeout = 60 * time.Second

// podGroup is the part of a PodGroup that the plugin goes by.
type podGroup struct {
	Spec struct {
		MinMember              int32  `json:"minMember"`
		ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
	} `json:"spec"`
}

// timeout is how long pods of the group wait for one another.
func (g *podGroup) timeout() time.Duration {
	if s := g.Spec.ScheduleTimeoutSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return DefaultGroupTimeout
}

// groupKey is namespace and name of a PodGroup.
type groupKey struct{ namespace, name string }

func (k groupKey) String() string { return k.namespace + "/" + k.name }

// groupOf is the PodGroup that a pod names; the name is empty for none.
func groupOf(pod *corev1.Pod) groupKey {
	return groupKey{pod.Namespace, pod.Labels[PodGroupLabel]}
}

// groupReader reads a PodGroup.
type groupReader func(context.Context, groupKey) (*podGroup, error)

// groupsFrom returns a reader that asks the API server each time: only pods
// that name a group cost that, and a cluster without the kind needs no informer
// of it.
func groupsFrom(client dynamic.Interface) groupReader {
	kind := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	return func(ctx context.Context, key groupKey) (*podGroup, error) {
		object, err := client.Resource(kind).Namespace(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading PodGroup %s: %w", key, err)
		}
		var group podGroup
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &group); err != nil {
			return nil, fmt.Errorf("PodGroup %s can't be read: %w", key, err)
		}
		return &group, nil
	}
}
