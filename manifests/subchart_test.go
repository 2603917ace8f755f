// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	dependencies "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

func renderBelow(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	own := loadChart(t)
	parent := &chart.Chart{Metadata: &chart.Metadata{
		APIVersion: chart.APIVersionV2, Name: "platform", Version: "1.0.0",
		Dependencies: []*chart.Dependency{{Name: own.Name(), Version: own.Metadata.Version, Condition: "moorage.enabled"}},
	}}
	parent.AddDependency(own)
	given := map[string]any{"global": map[string]any{"team": "storage"}, "moorage": values}
	if err := dependencies.ProcessDependencies(parent, given); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(parent, given, common.ReleaseOptions{Name: "platform", Namespace: "storage", IsInstall: true}, common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(parent, all)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestParentChart(t *testing.T) {
	image := map[string]any{"registry": registry}
	if files := renderBelow(t, map[string]any{"enabled": false, "image": image}); len(files) > 0 {
		t.Errorf("it is off, and there are %d files", len(files))
	}
	files := renderBelow(t, map[string]any{"enabled": true, "image": image, "podTemplate": map[string]any{"spec": map[string]any{"priorityClassName": nil}},
		"controller": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"topologySpreadConstraints": nil}}}})
	const file = "platform/charts/moorage/templates/controller/deployment.yaml"
	if text := files[file]; !strings.Contains(text, "name: moorage-controller") || strings.Contains(text, "priorityClassName") || strings.Contains(text, "topologySpread") {
		t.Errorf("%s is\n%s", file, text)
	}
}

// OpenShift gives each namespace its own users: only moorage-node's pods name any.
func TestPodsNameNoUser(t *testing.T) {
	for component, template := range podTemplates(t, "") {
		security := template.Spec.SecurityContext
		named := security.RunAsUser != nil || security.RunAsGroup != nil || security.FSGroup != nil
		if named != (component == "node") {
			t.Errorf("%s runs as %+v", component, security)
		}
	}
}
