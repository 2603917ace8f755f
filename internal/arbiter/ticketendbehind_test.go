// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"testing"

	"github.com/moorage-dev/moorage/test/world"
)

// A ticket ends after its node has fallen silent, and whoever leads sees that end before the node's silence; or a leader begins
// with the Node as it was before that. The kubelet's word tells nothing of the ticket's holder, whom nobody can have told: the
// volume stays.
func TestTicketEndSeenBeforeItsNodesSilence(t *testing.T) {
	for name, test := range map[string]struct {
		volume []string
		wanted bool // by a pod at another node
	}{
		"exclusive":                         {volume: []string{"pv pv-1 claim=data"}},
		"exclusive, and wanted":             {volume: []string{"pv pv-1 claim=data"}, wanted: true},
		"exclusive, with a detachDelay":     {volume: []string{"pv pv-1 claim=data", "policy all detachDelay=1h"}},
		"shared":                            {volume: []string{"pv pv-1 claim=data access=RWX"}},
		"shared, with a detachDelay":        {volume: []string{"pv pv-1 claim=data access=RWX", "policy all detachDelay=1h"}},
		"without VolumeAttachments":         {volume: []string{"pv pv-1 claim=data driver=kubernetes.io/iscsi"}},
		"shared, without VolumeAttachments": {volume: []string{"pv pv-1 claim=data driver=kubernetes.io/iscsi access=RWX"}},
	} {
		for order, begins := range map[string]bool{"in one term": false, "a leader begins": true} {
			t.Run(name+", "+order, func(t *testing.T) {
				s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\n")
				playOn(t, s, append(test.volume, "ticket mine type=Manual node=worker-2 claims=data", "run")...)
				before := s.List(world.Nodes)
				s.behind = []world.Kind{world.Nodes}
				playOn(t, s, "kubelet worker-2 down", "node worker-2 ready=unknown", "delete ticket=mine")
				if begins {
					s.beginBehind(before)
				}
				if test.wanted {
					playOn(t, s, "pod db claim=data", "reserve db node=worker-1")
				}
				playOn(t, s, "run", "advance 1m", "run")
				s.behind = nil
				s.flush()
				playOn(t, s, "run", "show volume=pv-1", "restart", "run")
				p := s.snapshot().Volume(s.volumeNamed("pv-1")).NodeVolume("worker-2")
				if p == nil || !p.MayBeThere(s.volumeNamed("pv-1")) {
					t.Error("detached from silent worker-2 on its kubelet's word, though the ticket's holder may write there")
				}
			})
		}
	}
}

// What a ticket had at a node that is silent by now counts as in use there, also where it was left there for a while, without a
// VolumeAttachment, when the ticket ended: it is not detached on the word of the kubelet, which knows nothing of tickets.
func TestTicketOfWhatWasLeftAtASilentNode(t *testing.T) {
	for name, lines := range map[string]string{"the same leader": "", "the next leader": "restart\nrun"} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
ticket mine type=Manual node=worker-2 claims=data
run
fail detach volume=pv-1
csinode worker-2 gone
delete attachment=pv-1 node=worker-2
run
show volume=pv-1
kubelet worker-2 down
node worker-2 ready=unknown
run
delete ticket=mine
run
show volume=pv-1
`+lines+`
csinode worker-2 driver=disk limit=4
fail detach volume=pv-1 ok
run
show volume=pv-1
`)
			if p := s.snapshot().Volume(s.volumeNamed("pv-1")).NodeVolume("worker-2"); p == nil || !p.HasAttachments() {
				t.Error("attached anew, and detached from silent worker-2 on its kubelet's word, though the ticket's holder may write there")
			}
		})
	}
}
