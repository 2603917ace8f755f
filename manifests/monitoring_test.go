// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const operatorModule = "github.com/prometheus-operator/prometheus-operator"

type definition struct {
	structural *schema.Structural
	fields     validation.SchemaValidator
	rules      *schemacel.Validator
}

func operatorDefinitions(t *testing.T) map[string]definition {
	t.Helper()
	download := exec.Command("go", "mod", "download", "-json", operatorModule)
	download.Dir = "../test/promql/operator"
	var stderr bytes.Buffer
	download.Stderr = &stderr
	raw, err := download.Output()
	if err != nil {
		t.Fatalf("download %s: %v\n%s%s", operatorModule, err, raw, stderr.Bytes())
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(raw, &module); err != nil {
		t.Fatal(err)
	}
	out := map[string]definition{}
	for _, plural := range []string{"servicemonitors", "podmonitors", "prometheusrules"} {
		raw, err := os.ReadFile(filepath.Join(module.Dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		out[crd.Spec.Names.Kind] = newDefinition(t, crd)
	}
	return out
}

func newDefinition(t *testing.T, crd apiextensionsv1.CustomResourceDefinition) definition {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1" && v.Served })
	if i < 0 {
		t.Fatalf("%s is not served as v1", crd.Name)
	}
	var properties apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, &properties, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&properties)
	if err != nil {
		t.Fatal(err)
	}
	fields, _, err := validation.NewSchemaValidator(&properties)
	if err != nil {
		t.Fatal(err)
	}
	return definition{structural, fields, schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

func (d definition) judge(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	var wrong []string
	for _, path := range pruning.PruneWithOptions(object.DeepCopy().Object, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		wrong = append(wrong, "there is no field "+path)
	}
	for _, err := range validation.ValidateCustomResource(nil, object.Object, d.fields) {
		wrong = append(wrong, err.Error())
	}
	errs, _ := d.rules.Validate(t.Context(), nil, d.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func TestMonitorsAreWhatTheOperatorTakes(t *testing.T) {
	definitions := operatorDefinitions(t)
	seen := map[string]int{}
	for _, object := range renderRelease(t, attachers) {
		if object.GroupVersionKind().Group != "monitoring.coreos.com" {
			continue
		}
		d, ok := definitions[object.GetKind()]
		if !ok || object.GroupVersionKind().Version != "v1" {
			t.Errorf("nobody defines %s", object.GroupVersionKind())
			continue
		}
		seen[object.GetKind()]++
		for _, wrong := range d.judge(t, object) {
			t.Errorf("%s %s: %s", object.GetKind(), object.GetName(), wrong)
		}
		if err := unstructured.SetNestedField(object.Object, "?", "spec", "selektor"); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(d.judge(t, object), "there is no field spec.selektor") {
			t.Errorf("a misspelt field of %s is let pass", object.GetKind())
		}
	}
	if seen["ServiceMonitor"] != 3 || seen["PodMonitor"] != 1 || seen["PrometheusRule"] != 1 {
		t.Errorf("there are %v", seen)
	}
	var rule unstructured.Unstructured
	rule.Object = map[string]any{"spec": map[string]any{"groups": []any{map[string]any{"name": "g", "rules": []any{map[string]any{"alert": "A"}}}}}}
	if got := definitions["PrometheusRule"].judge(t, &rule); len(got) == 0 {
		t.Error("a rule without an expression is let pass")
	}
}
