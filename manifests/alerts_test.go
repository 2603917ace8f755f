// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Whoever is woken by an alert finds what to do under its name, and in words.
func TestEachAlertHasARunbook(t *testing.T) {
	raw, err := os.ReadFile("../charts/moorage/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(raw, &alerts); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operate/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections, names []string
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, strings.TrimSpace(name))
		}
	}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %s does not say how bad it is, or what it is", rule.Alert)
			}
		}
	}
	if len(names) == 0 || !slices.Equal(names, sections) {
		t.Errorf("the alerts are %v, the runbook's sections %v", names, sections)
	}
}
