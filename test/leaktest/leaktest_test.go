// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"strings"
	"testing"
)

const here = "github.com/moorage-dev/moorage/test/leaktest"

func TestLeft(t *testing.T) {
	ended := Check(t, here)
	end, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		<-end
	}()
	stacks := left([]string{here})
	if len(stacks) != 1 || !strings.Contains(stacks[0], "TestLeft") {
		t.Errorf("a goroutine that waits is not found: %q", stacks)
	}
	close(end)
	<-over
	ended()
}
