// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// An unpublish follows two minutes after the first report.
func TestLostTwice(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	if got := d.tracker.Lose("uid-a", d.now); !slices.Equal(got, []decide.VolumeID{handle}) {
		t.Errorf("something new about %q, want the volume", got)
	}
	d.pass(time.Minute)
	if got := d.tracker.Lose("uid-a", d.now); got != nil {
		t.Errorf("something new about %q, want nothing", got)
	}
	d.offers()
	d.wakes(time.Minute)
	d.pass(time.Minute)
	d.offers("unpublish va-a id-a")
}

func TestGhostBacksOff(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.tracker.Lose("uid-a", d.now)
	d.pass(2 * time.Minute)
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.offers()
	d.wakes(time.Second)
	d.pass(time.Second)
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.wakes(2 * time.Second)
	d.pass(2 * time.Second)
	d.does("unpublish va-a id-a", ok)
	d.offers()
	if d.tracker.Knows("uid-a") || d.tracker.Len() != 0 {
		t.Error("an attachment that is gone is still in the tracker once its volume is unpublished")
	}
}

func TestLostWithACallUnderWay(t *testing.T) {
	for name, order := range map[string]func(d *desk){
		"the other one was there before": func(d *desk) {
			d.see(stamped("a", named("other")))
			d.tracker.Lose("uid-a", d.now)
		},
		"the other one comes after": func(d *desk) {
			d.tracker.Lose("uid-a", d.now)
			d.see(stamped("a", named("other")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(stamped("a"))
			s := d.starts("publish va-a id-a")
			order(d)
			d.offers()
			d.ends(s, ok)
			if d.tracker.Knows("uid-a") {
				t.Error("the attachment that is gone is not in the hands of the other one")
			}
			d.see(wanted("b"))
			d.offers("publish other id-a")
		})
	}
}

func TestInheritedDoubt(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
	d.tracker.Lose("uid-a", d.now)
	d.see(wanted("a", named("next")))
	if d.tracker.Knows("uid-a") {
		t.Error("the one that is gone still answers for the volume, too")
	}
	d.see(stamped("a", named("next"), deleting, wantedAgain))
	d.does("unpublish next id-a", failed(codes.FailedPrecondition))
	d.pass(time.Second)
	d.offers("unpublish next id-a")
}

func TestUnplacedByName(t *testing.T) {
	name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: string(handle)}, "a")
	unplaced := attached("a", named(name), func(a *decide.Attachment) { a.Volume, a.Exclusive = "", false })

	d := newDesk(t)
	d.see(unplaced, stamped("b", func(b *decide.Attachment) { b.Created = epoch.Add(time.Second) }))
	d.offers()
	if got := d.tracker.Lose("uid-"+name, d.now); !slices.Contains(got, handle) {
		t.Errorf("it is gone: something new about %q, want the volume among it", got)
	}

	d = newDesk(t)
	d.see(unplaced, stamped("b"))
	if got := d.see(attached("a", named(name), of("disk-2"), named(name))); !slices.Contains(got, handle) || !slices.Contains(got, "disk-2") {
		t.Errorf("it is of disk-2: something new about %q, want both volumes among it", got)
	}
	d.offers("publish va-b id-b")

	d = newDesk(t)
	d.see(attached("a", named(name)), stamped("b"))
	if got := d.tracker.Lose("uid-"+name, d.now); !slices.Equal(got, []decide.VolumeID{handle}) {
		t.Errorf("its volume was known: something new about %q, want the volume, once", got)
	}
}

func TestUnplacedInOrder(t *testing.T) {
	var names []string
	d := newDesk(t)
	for _, node := range []string{"a", "c", "d", "e", "f"} {
		name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: string(handle)}, ledger.NodeName(node))
		names = append(names, name)
		d.see(attached(node, named(name), func(a *decide.Attachment) { a.Volume, a.Exclusive = "", false }))
	}
	d.see(stamped("b"))
	d.offers()
	d.wakes(20 * time.Second)
	d.pass(20 * time.Second)
	slices.Sort(names)
	for range 20 {
		steps, _ := d.tracker.Next(handle, d.now)
		if len(steps) != 1 || !strings.Contains(steps[0].Reason.Message, names[0]) {
			t.Fatalf("it is told %v, want that it waits for %s", steps, names[0])
		}
	}
}

