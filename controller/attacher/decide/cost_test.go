// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// mostLooks is the average limit of looks at each attachment in one Next.
const mostLooks = 8

func (d *desk) next(attachments int) []decide.Step {
	d.t.Helper()
	before := d.tracker.Looked()
	steps, _ := d.tracker.Next(handle, d.now)
	if looked := d.tracker.Looked() - before; looked < attachments || looked > mostLooks*attachments {
		d.t.Fatalf("one decision on %d attachments looked at %d, want no more than %d for each", attachments, looked, mostLooks)
	}
	return steps
}

func manyNodes(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("n%04d", i)
	}
	return list
}

// The cost must grow only with the volume's own attachments: the driver's other volumes wait.
func TestNextCostsInProportion(t *testing.T) {
	const many = 500
	later := func(i int) func(*decide.Attachment) {
		return func(a *decide.Attachment) { a.Created = epoch.Add(-time.Duration(i) * time.Second) }
	}
	unplaced := func(node string) decide.Attachment {
		id := ledger.VolumeID{Driver: driver, Handle: string(handle)}
		return stamped(node, named(ledger.AttachmentName(id, ledger.NodeName(node))), func(a *decide.Attachment) { a.Volume = "" })
	}
	for name, play := range map[string]func(d *desk, i int, node string){
		"shared, to be stamped":     func(d *desk, _ int, n string) { d.see(wanted(n, shared)) },
		"shared, to be published":   func(d *desk, _ int, n string) { d.see(stamped(n, shared)) },
		"shared, attached":          func(d *desk, _ int, n string) { d.see(attached(n, shared)) },
		"shared, to be unpublished": func(d *desk, _ int, n string) { d.see(attached(n, shared, deleting)) },
		"shared, wanted again":      func(d *desk, _ int, n string) { d.see(attached(n, shared, deleting, wantedAgain)) },
		"shared, gone":              func(d *desk, _ int, n string) { d.see(attached(n, shared)); d.tracker.Lose("uid-"+n, d.now) },
		"shared, two at each node": func(d *desk, _ int, n string) {
			d.see(attached(n, shared, deleting), attached(n, shared, named("z"+n)))
		},
		"exclusive, the newest first":  func(d *desk, i int, n string) { d.see(wanted(n, later(i))) },
		"exclusive, may be anywhere":   func(d *desk, i int, n string) { d.see(stamped(n, later(i))) },
		"exclusive, attached":          func(d *desk, i int, n string) { d.see(attached(n, later(i))) },
		"exclusive, to be unpublished": func(d *desk, i int, n string) { d.see(attached(n, later(i), deleting)) },
		"exclusive, all but one outdated": func(d *desk, i int, n string) {
			d.see(wanted(n, func(a *decide.Attachment) { a.Transitions = int64(i + 1) }))
		},
		"exclusive, gone":                    func(d *desk, _ int, n string) { d.see(attached(n)); d.tracker.Lose("uid-"+n, d.now) },
		"exclusive, and as many of no one's": func(d *desk, i int, n string) { d.see(wanted(n), unplaced("m"+n)) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			for i, node := range manyNodes(many) {
				play(d, i, node)
			}
			d.next(many)
			for i := range 3 { // with calls under way, and after they have failed
				for _, s := range d.next(many) {
					d.tracker.Start(s, d.now)
					if s.Do.Call() && i > 0 {
						d.ends(s, failed(codes.Internal))
					}
				}
				d.pass(time.Minute)
			}
			d.next(many)
		})
	}
}

func TestSharedVolumeAtManyNodes(t *testing.T) {
	const many, atATime = 300, 20
	d := newDesk(t)
	for _, node := range manyNodes(many) {
		d.see(wanted(node, shared))
	}
	node := func(s decide.Step) string { return s.Name[len("va-"):] }
	var calls []decide.Step
	for done := 0; done < many; {
		for _, s := range d.next(many) {
			if s.Do.Call() && len(calls) == atATime {
				continue
			}
			d.tracker.Start(s, d.now)
			switch s.Do {
			case decide.Stamp:
				d.see(stamped(node(s), shared))
				d.ends(s, ok)
			case decide.Publish:
				calls = append(calls, s)
			case decide.MarkAttached:
				d.see(attached(node(s), shared))
				d.ends(s, ok)
				done++
			default:
				t.Fatalf("%s of %s", s.Do, s.Name)
			}
		}
		if len(calls) > 0 {
			d.ends(calls[0], ok)
			calls = calls[1:]
		}
	}
	d.offers()
}

// VolumeAttachments may be seen before their PersistentVolumes.
func TestVolumesComeToLightInProportion(t *testing.T) {
	const many = 500
	d := newDesk(t)
	seen := func(i int, volume bool) decide.Attachment {
		id := ledger.VolumeID{Driver: driver, Handle: fmt.Sprint("disk-", i)}
		return attached("a", named(ledger.AttachmentName(id, "a")), func(a *decide.Attachment) {
			if a.Volume = ""; volume {
				a.Volume = decide.VolumeID(id.Handle)
			}
		})
	}
	for i := range many {
		d.see(seen(i, false))
	}
	for i := range many {
		id := decide.VolumeID(fmt.Sprint("disk-", i))
		if touched := d.see(seen(i, true)); !slices.Contains(touched, id) {
			t.Fatalf("something new about %q, want %s among it", touched, id)
		}
	}
	if looked := d.tracker.Looked(); looked > many {
		t.Errorf("%d volumes came to light, and it took a look at %d", many, looked)
	}
}
