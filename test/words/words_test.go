// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strings"
	"testing"
)

func TestRiddles(t *testing.T) {
	found := Riddles("A pod is TOLD so.\nIt waits for\never, and nothing more.\nAn untold story, and for everybody.")
	if len(found) != 2 || !strings.Contains(found[0], `"TOLD"`) || !strings.Contains(found[1], "forever") || !strings.Contains(found[1], "It waits for") {
		t.Errorf("found %q", found)
	}
}
