// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/metricstest"
)

type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T, values string) map[string][]alertRule {
	t.Helper()
	var rules struct {
		Spec struct {
			Groups []struct {
				Name  string      `json:"name"`
				Rules []alertRule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	raw, err := renderRelease(t, values)["PrometheusRule/storage/moorage"].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	out := map[string][]alertRule{}
	for _, group := range rules.Spec.Groups {
		out[group.Name] = group.Rules
	}
	return out
}

func sections(t *testing.T, page, level string) []string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, level+" "); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

func TestEachAlertHasARunbook(t *testing.T) {
	groups := alerts(t, strings.Replace(attachers, "{name: disk", "{name: other.example.com, namespace: x, serviceAccount: x, podLabels: {app: x}}\n    - {name: disk", 1))
	var names []string
	for _, rules := range groups {
		for _, rule := range rules {
			names = append(names, rule.Alert)
			if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %s does not say how bad it is, or what it is", rule.Alert)
			}
		}
	}
	explained := sections(t, "../docs/operate/runbook.md", "##")
	slices.Sort(explained)
	slices.Sort(names)
	if got := slices.Compact(names); !slices.Equal(got, explained) {
		t.Errorf("the alerts are %v, the page's sections %v", got, explained)
	}
	if len(groups["moorage-attachers"]) != 2 {
		t.Errorf("two drivers of three are scraped, and the attachers of %d are missed", len(groups["moorage-attachers"]))
	}
}

// Tests of the components compare docs/metrics.md with their metrics.
func TestWhatIsAskedForIsMeasured(t *testing.T) {
	measured := metricstest.Listed(t, "../docs/metrics.md", "")
	found := map[string]bool{}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile("../charts/moorage/files/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bmoorage_[a-z_]+`).FindAllString(string(text), -1) {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			found[base] = true
			if !slices.Contains(measured, base) {
				t.Errorf("%s asks for %s, which nobody measures", file, name)
			}
		}
	}
	if len(found) < 25 {
		t.Errorf("they ask only for %d metrics", len(found))
	}
}
