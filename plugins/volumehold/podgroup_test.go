// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func podGroupsIn(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}: "PodGroupList"}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

func TestGroupInformer(t *testing.T) {
	group := func(name string, spec map[string]any) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec,
		}}
	}
	api := podGroupsIn(
		group("a", map[string]any{"minMember": int64(3), "scheduleTimeoutSeconds": int64(7), "minResources": map[string]any{"cpu": "1"}}),
		group("b", map[string]any{"minMember": int64(1)}))
	answer := make(chan struct{}) // the API server does not answer before it is closed
	api.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answer
		return false, nil, nil
	})
	i, err := newGroupInformer(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan groupKey, 10)
	i.notify(func(key groupKey) { told <- key })
	for _, name := range []string{"a", "c"} {
		if _, err := i.get(groupKey{namespace: "shop", name: name}); !errors.Is(err, errGroupsUnread) {
			t.Errorf("before it is read the error is %v", err)
		}
	}
	close(answer)
	if !cache.WaitForCacheSync(t.Context().Done(), i.informer.HasSynced) {
		t.Fatal("PodGroups are not read")
	}
	for name, want := range map[string]podGroup{"a": {3, 7 * time.Second}, "b": {1, DefaultGroupTimeout}} {
		if got, err := i.get(groupKey{namespace: "shop", name: name}); err != nil || got != want {
			t.Errorf("PodGroup %s is %+v, %v, want %+v", name, got, err, want)
		}
		<-told
	}
	// A request for a missing PodGroup, made before PodGroups were read, is repeated.
	for key := range told {
		if key.name == "c" {
			break
		}
	}
	if _, err := i.get(groupKey{namespace: "shop", name: "c"}); err == nil || err.Error() != "PodGroup shop/c does not exist" {
		t.Errorf("of one that does not exist the error is %v", err)
	}
}

// The kind may be missing or forbidden: the pods are told so.
func TestGroupInformerWithoutTheKind(t *testing.T) {
	api := podGroupsIn()
	api.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server could not find the requested resource")
	})
	i, err := newGroupInformer(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the error to be told", func() bool {
		_, err := i.get(groupKey{namespace: "shop", name: "a"})
		return err != nil && strings.Contains(err.Error(), "PodGroup shop/a can't be read") && strings.Contains(err.Error(), "could not find the requested resource")
	})
}
