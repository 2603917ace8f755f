// SPDX-License-Identifier: Apache-2.0

// Command promql parses the alerts and the dashboard of the chart with Prometheus' own parser, and prints
// the names of their metrics. Its module is separate, since Prometheus has many dependencies.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: promql ALERTS.yaml DASHBOARD.json")
		os.Exit(2)
	}
	names, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	for _, name := range names {
		fmt.Println(name)
	}
}

func run(alerts, dashboard string) ([]string, error) {
	first, err := ofAlerts(alerts)
	if err != nil {
		return nil, err
	}
	second, err := ofDashboard(dashboard)
	if err != nil {
		return nil, err
	}
	return metrics(append(first, second...))
}

// The file must be one that Prometheus loads.
func ofAlerts(file string) ([]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	groups, errs := rulefmt.Parse(raw, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errors.Join(errs...))
	}
	var out []string
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			out = append(out, rule.Expr)
		}
	}
	return out, nil
}

func ofDashboard(file string) ([]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$driver", ".*", "$node", ".*")
	var out []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			out = append(out, variables.Replace(target.Expr))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s asks for nothing", file)
	}
	return out, nil
}

func metrics(expressions []string) ([]string, error) {
	found := map[string]bool{}
	p := parser.NewParser(parser.Options{})
	for _, expression := range expressions {
		tree, err := p.ParseExpr(expression)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expression, err)
		}
		for _, selectors := range parser.ExtractSelectors(tree) {
			for _, matcher := range selectors {
				if matcher.Name == labels.MetricName && matcher.Type == labels.MatchEqual {
					found[matcher.Value] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
