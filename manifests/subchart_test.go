// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	dependencies "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// renderBelow renders the chart as a dependency of another one, which switches it on and off
// by Helm's usual condition.
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

// A chart of charts switches Moorage on and off by a condition, and has global values.
func TestParentChart(t *testing.T) {
	image := map[string]any{"registry": registry}
	if files := renderBelow(t, map[string]any{"enabled": false, "image": image}); len(files) > 0 {
		t.Errorf("it is off, and there are %d files", len(files))
	}
	files := renderBelow(t, map[string]any{"enabled": true, "image": image, "podSecurityContext": map[string]any{"fsGroup": nil}})
	const file = "platform/charts/moorage/templates/controller/deployment.yaml"
	if text := files[file]; !strings.Contains(text, "runAsUser: 65532") || strings.Contains(text, "fsGroup") {
		t.Errorf("%s is\n%s", file, text)
	}
}

// OpenShift gives each namespace users and groups of its own, and refuses others.
func TestPodSecurityContext(t *testing.T) {
	for values, want := range map[string]string{
		"": "fsGroup:65532 runAsGroup:65532 runAsUser:65532",
		"podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}": "",
		"podSecurityContext: {runAsUser: 1000650000, fsGroup: null}":             "runAsGroup:65532 runAsUser:1000650000",
	} {
		files, err := renderChart(t, "certManager: {enabled: false}\nextender: {enabled: true, certificatesGiven: true}\n"+values)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"controller/deployment.yaml", "scheduler/deployment.yaml", "webhook/deployment.yaml",
			"certificate/job.yaml", "test/check.yaml"} {
			var got []string
			for _, id := range regexp.MustCompile(`(?:runAsUser|runAsGroup|fsGroup): \S+`).FindAllString(files[file], -1) {
				got = append(got, strings.ReplaceAll(id, " ", ""))
			}
			slices.Sort(got)
			if got := strings.Join(slices.Compact(got), " "); got != want || !strings.Contains(files[file], "runAsNonRoot: true") {
				t.Errorf("%q: %s has %q, want %q", values, file, got, want)
			}
		}
	}
}
