// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/moorage-dev/moorage"

// law lists the permitted imports of a folder. Facts are below rules, rules below translation, up to the
// programs. The three programs never import each other.
type law struct {
	folder string
	own    []string // in addition to the folder itself
	others []string // prefixes; nil: any
}

var (
	none     = []string{"-"} // the standard library only
	apiTypes = []string{"k8s.io/api/", "k8s.io/apimachinery/"}
	core     = []string{"internal/ledger", "internal/rules", "internal/protocol"}
	shells   = slices.Concat(core, []string{"api", "internal/convert", "internal/watch", "internal/write", "internal/report", "internal/lead", "internal/serving", "internal/work", "internal/fair", "internal/connect", "internal/memory", "internal/served", "internal/announce", "internal/access", "internal/operation", "internal/tickets"})
)

// ordered from the bottom up; the first match counts
var laws = []law{
	{"internal/ledger", nil, none},
	{"internal/rules", []string{"internal/ledger"}, none},
	{"internal/protocol", []string{"internal/ledger", "internal/rules"}, none},
	{"api/client", []string{"api"}, append([]string{"k8s.io/client-go/"}, apiTypes...)},
	// Integrators need only Kubernetes' own client.
	{"api/ticket", []string{"api"}, append([]string{"k8s.io/client-go/"}, apiTypes...)},
	{"api", nil, apiTypes},
	// Kubernetes' own translation library takes a logger; neither talks to a server.
	{"internal/convert", slices.Concat(core, []string{"api"}), append([]string{"k8s.io/csi-translation-lib", "k8s.io/klog/v2"}, apiTypes...)},
	{"internal/networkfence", slices.Concat(core, []string{"api"}), apiTypes},
	{"internal/operation", slices.Concat(core, []string{"api"}), apiTypes},
	{"internal/report", slices.Concat(core, []string{"api", "internal/convert"}), nil},
	{"internal/watch", slices.Concat(core, []string{"api", "internal/convert", "internal/operation", "internal/work"}), nil},
	{"internal/write", slices.Concat(core, []string{"api", "internal/convert", "internal/watch", "internal/report"}), nil},
	{"internal/tickets", slices.Concat(core, []string{"api", "internal/write", "internal/work"}), nil},
	{"internal/work", slices.Concat(core, []string{"internal/fair"}), nil},
	// Knows waiting keys only.
	{"internal/fair", nil, none},
	{"internal/lead", nil, nil},
	{"internal/serving", nil, nil},
	{"internal/announce", nil, nil},
	{"internal/access", []string{"internal/connect", "internal/serving"}, nil},
	{"internal/memory", nil, []string{"k8s.io/klog/v2"}},
	{"internal/connect", []string{"api", "internal/lead"}, nil},
	{"internal/served", nil, []string{"k8s.io/apimachinery/"}},
	{"internal/nodemounts", nil, none},
	{"internal/arch", nil, none},
	{"internal/kubectl/facts", slices.Concat(core, []string{"api", "docs", "internal/convert", "internal/operation"}),
		append([]string{"k8s.io/component-helpers/", "k8s.io/klog/v2"}, apiTypes...)},
	{"internal/kubectl/view", []string{"internal/kubectl/facts"}, none},
	{"internal/kubectl", slices.Concat(shells, []string{"docs"}), nil},
	{"webhook", shells, nil},
	{"plugins", shells, nil},
	{"controller/attacher/decide", []string{"internal/ledger"}, []string{"google.golang.org/grpc/codes"}},
	{"controller/node", []string{"api", "internal/connect", "internal/memory", "internal/nodemounts", "internal/access", "internal/serving"}, nil},
	{"controller/networkfence", slices.Concat(shells, []string{"internal/networkfence"}), nil},
	{"controller", shells, nil},
	{"test/sandbox/disk", nil, nil},
}

