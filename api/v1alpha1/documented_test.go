// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// docs/operate/policies.md explains every field of an AttachPolicy, and its examples are admitted.
func TestPoliciesAndTicketsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operate/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	policies, _, ok := strings.Cut(page, "\n## Volumes at a node without a pod\n")
	if !ok {
		t.Fatal("the page has no section on tickets")
	}
	explained := named(policies)
	slices.Sort(explained)
	if want := fields(reflect.TypeFor[v1alpha1.AttachPolicySpec](), ""); !slices.Equal(explained, want) {
		t.Errorf("the page explains\n%q, an AttachPolicy has\n%q", explained, want)
	}
	crds, given := loadCRDs(t), map[string]runtime.Object{v1alpha1.KindAttachPolicy: &v1alpha1.AttachPolicy{}, v1alpha1.KindVolumeTicket: &v1alpha1.VolumeTicket{}}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		var what metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(block[1]), &what); err != nil {
			t.Fatal(err)
		}
		if what.Kind == "" {
			continue // values of the chart
		}
		object, ok := given[what.Kind]
		if !ok {
			t.Fatalf("the page gives another %q", what.Kind)
		}
		delete(given, what.Kind)
		if err := yaml.UnmarshalStrict([]byte(block[1]), object); err != nil {
			t.Errorf("%s: %v", what.Kind, err)
		} else if errs := crds[what.Kind].admit(asMap(t, object), nil); len(errs) > 0 {
			t.Errorf("the %s is refused: %v", what.Kind, errs.ToAggregate())
		}
	}
	if len(given) > 0 {
		t.Errorf("the page gives no %v", slices.Collect(maps.Keys(given)))
	}
}

func fields(of reflect.Type, before string) []string {
	var names []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[metav1.Duration]() {
			names = append(names, fields(inner, before+name+".")...)
			continue
		}
		names = append(names, before+name)
	}
	slices.Sort(names)
	return names
}

func named(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " |")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			names = append(names, m[1])
		}
	}
	return names
}
