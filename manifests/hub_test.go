// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type chartFile struct {
	Version, AppVersion, KubeVersion, Icon string
	Annotations                            map[string]string
}

func (c chartFile) annotation(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(c.Annotations["artifacthub.io/"+name]), into); err != nil {
		t.Fatalf("artifacthub.io/%s: %v", name, err)
	}
}

func TestArtifactHubIsToldTheTruth(t *testing.T) {
	raw, err := os.ReadFile("../charts/moorage/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart chartFile
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.KubeVersion == "" || chart.Icon == "" || chart.Annotations["artifacthub.io/license"] != "Apache-2.0" {
		t.Errorf("the chart says %+v", chart)
	}
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	chart.annotation(t, "images", &images)
	var named []string
	for _, image := range images {
		named = append(named, image.Image)
		if !strings.HasSuffix(image.Image, "/"+image.Name+":"+chart.AppVersion) || !slices.Equal(image.Platforms, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("an image is told as %+v", image)
		}
	}
	for _, w := range renderRelease(t, everything).workloads(t) {
		for _, c := range w.template.Spec.Containers {
			_, image, _ := strings.Cut(c.Image, "/")
			if !slices.ContainsFunc(named, func(known string) bool { return strings.HasSuffix(known, "/"+image) }) {
				t.Errorf("%s runs %s, which nobody tells", w.name, c.Image)
			}
		}
	}
	var kinds []struct{ Kind, Version, Name, DisplayName, Description string }
	chart.annotation(t, "crds", &kinds)
	files, err := filepath.Glob("../charts/moorage/files/crds/*.yaml")
	if err != nil || len(files) != len(kinds) {
		t.Errorf("%d kinds are defined, %d told: %v", len(files), len(kinds), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(kinds, func(k struct{ Kind, Version, Name, DisplayName, Description string }) bool { return k.Name == crd.Name })
		if i < 0 || kinds[i].Kind != crd.Spec.Names.Kind || kinds[i].Version != crd.Spec.Versions[0].Name || kinds[i].Description == "" {
			t.Errorf("%s is not told as it is", crd.Name)
		}
	}
	var changes []struct{ Kind, Description string }
	chart.annotation(t, "changes", &changes)
	for _, change := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || change.Description == "" {
			t.Errorf("a change is told as %+v", change)
		}
	}
}
