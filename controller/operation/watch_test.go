// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/moorage-dev/moorage/internal/operation"
)

type definitions struct {
	mu     sync.Mutex
	served map[string]string // resources by group version
}

func (d *definitions) ServerResourcesForGroupVersion(v string) (*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.served[v]; ok {
		return &metav1.APIResourceList{GroupVersion: v, APIResources: []metav1.APIResource{{Name: r}}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, v)
}

func (d *definitions) serve(version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served = map[string]string{operation.SnapshotVersions[0].String(): operation.SnapshotResource}
	if version != "" {
		d.served[groups+version] = operation.GroupResource
	}
}

const groups = "groupsnapshot.storage.k8s.io/"

func TestAnotherVersionIsServed(t *testing.T) {
	gvr := func(v string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: v, Resource: operation.GroupResource}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		gvr("v1beta1"): "VolumeGroupSnapshotContentList", gvr("v1"): "VolumeGroupSnapshotContentList",
		operation.SnapshotVersions[0].WithResource(operation.SnapshotResource): "VolumeSnapshotContentList",
	})
	d := &definitions{}
	w := NewWatcher(d, client)
	w.every = time.Millisecond
	changed := make(chan struct{}, 1)
	w.Subscribe(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	create := func(v, name string) {
		content := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": groups + v, "kind": "VolumeGroupSnapshotContent", "metadata": map[string]any{"name": name, "uid": name},
			"spec": map[string]any{"driver": "d", "source": map[string]any{"volumeHandles": []any{"a", "b"}}},
		}}
		if _, err := client.Resource(gvr(v)).Create(t.Context(), content, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// no names: nothing is known
	sees := func(unknown bool, names ...string) {
		t.Helper()
		for {
			var s operation.State
			w.state(&s, nil)
			seen := map[string]bool{}
			for _, work := range s.Works {
				seen[work.Object.Name] = true
			}
			is := s.Unknown[operation.KindGroup] == unknown && len(seen) == len(names)
			for _, name := range names {
				is = is && seen[name]
			}
			if is {
				return
			}
			select {
			case <-changed:
			case <-time.After(30 * time.Second):
				t.Fatalf("seen %v, unknown %v; want %v", seen, s.Unknown, names)
			}
		}
	}
	d.serve("v1beta1")
	create("v1beta1", "g1")
	w.Need()
	go w.Run(t.Context())
	sees(false, "g1")
	create("v1", "g2")
	d.serve("v1")
	sees(false, "g2")
	d.serve("")
	sees(true)
	d.serve("v1")
	sees(false, "g2")
}