func TestUnpublishLaysGhosts(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.tracker.Lose("uid-a", d.now)
	other := func(a *decide.Attachment) { a.Name, a.UID, a.TargetID = "next", "uid-next", "id-a2" }
	d.see(stamped("a", other, func(a *decide.Attachment) { a.NodeID = "id-a2" }))
	d.see(stamped("a", other)) // a person knows better: the volume is at id-a
	d.see(stamped("a", other, deleting))
	d.does("unpublish next id-a", ok)
	if d.tracker.Knows("uid-a") {
		t.Error("the attachment that is gone is still thought to have the volume at its node")
	}
}

// Another node waits for a ghost only if an attachment there wants the volume.
func TestGhostIsNotHurriedByADeletion(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"), wanted("b", deleting, func(a *decide.Attachment) { a.Kept = true }))
	d.tracker.Lose("uid-a", d.now)
	d.offers()
	d.wakes(2 * time.Minute)
	d.see(wanted("c"))
	d.offers("unpublish va-a id-a")
}

func TestGhostsWaitBesideEachOther(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"), attached("b"))
	d.tracker.Lose("uid-a", d.now)
	d.tracker.Lose("uid-b", d.now)
	d.offers()
	d.wakes(2 * time.Minute)
	d.pass(2 * time.Minute)
	d.offers("unpublish va-a id-a")
}

func TestGhostIsNotHurriedByTheOld(t *testing.T) {
	at := func(n int64) func(*decide.Attachment) { return func(a *decide.Attachment) { a.Transitions = n } }
	d := newDesk(t)
	d.see(attached("a", at(2)))
	d.tracker.Lose("uid-a", d.now)
	d.see(wanted("b", at(1)))
	d.offers("report-attach va-b: the volume may be at node a: waiting until VolumeAttachment va-a is detached")
	d.see(wanted("c", at(2)))
	d.offers("unpublish va-a id-a", "report-attach va-b: refused: made at transition 1 of the volume, which is at 2 by now; delete this VolumeAttachment")
}

func TestGhostOfAVolumeThatWasNeverSeen(t *testing.T) {
	const elsewhere = "stamp va-b id-b"
	after := func(name string) *desk {
		d := newDesk(t)
		d.see(stamped("a", named(name), func(a *decide.Attachment) {
			a.Volume, a.Exclusive = "", false
			a.NoPublish.Message, a.NoUnpublish.Message = "no PersistentVolume", "no PersistentVolume"
		}))
		d.tracker.Lose("uid-"+name, d.now)
		d.see(wanted("b"))
		return d
	}
	after("other").offers(elsewhere)
	name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: string(handle)}, "a")
	d := after(name)
	d.does("unpublish "+name+" id-a", ok)
	d.offers(elsewhere)
}

func TestUnpublishLaysNoGhostElsewhere(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.tracker.Lose("uid-a", d.now)
	d.see(stamped("b", deleting, func(a *decide.Attachment) { a.NodeID, a.TargetID = "id-a", "id-a" }))
	d.does("unpublish va-b id-a", ok)
	if !d.tracker.Knows("uid-a") {
		t.Error("what may be at node a is forgotten")
	}
}

func TestUnpublishLaysNoGhostOfAnotherMachine(t *testing.T) {
	other := func(a *decide.Attachment) { a.NodeID, a.TargetID = "id-a2", "id-a2" }
	d := newDesk(t)
	d.see(attached("a"))
	d.tracker.Lose("uid-a", d.now)
	d.see(stamped("a", named("next"), other, deleting))
	d.does("unpublish next id-a2", ok)
	if !d.tracker.Knows("uid-a") {
		t.Error("what may be at the machine id-a is forgotten")
	}
}

// A ghost stays if no call for it is possible, or another attachment has the volume there.
func TestGhostThatStays(t *testing.T) {
	second := func(a *decide.Attachment) { a.NodeID, a.TargetID = "id-a2", "id-a2" }
	for name, play := range map[string]func(d *desk){
		"no call can be put together": func(d *desk) {
			d.see(attached("a", func(a *decide.Attachment) { a.NoUnpublish.Message = "no Secret" }))
			d.tracker.Lose("uid-a", d.now)
		},
		"another one has it there": func(d *desk) {
			d.see(attached("a"))
			d.tracker.Lose("uid-a", d.now)
			d.see(attached("a", named("next"), second))
			d.see(attached("a", named("next"), second, func(a *decide.Attachment) { a.NodeID = "id-a" })) // a person knows better
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			play(d)
			d.pass(time.Hour)
			d.offers()
			if !d.tracker.Knows("uid-a") {
				t.Error("it is forgotten")
			}
		})
	}
}

