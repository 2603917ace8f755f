// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Bound pods give the access, or else tickets' pods. A hold's node may limit it.
func TestAccessOfWhatPodsName(t *testing.T) {
	v := ledger.VolumeID{Driver: "d", Handle: "h"}
	pod := func(uid string, n ledger.NodeName, a ledger.Access) ledger.Event {
		return ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Node: n, Volumes: []ledger.PodVolume{{Name: "v", Inline: v, Access: a}}}
	}
	attached := ledger.Attachment{Name: ledger.AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", Inline: v, Attached: true}
	uses := ledger.NodeState{Name: "n", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{v}}
	held := func(who ...ledger.Requester) ledger.Event {
		return ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Version: "1", Node: "n", Transitions: 1, Requesters: who}}
	}
	free := ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Version: "1", State: ledger.HoldFree, Transitions: 1}}
	shared := ledger.PersistentVolume{Name: "pv", Version: "1", Volume: v, Access: ledger.AccessMany}
	many := pod("p", "m", ledger.AccessMany)
	for name, test := range map[string]struct {
		facts []ledger.Event
		need  ledger.Access
		want  ledger.Access
	}{
		"a bound pod's word":                         {[]ledger.Event{many}, 0, ledger.AccessMany},
		"held, and attached":                         {[]ledger.Event{many, held(), attached}, 0, ledger.AccessNode},
		"held, and in use":                           {[]ledger.Event{many, held(), uses}, 0, ledger.AccessNode},
		"held, by whom it names":                     {[]ledger.Event{many, held(ledger.Requester{UID: "q"}), pod("q", "n", ledger.AccessMany)}, 0, ledger.AccessNode},
		"held, and somebody came since":              {[]ledger.Event{many, held(), pod("q", "n", ledger.AccessMany)}, 0, ledger.AccessMany},
		"held, and it has left":                      {[]ledger.Event{many, held()}, 0, ledger.AccessMany},
		"held no more, and attached":                 {[]ledger.Event{many, free, attached}, 0, ledger.AccessMany},
		"held, and a PersistentVolume says more":     {[]ledger.Event{shared, held(), attached}, 0, ledger.AccessMany},
		"held, and one has said more":                {[]ledger.Event{shared, held(), attached, ledger.PersistentVolumeGone{Name: "pv"}}, 0, ledger.AccessMany},
		"a request's word, and it is attached":       {[]ledger.Event{attached}, ledger.AccessMany, ledger.AccessUnknown},
		"a request's word, and it is nowhere":        {[]ledger.Event{free}, ledger.AccessMany, ledger.AccessMany},
		"a request's word against a bound pod's one": {[]ledger.Event{many}, ledger.AccessNode, ledger.AccessMany},
	} {
		l := ledger.New()
		for _, e := range test.facts {
			l.Apply(auditTime, e)
		}
		s := l.Snapshot()
		if got := access(s, s.Volume(v), test.need); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
