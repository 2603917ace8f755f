// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
		"moorage-node there could not read everything that may be about it, and its AttachPolicy has requireNodeWord":       "kubectl get nodevolumes worker-1",
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

// Where the volume is known, what to do is said whole, and nothing is deleted that can't be looked for.
func TestInUseUnknownNamesWhatIsKnown(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, test := range map[string]struct {
		change       func(*Objects)
		detail, want string
	}{
		"a file system":   {func(*Objects) {}, forgotten, "findmnt -l | grep -e pv-h -e "},
		"a block volume":  {func(o *Objects) { o.PersistentVolumes[0].Spec.VolumeMode = &block }, forgotten, "Reboot the machine of n;"},
		"no attachment":   {func(o *Objects) { o.Attachments = nil }, forgotten, "Reboot the machine of n;"},
		"another machine": {func(*Objects) {}, "another machine had its name before", "was called n before is gone, or powered off. Only then: kubectl delete volumeattachment csi-"},
	} {
		o := left()
		other := Objects{}
		one(&other, o.Nodes[0], "h")
		o.Attachments = other.Attachments
		test.change(&o)
		r := NewWorld(o, noon()).reason(arbiter.Reason{Code: arbiter.InUseUnknown, Volume: ledger.VolumeID{Driver: driver, Handle: "h"}, Node: "n", Detail: test.detail}, nil)
		if !strings.Contains(r.Do, test.want) || r.More != "" || strings.Contains(r.Do, "-o wide") {
			t.Errorf("%s: %q, in all %q", name, r.Do, r.More)
		}
		if deletes := strings.Contains(r.Do, "kubectl delete"); deletes != (name == "a file system" || name == "another machine") {
			t.Errorf("%s: %q", name, r.Do)
		}
	}
}

const forgotten = "its kubelet may have forgotten that it is mounted"