func TestGhostOfASharedVolume(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", shared))
	d.tracker.Lose("uid-a", d.now)
	d.see(attached("b", shared), wanted("c", shared))
	d.offers("stamp va-c id-c")
	d.wakes(2 * time.Minute)
}

func TestForgottenVolumeWaitsForNobody(t *testing.T) {
	name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: string(handle)}, "b")
	unplaced := attached("b", named(name), func(a *decide.Attachment) { a.Volume, a.Exclusive = "", false })
	for _, transitions := range []int64{0, 2} {
		d := newDesk(t)
		d.see(wanted("a", func(a *decide.Attachment) { a.Transitions = transitions }), unplaced)
		d.tracker.Lose("uid-a", d.now)
		if got := d.tracker.Lose("uid-"+name, d.now); slices.Contains(got, handle) {
			t.Errorf("with %d transitions there is something new about %q", transitions, got)
		}
	}
}

func TestVolumeStaysKnown(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	if got := d.see(attached("a", func(a *decide.Attachment) { a.Volume, a.Exclusive = "", false })); !slices.Equal(got, []decide.VolumeID{handle}) {
		t.Errorf("something new about %q, want the volume", got)
	}
	d.see(stamped("b", shared, func(b *decide.Attachment) { b.Created = epoch.Add(-time.Second) }))
	steps, _ := d.tracker.Next(handle, d.now)
	for _, s := range steps {
		if s.Do == decide.Publish {
			t.Errorf("published at a second node: %s", text(s))
		}
	}
}

// The source's pod runs on. The next attachment there does not let the volume go to the target.
func TestSourceTakenAwayDuringAMigration(t *testing.T) {
	at := func(seconds int, uid string) func(*decide.Attachment) {
		return func(a *decide.Attachment) {
			a.Created, a.Transitions, a.UID = epoch.Add(time.Duration(seconds)*time.Second), 5, uid
		}
	}
	beside := func(a *decide.Attachment) { a.Beside = "a" }
	for name, c := range map[string]struct {
		play func(d *desk)
		then []string
	}{
		"the target is attached": {func(d *desk) {
			d.does("publish va-b id-b", ok)
			d.see(attached("b", at(1, "uid-b"), beside))
		}, nil},
		"the attach of the target has failed": {func(d *desk) {
			d.does("publish va-b id-b", failed(codes.Internal))
			d.does("report-attach va-b: Internal", ok)
		}, []string{"unpublish va-b id-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(attached("a", at(0, "uid-a")), stamped("b", at(1, "uid-b"), beside))
			c.play(d)
			d.tracker.Lose("uid-a", d.now)
			d.see(wanted("a", at(2, "uid-a2")))
			d.offers(c.then...)
			if c.then == nil {
				d.see(attached("b", at(1, "uid-b"), beside, deleting))
			}
			d.does("unpublish va-b id-b", ok)
			d.starts("stamp va-a id-a")
		})
	}
}

func TestSourceTakenAwayAndUnpublishable(t *testing.T) {
	at := func(seconds int, uid string) func(*decide.Attachment) {
		return func(a *decide.Attachment) {
			a.Created, a.Transitions, a.UID = epoch.Add(time.Duration(seconds)*time.Second), 5, uid
		}
	}
	beside := func(a *decide.Attachment) { a.Beside = "a" }
	for name, can := range map[string]func(*decide.Attachment){
		"no driver at the node": func(a *decide.Attachment) { a.TargetID, a.NoTarget = "", decide.Reason{Message: "no driver"} },
		"being deleted":         func(a *decide.Attachment) { a.NoPublish = decide.Reason{Message: "being deleted"} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(attached("a", at(0, "uid-a")), stamped("b", at(1, "uid-b"), beside))
			d.does("publish va-b id-b", ok)
			d.see(attached("b", at(1, "uid-b"), beside))
			d.tracker.Lose("uid-a", d.now)
			d.see(wanted("a", at(2, "uid-a2")))
			d.see(wanted("a", at(2, "uid-a2"), can))
			d.offers()
			d.see(wanted("a", at(2, "uid-a2"), can, deleting), attached("b", at(1, "uid-b"), beside))
		})
	}
}
