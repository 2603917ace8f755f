// SPDX-License-Identifier: Apache-2.0

// Package metricstest compares what a component measures with what
// docs/metrics.md says that it does, in tests of the components.
package metricstest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// ours matches the names of metrics that Moorage makes.
const ours = "(?:moorage_|attach_?detach_controller_|storage_operation_)[a-z_]+"

// Documented fails the test unless the section of a page lists just those
// metrics of the collector whose names begin with moorage_, or are the attach/detach
// controller's, each in a row of a table. The collector may be a registry; nothing is collected.
func Documented(t testing.TB, c prometheus.Collector, page, section string) {
	t.Helper()
	measured, listed := names(c), Listed(t, page, section)
	if len(measured) == 0 || !slices.Equal(measured, listed) {
		t.Errorf("%s lists under %s\n%v, measured are\n%v", page, section, listed, measured)
	}
}

// Listed returns the sorted names of metrics in the tables of a page's section,
// or in the whole page if section is empty.
func Listed(t testing.TB, page, section string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	body := string(text)
	if section != "" {
		_, body, _ = strings.Cut(body, "\n## "+section+"\n")
		body, _, _ = strings.Cut(body, "\n## ")
	}
	var out []string
	for _, match := range regexp.MustCompile("(?m)^\\| `("+ours+")`").FindAllStringSubmatch(body, -1) {
		out = append(out, match[1])
	}
	slices.Sort(out)
	return out
}

// names are those of a collector's metrics, also of those that have no value yet.
func names(c prometheus.Collector) []string {
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		c.Describe(described)
	}()
	var out []string
	for desc := range described {
		// A description keeps its name to itself, but for its text.
		if match := regexp.MustCompile(`fqName: "(` + ours + `)"`).FindStringSubmatch(desc.String()); match != nil {
			out = append(out, match[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
