// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// Built-in kinds are protobuf, and protobuf drops an empty list or map.
func stored(t *testing.T, scheme *runtime.Scheme, o runtime.Object) map[string]any {
	t.Helper()
	storage := protobuf.NewSerializer(scheme, scheme)
	var raw bytes.Buffer
	if err := storage.Encode(o, &raw); err != nil {
		t.Fatal(err)
	}
	read, _, err := storage.Decode(raw.Bytes(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Lost fields remain a difference in kubectl diff and Argo CD.
func lost(path string, want, has any) []string {
	var out []string
	switch want := want.(type) {
	case map[string]any:
		has, _ := has.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, kept := has[name]; !kept {
				out = append(out, path+"."+name)
				continue
			}
			out = append(out, lost(path+"."+name, want[name], has[name])...)
		}
	case []any:
		has, _ := has.([]any)
		if len(want) != len(has) {
			return []string{path}
		}
		for i := range want {
			out = append(out, lost(fmt.Sprintf("%s[%d]", path, i), want[i], has[i])...)
		}
	}
	return out
}

func TestDefinitionsAreKept(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects(t, "crds.yaml") {
		var definition apiextensionsv1.CustomResourceDefinition
		decode(t, object, &definition)
		definition.SetGroupVersionKind(object.GroupVersionKind())
		if lost := lost(object.GetName(), object.Object, stored(t, scheme, &definition)); len(lost) > 0 {
			t.Errorf("the API server does not keep %v", lost)
		}
	}
}
