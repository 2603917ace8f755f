// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestExamplesOfDrivers(t *testing.T) {
	files, err := filepath.Glob("../charts/moorage/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	drivers := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "-policy.yaml") {
			var policy v1alpha1.AttachPolicy
			if err := yaml.UnmarshalStrict(raw, &policy); err != nil || policy.Kind != "AttachPolicy" || policy.Spec.Driver == "" {
				t.Errorf("%s: %v: %+v", file, err, policy)
			}
			continue
		}
		drivers++
		var values struct {
			Attacher struct {
				Drivers []struct{ Name, Namespace, ServiceAccount string }
			}
			Webhook struct{ ExcludedNamespaces []string }
		}
		if err := yaml.Unmarshal(raw, &values); err != nil || len(values.Attacher.Drivers) != 1 {
			t.Fatalf("%s: %v: %+v", file, err, values)
		}
		if !regexp.MustCompile(`Checked\s+(#\s+)?against\s+(#\s+)?\S+(\s+#)?\s+v\d+\.\d+\.\d+`).Match(raw) || !strings.Contains(string(raw), "github.com/") {
			t.Errorf("%s does not say what it was checked against", file)
		}
		driver, release := values.Attacher.Drivers[0], renderRelease(t, string(raw))
		var binding rbacv1.RoleBinding
		decode(t, release["RoleBinding/"+driver.Namespace+"/moorage-attacher-"+driver.Name], &binding)
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != driver.ServiceAccount || binding.Subjects[0].Namespace != driver.Namespace {
			t.Errorf("%s: the rights are given to %+v", file, binding.Subjects)
		}
		if excluded := values.Webhook.ExcludedNamespaces; !slices.Contains(excluded, "kube-system") || driver.Namespace != "default" && !slices.Contains(excluded, driver.Namespace) {
			t.Errorf("%s: the webhook leaves %v alone", file, excluded)
		}
	}
	if drivers != 7 {
		t.Errorf("there are %d drivers, want 7", drivers)
	}
}
