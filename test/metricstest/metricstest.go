// SPDX-License-Identifier: Apache-2.0

// Package metricstest compares a component's metrics with docs/metrics.md.
package metricstest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

const ours = "(?:moorage_|attach_?detach_controller_|storage_operation_)[a-z_]+"

// Documented fails the test unless a page's section lists exactly the collector's metrics, by moorage_
// names or those of the attach/detach controller. The collector may be a registry; nothing is collected.
func Documented(t testing.TB, c prometheus.Collector, page, section string) {
	t.Helper()
	measured, listed := names(c), Listed(t, page, section)
	if len(measured) == 0 || !slices.Equal(measured, listed) {
		t.Errorf("%s lists under %s\n%v, measured are\n%v", page, section, listed, measured)
	}
}

// Listed returns the sorted metrics of a page's section; of the whole page if section is empty.
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

// names includes metrics without a value.
func names(c prometheus.Collector) []string {
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		c.Describe(described)
	}()
	var out []string
	for desc := range described {
		// A description shows its name only in its text.
		if match := regexp.MustCompile(`fqName: "(` + ours + `)"`).FindStringSubmatch(desc.String()); match != nil {
			out = append(out, match[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
