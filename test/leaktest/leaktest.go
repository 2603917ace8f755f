// SPDX-License-Identifier: Apache-2.0

// Package leaktest finds goroutines that a test has left behind.
package leaktest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is for goroutines that are on their way out.
const patience = 20 * time.Second

// Check's returned function fails the test if new goroutines of packages remain. packages are prefixes of
// function names on a goroutine's stack.
func Check(t *testing.T, packages ...string) (ended func()) {
	t.Helper()
	before := len(left(packages))
	return func() {
		t.Helper()
		var now []string
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if now = left(packages); len(now) <= before {
				return
			}
			if time.Now().After(deadline) {
				break
			}
		}
		t.Errorf("%d goroutines are left, there were %d:\n%s", len(now), before, strings.Join(now, "\n\n"))
	}
}

func left(packages []string) []string {
	buffer := make([]byte, 4<<20)
	var list []string
	for stack := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "testing.tRunner") {
			continue
		}
		for _, p := range packages {
			if strings.Contains(stack, "\n"+p) {
				list = append(list, stack)
				break
			}
		}
	}
	return list
}
