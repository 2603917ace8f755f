// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/internal/served"
)

type crd struct {
	v1         *apiextensionsv1.CustomResourceDefinition
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

const crdDir = "../../charts/moorage/files/crds"

// loadCRDs fails on a CRD that the API server would refuse for its structure or the cost of its rules.
func loadCRDs(t *testing.T) map[string]crd {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s (%v): run hack/generate", crdDir, err)
	}
	crds := map[string]crd{}
	for _, file := range files {
		loaded := loadCRD(t, file)
		crds[loaded.v1.Spec.Names.Kind] = loaded
	}
	return crds
}

func loadCRD(t *testing.T, file string) crd {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, v1); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, internal, nil); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		t.Fatalf("%s: the API server refuses it: %v", file, errs.ToAggregate())
	}
	props := internal.Spec.Validation
	if props == nil {
		props = internal.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	schema, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return crd{
		v1:         v1,
		structural: structural,
		schema:     schema,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// admit prunes, defaults and validates as the API server does on create (old nil) and update.
func (c crd) admit(obj, old map[string]any) field.ErrorList {
	pruning.Prune(obj, c.structural, true)
	defaulting.Default(obj, c.structural)
	errs := validation.ValidateCustomResource(nil, obj, c.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, obj)...)
	if len(errs) > 0 {
		return errs
	}
	var oldObj any
	if old != nil {
		oldObj = old
	}
	ruleErrs, _ := c.rules.Validate(context.Background(), nil, c.structural, obj, oldObj, celconfig.RuntimeCELCostBudget)
	return ruleErrs
}

func asMap(t *testing.T, obj any) map[string]any {
	t.Helper()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The API server accepts in new objects the features of its predecessor (MinCompatibilityVersion).
func TestRulesOfTheOldestRelease(t *testing.T) {
	known := environment.MustBaseEnvSet(version.MustParse(served.OldestRelease).SubtractMinor(1))
	compiled := 0
	var walk func(name string, s *structuralschema.Structural, root bool)
	walk = func(name string, s *structuralschema.Structural, root bool) {
		if len(s.XValidations) > 0 {
			results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, known, cel.NewExpressionsEnvLoader())
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, result := range results {
				compiled++
				if result.Error != nil {
					t.Errorf("%s: %s %s", name, result.Error.Detail, result.Error.Error())
				}
			}
		}
		for property := range s.Properties {
			child := s.Properties[property]
			walk(name+"."+property, &child, child.XEmbeddedResource)
		}
		if s.Items != nil {
			walk(name+"[]", s.Items, s.Items.XEmbeddedResource)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			walk(name+"{}", s.AdditionalProperties.Structural, false)
		}
	}
	for kind, crd := range loadCRDs(t) {
		walk(kind, crd.structural, true)
	}
	if compiled == 0 {
		t.Error("no rule was compiled")
	}
}
