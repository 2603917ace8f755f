// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

func TestThePagesSetWhatTheChartHas(t *testing.T) {
	pages, err := filepath.Glob("../docs/operate/*.md")
	if err != nil {
		t.Fatal(err)
	}
	set, inline := regexp.MustCompile("--set[ =]([^ \n`]+)"), regexp.MustCompile("`([a-z][A-Za-z]+(?:\\.[A-Za-z]+)+)(?:: ([^`]+)|=([^`]+))?`")
	raw, err := os.ReadFile("../charts/moorage/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{}
	if err := yaml.Unmarshal(raw, &defaults); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range set.FindAllStringSubmatch(string(text), -1) {
			values, err := strvals.Parse(match[1])
			if err != nil {
				t.Errorf("%s: --set %s: %v", page, match[1], err)
				continue
			}
			asYAML, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderChart(t, string(asYAML)); err != nil {
				t.Errorf("%s: --set %s: %v", page, match[1], err)
			}
			found++
		}
		for _, match := range inline.FindAllStringSubmatch(string(text), -1) {
			section, _, _ := strings.Cut(match[1], ".")
			if _, ours := defaults[section]; ours && !has(defaults, match[1]) {
				t.Errorf("%s: the chart has no value %s", page, match[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d commands were found", found)
	}
}

func has(values map[string]any, path string) bool {
	first, rest, more := strings.Cut(path, ".")
	value, ok := values[first]
	if !more || !ok {
		return ok
	}
	below, ok := value.(map[string]any)
	return ok && has(below, rest)
}

func TestThePagesValuesRender(t *testing.T) {
	raw, err := os.ReadFile("../charts/moorage/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{}
	if err := yaml.Unmarshal(raw, &defaults); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/operate/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			values := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(block[1]), &values); err != nil || len(values) == 0 {
				continue // part of something else
			}
			ours := true
			for key := range values {
				_, known := defaults[key]
				ours = ours && known
			}
			if !ours {
				continue
			}
			found++
			if _, err := renderChart(t, block[1]); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page gives values")
	}
}

func TestInstallGuides(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/install.md")
	if err != nil {
		t.Fatal(err)
	}
	metadata, seen := loadChart(t).Metadata, map[string]int{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, document := range strings.Split(block[1], "\n---\n") {
			var guide struct {
				Kind         string
				Dependencies []struct{ Name, Version string }
				Moorage      map[string]any
				Spec         struct {
					Source struct {
						Chart, TargetRevision string
						Helm                  struct{ ValuesObject map[string]any }
					}
					URL    string
					Ref    struct{ Tag string }
					Values map[string]any
				}
			}
			if err := yaml.Unmarshal([]byte(document), &guide); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
			var values any
			name, version := metadata.Name, metadata.Version
			switch {
			case guide.Kind == "Application":
				source := guide.Spec.Source
				name, version, values = source.Chart, source.TargetRevision, source.Helm.ValuesObject
			case guide.Kind == "OCIRepository":
				name, version = filepath.Base(guide.Spec.URL), guide.Spec.Ref.Tag
			case guide.Kind == "HelmRelease":
				values = guide.Spec.Values
			case len(guide.Dependencies) == 1:
				name, version = guide.Dependencies[0].Name, guide.Dependencies[0].Version
			case guide.Moorage != nil:
				guide.Moorage["image"] = map[string]any{"registry": registry}
				if len(renderBelow(t, guide.Moorage)) == 0 {
					t.Errorf("nothing is rendered of\n%s", document)
				}
			default:
				guide.Kind = "values"
				if err := yaml.Unmarshal([]byte(document), &values); err != nil {
					t.Fatal(err)
				}
			}
			seen[guide.Kind]++
			if name != metadata.Name || version != metadata.Version {
				t.Errorf("it names chart %s %s, want %s %s:\n%s", name, version, metadata.Name, metadata.Version, document)
			}
			raw, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderChart(t, string(raw)); err != nil {
				t.Errorf("%v\n%s", err, document)
			}
		}
	}
	if seen["values"] < 5 || seen["Application"] != 1 || seen["HelmRelease"] != 1 || seen[""] != 2 {
		t.Errorf("the page has %v", seen)
	}
}
