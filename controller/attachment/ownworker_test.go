// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// What takes the place of a volume's own operation at a node needs no other worker: where as many attaches as the
// policy allows never end, one that nobody wants any more can still be taken back.
func TestOwnWorkerIsNotInTheWay(t *testing.T) {
	now := time.Unix(1000, 0)
	l, is := limited(now), newLimits()
	for _, handle := range []string{"a", "b", "c"} {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany})
		l.Apply(now, ledger.Attachment{
			Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: "1", Driver: driver, Node: "n1",
			PersistentVolume: handle, Ours: true,
		})
		is.look(l.Snapshot(), volume(handle), nil, now)
	}
	admits := func(do arbiter.Action, handle string) bool {
		step := arbiter.Step{Do: do, Volume: volume(handle), Node: "n1", UID: handle, Version: "1"}
		admitted, _ := is.admit(l.Snapshot(), volume(handle), workers, 1, []arbiter.Step{step})
		return len(admitted) == 1
	}
	if admits(arbiter.CreateAttachment, "d") {
		t.Fatal("a worker is free: this test is about nothing")
	}
	if !admits(arbiter.DeleteAttachment, "a") {
		t.Error("it waits for a worker, and it has one itself")
	}
}

// Volumes of one namespace that somebody waits for, and those that are only to leave, take turns.
func TestArrivalsDoNotWaitForAllThatLeaves(t *testing.T) {
	now := time.Unix(1000, 0)
	l, is := limited(now), newLimits()
	add := func(handle string) {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "1", Volume: volume(handle), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: handle}})
	}
	for _, handle := range []string{"a", "b", "c"} {
		add(handle)
		l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: "1", Driver: driver, Node: "n1", PersistentVolume: handle, Ours: true})
		is.look(l.Snapshot(), volume(handle), nil, now)
	}
	waits := func(handle string, do arbiter.Action) {
		add(handle)
		is.admit(l.Snapshot(), volume(handle), workers, 1, []arbiter.Step{{Do: do, Volume: volume(handle), Node: "n1"}})
	}
	for _, handle := range []string{"idle1", "idle2", "idle3", "idle4"} {
		waits(handle, arbiter.DeleteAttachment)
	}
	waits("young", arbiter.CreateAttachment)
	soon := arbiter.Step{Do: arbiter.DeleteAttachment, Volume: volume("idle4"), Node: "n1", Urgent: true} // somebody waits for it by now
	is.admit(l.Snapshot(), volume("idle4"), workers, 1, []arbiter.Step{soon})
	for range 2 {
		for _, handle := range []string{"a", "b", "c"} { // they end, and their workers are free
			l.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(volume(handle), "n1")})
			is.look(l.Snapshot(), volume(handle), nil, now)
		}
	}
	// One that somebody waits for by now is not behind all that only leaves any more.
	if next := is.next(driver, 4); !slices.Equal(next, []ledger.VolumeID{volume("idle1"), volume("young"), volume("idle2"), volume("idle4")}) {
		t.Errorf("next are %v: what somebody waits for and what only leaves do not take turns", next)
	}
}
