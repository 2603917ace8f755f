// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Each case of InUseUnknown says one thing to do first, at the node of the reason, and has the
// page's whole text beside it.
func TestInUseUnknownSaysWhatToDoFirst(t *testing.T) {
	w := NewWorld(Objects{}, noon())
	for detail, want := range map[string]string{
		"": "kubectl describe node worker-1",
		"its kubelet may have forgotten that it is mounted, since for a while the node did not name it as attached":         "(findmnt)",
		"another machine had its name before, and may have it mounted":                                                      "was called worker-1 before",
		"moorage-node has not said there that nothing of it is staged or mounted, and its AttachPolicy has requireNodeWord": "whether moorage-node runs at worker-1",
	} {
		r := w.reason(arbiter.Reason{Code: arbiter.InUseUnknown, Volume: ledger.VolumeID{Driver: "d", Handle: "h"}, Node: "worker-1", Detail: detail}, nil)
		if !strings.Contains(r.Do, want) || len(r.Do) > 160 || !strings.Contains(r.More, "findmnt") || r.Cause().More != r.More {
			t.Errorf("%q: first %q, in all %q", r.Message, r.Do, r.More)
		}
	}
	if r := w.reason(arbiter.Reason{Code: arbiter.InUse}, nil); r.More != "" || r.Do == "" {
		t.Errorf("InUse has one way out, not %q and %q", r.Do, r.More)
	}
}
