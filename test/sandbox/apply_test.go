// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefinitionsAndNamespacesComeFirst(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml": {Data: []byte("kind: MutatingWebhookConfiguration\napiVersion: v1\n---\nkind: ServiceAccount\napiVersion: v1\n")},
		"b.yaml": {Data: []byte("---\n---\nkind: Namespace\napiVersion: v1\n")},
		"c.yaml": {Data: []byte("# only a comment\n---\nkind: CustomResourceDefinition\napiVersion: v1\n")},
		"d.go":   {Data: []byte("package x")},
	}
	objects, err := readManifests(files)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	want := []string{"CustomResourceDefinition", "Namespace", "ServiceAccount", "MutatingWebhookConfiguration"}
	if !slices.Equal(kinds, want) {
		t.Fatalf("got %v", kinds)
	}
}

func TestBrokenManifestNamesItsFile(t *testing.T) {
	_, err := readManifests(fstest.MapFS{"x.yaml": {Data: []byte("a: [")}})
	if err == nil || !strings.Contains(err.Error(), "x.yaml") {
		t.Fatalf("got %v", err)
	}
}

func TestWebhooksAreCalledAtTheirProcess(t *testing.T) {
	objects, err := decode([]byte(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: x}
webhooks:
- name: pod.moorage.dev
  failurePolicy: Ignore
  clientConfig: {service: {name: w, namespace: n, path: /mutate/pod}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := redirectWebhooks(objects[0], "127.0.0.1:1234", []byte("ca")); err != nil {
		t.Fatal(err)
	}
	hooks, _, _ := unstructured.NestedSlice(objects[0].Object, "webhooks")
	hook := hooks[0].(map[string]any)
	config := hook["clientConfig"].(map[string]any)
	if config["url"] != "https://127.0.0.1:1234/mutate/pod" || config["caBundle"] != "Y2E=" || config["service"] != nil {
		t.Fatalf("client configuration %v", config)
	}
	if hook["failurePolicy"] != "Ignore" {
		t.Fatalf("the rest changed: %v", hook)
	}
}
