// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const (
	operateDoc   = "../../docs/operate/attacher.md"
	sandboxRoles = "../../test/sandbox/manifests/driver/driver.yaml"
)

// TestOperatePageIsTrue checks what people copy from the page: the arguments
// can be read, the metrics exist, and the rights are those that the scenarios
// run with.
func TestOperatePageIsTrue(t *testing.T) {
	page := readText(t, operateDoc)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		var args []string
		for _, flag := range regexp.MustCompile(`(?m)^\s+- (--\S+)`).FindAllStringSubmatch(block[1], -1) {
			args = append(args, strings.ReplaceAll(flag[1], "$(ADDRESS)", "/run/csi/socket"))
		}
		if _, err := parse(args, io.Discard); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(page, -1) {
		if _, err := parse([]string{flag[1] + "=1s"}, io.Discard); err != nil && strings.Contains(err.Error(), "not defined") {
			t.Error(err)
		}
	}
	known := readText(t, "metrics.go")
	for _, name := range regexp.MustCompile(`moorage_attacher_([a-z_]+)`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(known, name[1]) {
			t.Errorf("there is no metric %s", name[0])
		}
	}
	said, tried := rules(t, page, "example-csi-attacher"), rules(t, readText(t, sandboxRoles), "disk-csi-attacher")
	if len(tried) == 0 || !slices.ContainsFunc(said, func(r string) bool { return strings.Contains(r, "secrets") }) {
		t.Fatalf("the page gives %q, the sandbox %q", said, tried)
	}
	said = slices.DeleteFunc(said, func(r string) bool { return strings.Contains(r, "secrets") })
	if !slices.Equal(said, tried) {
		t.Errorf("the page gives %q, the sandbox %q", said, tried)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// rules are those of a ClusterRole somewhere in a text, one line each.
func rules(t *testing.T, text, name string) []string {
	t.Helper()
	for _, block := range regexp.MustCompile("(?m)^(?:---|```yaml|```)$").Split(text, -1) {
		var role rbacv1.ClusterRole
		if !strings.Contains(block, "kind: ClusterRole\n") || yaml.Unmarshal([]byte(block), &role) != nil || role.Name != name {
			continue
		}
		var lines []string
		for _, r := range role.Rules {
			lines = append(lines, strings.Join(r.APIGroups, ",")+" "+strings.Join(r.Resources, ",")+" "+strings.Join(r.Verbs, ","))
		}
		return lines
	}
	return nil
}
