// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/manifests"
)

func objects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := manifests.FS.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, document)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

func find(t *testing.T, file, kind, name string, into runtime.Object) {
	t.Helper()
	for _, object := range objects(t, file) {
		if object.GetKind() == kind && object.GetName() == name {
			decode(t, object, into)
			return
		}
	}
	t.Fatalf("%s has no %s %s", file, kind, name)
}

func decode(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	raw, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func TestEverythingDecodes(t *testing.T) {
	kinds := map[string][]string{}
	files, err := fs.Glob(manifests.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, object := range objects(t, file) {
			kinds[file] = append(kinds[file], object.GetKind())
			known, err := scheme.Scheme.New(object.GroupVersionKind())
			if err == nil {
				decode(t, object, known)
			}
		}
		slices.Sort(kinds[file])
		kinds[file] = slices.Compact(kinds[file])
	}
	// Users who apply single files rely on the content of each.
	want := map[string][]string{
		"crds.yaml":        {"CustomResourceDefinition"},
		"rbac.yaml":        {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"},
		"policies.yaml":    {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"flowcontrol.yaml": {"FlowSchema", "PriorityLevelConfiguration"},
		"webhook.yaml":     {"MutatingWebhookConfiguration"},
		"deploy.yaml":      {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "ResourceQuota", "Service"},
		"certificate.yaml": {"Certificate", "Issuer"},
		"extender.yaml":    {"Certificate", "Deployment", "Issuer", "NetworkPolicy", "Role", "RoleBinding", "Service"},
		"node.yaml":        {"ClusterRole", "ClusterRoleBinding", "DaemonSet", "ServiceAccount"},

		"networkfences.yaml": {"ClusterRole", "ClusterRoleBinding"},
	}
	for file, got := range kinds {
		if !slices.Equal(got, want[file]) {
			t.Errorf("%s holds %v, want %v", file, got, want[file])
		}
	}
	if len(kinds) != len(want) {
		t.Errorf("there are %d files, want %d", len(kinds), len(want))
	}
}

// The webhook fails open, and is asked only for objects that it would change.
func TestWebhookConfiguration(t *testing.T) {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	find(t, "webhook.yaml", "MutatingWebhookConfiguration", "moorage-webhook", &configuration)
	if len(configuration.Webhooks) != 1 {
		t.Fatalf("there are %d webhooks", len(configuration.Webhooks))
	}
	hook := configuration.Webhooks[0]
	if hook.FailurePolicy == nil || *hook.FailurePolicy != admissionregistrationv1.Ignore {
		t.Error("it does not fail open")
	}
	if hook.TimeoutSeconds == nil || *hook.TimeoutSeconds != 3 {
		t.Error("the API server does not wait for 3 s")
	}
	if hook.SideEffects == nil || *hook.SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Error("dry runs are not sent to it")
	}
	if hook.ReinvocationPolicy == nil || *hook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Error("it is not asked again after others added volumes")
	}
	if hook.NamespaceSelector == nil || hook.NamespaceSelector.MatchLabels["moorage.dev/enforce"] != "true" {
		t.Error("it is asked for namespaces that did not opt in")
	}
	if len(hook.Rules) != 1 || !slices.Equal(hook.Rules[0].Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Create}) ||
		!slices.Equal(hook.Rules[0].Resources, []string{"pods"}) {
		t.Errorf("it is asked for %+v", hook.Rules)
	}
}
