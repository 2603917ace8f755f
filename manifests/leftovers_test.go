// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

type live struct{ client dynamic.Interface }

func (l live) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group := schema.FromAPIVersionAndKind(apiVersion, kind)
	resource := schema.GroupVersionResource{Group: group.Group, Version: group.Version, Resource: strings.ToLower(kind) + "s"}
	return l.client.Resource(resource), kind == "Secret" || kind == "Deployment", nil
}

func installInto(t *testing.T, objects ...runtime.Object) (map[string]string, error) {
	t.Helper()
	chart := loadChart(t)
	given := map[string]any{"image": map[string]any{"registry": registry}, "certManager": map[string]any{"enabled": false}}
	release := common.ReleaseOptions{Name: "moorage", Namespace: "storage", IsInstall: true}
	values, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}
	return engine.RenderWithClientProvider(chart, values, live{fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)})
}

func leftover(apiVersion, kind, namespace, name, release string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	if release != "" {
		o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "storage"})
		o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	}
	return o
}

// The job fills in an existing Secret: helm would refuse to make it.
func TestSecretThatIsLeft(t *testing.T) {
	for release, made := range map[string]bool{"none": true, "": false, "other": false, "moorage": true} {
		var there []runtime.Object
		if release != "none" {
			there = append(there, leftover("v1", "Secret", "storage", "moorage-webhook-tls", release))
		}
		files, err := installInto(t, there...)
		if err != nil {
			t.Fatalf("a Secret of release %q: %v", release, err)
		}
		job := files["moorage/templates/certificate/job.yaml"]
		if got := strings.Contains(job, "kind: Secret"); got != made {
			t.Errorf("a Secret of release %q: it is made: %v, want %v", release, got, made)
		}
		if !strings.Contains(job, "kind: CronJob") {
			t.Errorf("a Secret of release %q: no job renews the certificate", release)
		}
	}
}

// The refusal has the command that hands the definitions over.
func TestDefinitionsThatAreLeft(t *testing.T) {
	const name = "volumetickets.moorage.dev"
	for _, release := range []string{"", "other"} {
		_, err := installInto(t, leftover("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, release))
		want := fmt.Sprintf("kubectl annotate --overwrite crd %s meta.helm.sh/release-name=moorage meta.helm.sh/release-namespace=storage", name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a definition of release %q: the error is %v, want it to contain %q", release, err, want)
		}
	}
	if _, err := installInto(t, leftover("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, "moorage")); err != nil {
		t.Errorf("a definition of the same release: %v", err)
	}
}
