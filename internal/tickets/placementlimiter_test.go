// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/internal/rules"
)

func TestPlacingsAreShared(t *testing.T) {
	var p placementLimiter
	refused := 0
	for range 3 * rules.MaxWaiting {
		if !p.may("tenant") {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("none of %d was put off", 3*rules.MaxWaiting)
	}
	if !p.may("other") {
		t.Error("another namespace waits for them")
	}
	for i := range maxNamespaces {
		p.may(strconv.Itoa(i))
	}
	if len(p.of) > maxNamespaces {
		t.Errorf("%d namespaces are remembered", len(p.of))
	}
}
