// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestOperatePageIsTrue(t *testing.T) {
	_, page, found := strings.Cut(readText(t, "../../docs/operate/modes.md"), "\n## moorage-attacher\n")
	flags := regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(page, -1)
	if !found || len(flags) < 4 {
		t.Fatalf("the page has only the flags %v", flags)
	}
	for _, flag := range flags {
		if _, err := parse([]string{flag[1] + "=1s"}, io.Discard); err != nil && strings.Contains(err.Error(), "not defined") {
			t.Error(err)
		}
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
