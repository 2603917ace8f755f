// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	const status = "Name:\tmoorage-node\nVmPeak:\t    9999 kB\nVmHWM:\t    4096 kB\nRssAnon:\t    1024 kB\n"
	got, err := memoryOf(status, "VmHWM", "RssAnon")
	if want := (Memory{"VmHWM": 4, "RssAnon": 1}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := memoryOf(status, "VmRSS"); err == nil || !strings.Contains(err.Error(), "VmRSS") {
		t.Errorf("a status without VmRSS: %v", err)
	}
	if _, err := memoryOf(strings.Replace(status, "1024", "much", 1), "RssAnon"); err == nil {
		t.Error("a number that is none is read")
	}
}