func violation(folder, imported string) string {
	own, isOwn := strings.CutPrefix(imported, module+"/")
	if isOwn && within(own, "cmd") {
		return "nothing imports a program's own package"
	}
	if isOwn && within(own, "test") && !within(folder, "test") && !within(folder, "cmd/moorage-sandbox") {
		return "only tests and the sandbox import test code"
	}
	for _, l := range laws {
		if !within(folder, l.folder) {
			continue
		}
		switch {
		case isOwn:
			if !within(own, l.folder) && !slices.ContainsFunc(l.own, func(f string) bool { return within(own, f) }) {
				return fmt.Sprintf("%s may import of this module only %v", l.folder, l.own)
			}
		case !standard(imported) && l.others != nil:
			if !slices.ContainsFunc(l.others, func(p string) bool { return strings.HasPrefix(imported, p) }) {
				return fmt.Sprintf("%s may import of other modules only %v", l.folder, l.others)
			}
		}
		return ""
	}
	return ""
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// Its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func TestImportLaw(t *testing.T) {
	files := sources(t, ".")
	if len(files) < 50 {
		t.Fatalf("found only %d source files", len(files))
	}
	for _, f := range files {
		for _, imported := range f.imports() {
			if v := violation(f.folder, imported); v != "" {
				t.Errorf("%s imports %s: %s (the import law: CONTRIBUTING.md, \"Where things are\")", f.path, imported, v)
			}
		}
	}
}

func TestImportLawCatches(t *testing.T) {
	for _, test := range []struct {
		folder, imported string
		ok               bool
	}{
		{"internal/ledger", "time", true},
		{"internal/ledger", "k8s.io/api/core/v1", false},
		{"internal/ledger", module + "/internal/rules", false},
		{"internal/rules", module + "/internal/ledger", true},
		{"internal/rules", module + "/internal/convert", false},
		{"internal/rules", "k8s.io/klog/v2", false},
		{"internal/protocol", module + "/internal/rules", true},
		{"internal/protocol", module + "/internal/write", false},
		{"internal/protocol", "k8s.io/api/core/v1", false},
		{"internal/rules", module + "/internal/protocol", false},
		{"internal/convert", "k8s.io/api/core/v1", true},
		{"internal/convert", "k8s.io/client-go/kubernetes", false},
		{"internal/watch", "k8s.io/client-go/informers", true},
		{"internal/watch", module + "/internal/write", false},
		{"internal/write", module + "/internal/watch", true},
		{"webhook/pod", module + "/api/v1alpha1", true},
		{"webhook/pod", module + "/plugins/volumehold", false},
		{"webhook", module + "/internal/serving", true},
		{"webhook", module + "/plugins/extender", false},
		{"plugins/extender", module + "/internal/serving", true},
		{"plugins/extender", module + "/webhook", false},
		{"internal/serving", module + "/internal/ledger", false},
		{"internal/lead", module + "/internal/ledger", false},
		{"plugins/extender", module + "/controller/ticket", false},
		{"controller/ticket", module + "/webhook", false},
		{"controller/ticket", module + "/internal/write", true},
		{"controller/ticket", module + "/cmd/moorage", false},
		{"controller/node", module + "/internal/nodemounts", true},
		{"controller/node", module + "/internal/rules", false},
		{"internal/nodemounts", "k8s.io/api/core/v1", false},
		{"api/v1alpha1", module + "/internal/ledger", false},
		{"api/v1alpha1", "k8s.io/client-go/rest", false},
		{"test/sandbox/disk/judge", module + "/internal/rules", false},
		{"test/sandbox/disk/judge", module + "/api/v1alpha1", false},
		{"test/sandbox/disk/judge", module + "/test/sandbox/disk/cloud", true},
		{"controller", module + "/test/sandbox", false},
		{"internal/kubectl/facts", module + "/internal/rules", true},
		{"internal/kubectl/facts", "k8s.io/client-go/kubernetes", false},
		{"internal/kubectl/facts", module + "/internal/kubectl/cluster", false},
		{"internal/kubectl/list", "k8s.io/client-go/kubernetes", true},
		{"internal/kubectl/list", module + "/controller/ticket", false},
		{"cmd/moorage-sandbox", module + "/test/sandbox", true},
	} {
		if got := violation(test.folder, test.imported); (got == "") != test.ok {
			t.Errorf("%s imports %s: %q, want it allowed: %t", test.folder, test.imported, got, test.ok)
		}
	}
}
