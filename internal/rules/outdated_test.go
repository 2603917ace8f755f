// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A never attached attachment is deleted to use the present PersistentVolume. With a finalizer its attacher
// first detaches by the old.
func TestOutdated(t *testing.T) {
	pv := func(name string, change func(*ledger.PersistentVolume)) ledger.Event {
		p := ledger.PersistentVolume{Name: name, Version: "2", Volume: disk, Access: ledger.AccessNode}
		change(&p)
		return p
	}
	deleting := pv("old", func(p *ledger.PersistentVolume) { p.Deleting = true })
	replaced := pv("old", func(p *ledger.PersistentVolume) { p.Volume.Handle = "new" })
	there := pv("old", func(*ledger.PersistentVolume) {})
	as := func(changes ...func(*ledger.Attachment)) ledger.Event {
		failed := func(a *ledger.Attachment) {
			a.PersistentVolume, a.Attached, a.AttachError = "old", false, ledger.CallError{Message: "not found"}
		}
		return madeAt("well", append([]func(*ledger.Attachment){failed}, changes...)...)
	}
	stamped := func(a *ledger.Attachment) { a.Stamped = true }
	theirs := func(a *ledger.Attachment) { a.Ours = false }
	user := dataAt("q", "well", ledger.PodLive)
	for name, test := range map[string]struct {
		facts             []ledger.Event
		alone, cooperates bool
	}{
		"the PersistentVolume is gone":             {[]ledger.Event{as(), user}, true, true},
		"is being deleted":                         {[]ledger.Event{deleting, as(), user}, true, true},
		"is another disk's now":                    {[]ledger.Event{replaced, as(), user}, true, true},
		"is there":                                 {[]ledger.Event{there, as(), user}, false, false},
		"gone, and the driver may have been asked": {[]ledger.Event{as(stamped), user}, false, false},
		"another disk's, and it may have been":     {[]ledger.Event{replaced, as(stamped), user}, false, false},
		"being deleted, and it may have been":      {[]ledger.Event{deleting, as(stamped), user}, true, true},
		"the same at another name of the node": {[]ledger.Event{deleting, as(stamped, func(a *ledger.Attachment) { a.NodeID = "i-old" }), user,
			ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-new", Limit: 4}}}}, false, false},
		"made by another controller":         {[]ledger.Event{as(theirs), user}, true, false},
		"its attacher has not said anything": {[]ledger.Event{as(func(a *ledger.Attachment) { a.AttachError = ledger.CallError{} }), user}, false, false},
		"attached":                           {[]ledger.Event{as(func(a *ledger.Attachment) { a.Attached = true }), user}, false, false},
		"inline":                             {[]ledger.Event{as(func(a *ledger.Attachment) { a.PersistentVolume, a.Inline = "", disk }), user}, false, false},
		"nobody is there":                    {[]ledger.Event{as()}, false, false},
		"the volume may be elsewhere":        {[]ledger.Event{as(), user, madeAt("third")}, false, false},
		"volumesAttached names it":           {[]ledger.Event{as(), user, nodeAs("well", reporting)}, false, false},
		"it may be mounted since before":     {inDoubt(as(func(a *ledger.Attachment) { a.Version = "2" }), user), false, false},
		"moorage-node finds it": {[]ledger.Event{as(), user, nodeAs("well", ofMachine("m", "b")),
			says(finds, func(w *ledger.NodeWord) { w.NodeUID = "w" })}, false, false},
		"nothing else attaches it": {[]ledger.Event{as(), user,
			ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Deleting: true, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}}, false, false},
	} {
		for mode, want := range map[bool]bool{false: test.alone, true: test.cooperates} {
			p := plannerOf(t, Arbiter{Cooperative: mode}, "well", ledger.Hold{NodeUID: "w"}, append([]ledger.Event{alive}, test.facts...)...)
			place := p.at("well")
			if got := p.outdated(p.snapshot.Node("well"), place, p.own(place)); got != want {
				t.Errorf("%s, Cooperative: %t: outdated is %t, want %t", name, mode, got, want)
			}
		}
	}
}
