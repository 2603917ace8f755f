// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

type dashboardPanel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct{ Thresholds struct{ Steps []any } }
	}
	Targets []struct {
		RefID      string `json:"refId"`
		Expr       string `json:"expr"`
		Datasource struct{ UID string }
	} `json:"targets"`
}

func TestDashboardLeadsOn(t *testing.T) {
	raw, err := os.ReadFile("../charts/moorage/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels      []dashboardPanel
		Links       []struct{ URL string }
		Templating  struct{ List []struct{ Name string } }
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	heatmaps := 0
	for _, p := range dashboard.Panels {
		if p.Type == "stat" && len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
			t.Errorf("%q does not say from which value on it is bad", p.Title)
		}
		if p.Type == "heatmap" {
			heatmaps++
		}
	}
	if heatmaps == 0 {
		t.Error("no heatmap shows the slots")
	}
	var variables []string
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
	}
	if want := []string{"datasource", "driver", "node"}; !slices.Equal(variables, want) {
		t.Errorf("its variables are %v, want %v", variables, want)
	}
	if len(dashboard.Annotations.List) != 1 || !strings.Contains(dashboard.Annotations.List[0].Expr, `ALERTS{alertname=~"Moorage.*"`) {
		t.Errorf("its annotations are %+v", dashboard.Annotations.List)
	}
	const blob = "https://github.com/moorage-dev/moorage/blob/main/"
	for _, l := range dashboard.Links {
		path, ours := strings.CutPrefix(l.URL, blob)
		if _, err := os.Stat("../" + path); !ours || err != nil {
			t.Errorf("its link %s leads to no page of ours: %v", l.URL, err)
		}
	}
	if len(dashboard.Links) < 3 {
		t.Errorf("it has only the links %v", dashboard.Links)
	}
}

func TestDashboardIsWhole(t *testing.T) {
	raw, err := os.ReadFile("../charts/moorage/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []dashboardPanel }
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("there are two panels %d", p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %d %q says or shows nothing", p.ID, p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%q lies over %q, or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Expr == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%q asks %+v", p.Title, target)
			}
			refs[target.RefID] = true
		}
	}
	if len(ids) < 20 {
		t.Errorf("there are only %d panels", len(ids))
	}
}
