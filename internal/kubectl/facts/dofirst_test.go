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
	told := doFirst(Reason{Code: string(arbiter.HeldElsewhere), Message: "can't take volume a: n2 holds it for ticket s/t, which has been asked to let go of it by 2026-03-01T12:00:20Z", Do: "Delete the holder"})
	if !strings.HasPrefix(told.Do, "Nothing: the ticket gives the volume up by then") {
		t.Errorf("what to do about a ticket that is asked to let go, as the controller has told the pod: %q", told.Do)
	}
	if r := w.reason(arbiter.Reason{Code: arbiter.InUse}, nil); r.More != "" || r.Do == "" {
		t.Errorf("InUse has one way out, not %q and %q", r.Do, r.More)
	}
}
