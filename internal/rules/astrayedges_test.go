// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestAstray(t *testing.T) {
	failing := madeAt("well", refusedToGo)
	for name, test := range map[string]struct {
		next  ledger.NodeName
		facts []ledger.Event
		code  ledger.Code // empty: at no other node
		at    ledger.NodeName
	}{
		"only at the holder's":               {"", []ledger.Event{madeAt("well")}, "", ""},
		"at another, too":                    {"", []ledger.Event{madeAt("well"), madeAt("dead")}, Detaching, "dead"},
		"at another that is not next":        {"third", []ledger.Event{madeAt("well"), madeAt("dead")}, Detaching, "dead"},
		"at the next one":                    {"dead", []ledger.Event{failing, madeAt("dead")}, DetachFailed, "well"},
		"only at the next one":               {"dead", []ledger.Event{madeAt("dead")}, Detaching, "dead"},
		"at the next one, and a third":       {"dead", []ledger.Event{failing, madeAt("dead"), madeAt("third")}, Detaching, "third"},
		"a ticket keeps it detached":         {"", []ledger.Event{madeAt("well"), keepsOff("m")}, "", ""},
		"detached, and at another":           {"", []ledger.Event{madeAt("well"), madeAt("dead"), keepsOff("m")}, Detaching, "dead"},
		"it was shared, and leaves all":      {"", []ledger.Event{madeAt("well"), madeAt("dead"), keepsOff("m"), sharedDisk}, "", ""},
		"shared, and nobody has it detached": {"", []ledger.Event{madeAt("well"), madeAt("dead"), sharedDisk}, "", ""},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		h := ledger.Hold{Node: "well", Next: ledger.Promise{Node: test.next}}
		got, is := p.astray(&h, p.at("well"))
		if is != (test.code != "") || got.Code != test.code || got.Node != test.at {
			t.Errorf("%s: %+v, %t", name, got, is)
		}
	}
}

// The hold keeps its old entry of the node and boot.
func TestHolderNodeOfTheUnknown(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	of := func(n ledger.NodeName, uid string) ledger.Hold {
		return ledger.Hold{Node: n, NodeUID: uid, BootID: "b", SystemUUID: "m"}
	}
	for name, test := range map[string]struct {
		was  ledger.Hold
		at   ledger.NodeName
		want [3]string
	}{
		"nobody knows it":               {of("well", "w"), "nowhere", [3]string{"", "", ""}},
		"nobody knows it any more":      {of("nowhere", "n"), "nowhere", [3]string{"n", "b", "m"}},
		"the boot was said before":      {of("well", "w"), "well", [3]string{"w", "b", "m"}},
		"of another Node":               {of("well", "old"), "well", [3]string{"w", "", ""}},
		"of another place, the same ID": {of("third", "w"), "well", [3]string{"w", "", ""}},
		"nothing was said":              {ledger.Hold{}, "well", [3]string{"w", "", ""}},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, alive, ledger.PersistentVolume{Name: "plain", Version: "1", Volume: iscsi, Access: ledger.AccessNode})
		for _, v := range []ledger.VolumeID{disk, iscsi} {
			p.volume = p.snapshot.Volume(v)
			uid, boot, machine := p.holderNode(test.was, test.at, nil)
			if got := [3]string{uid, boot, machine}; got != test.want {
				t.Errorf("%s: volume %s: %q, want %q", name, v, got, test.want)
			}
		}
	}
}
