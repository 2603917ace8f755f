// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// attacher is like external-attacher: it works on each VolumeAttachment separately, two of one volume in
// parallel, and retries after a doubling pause.
type attacher struct {
	caller
	s     *Sim
	at    int // the seen part of the attachments' log
	seen  map[string]ledger.Attachment
	works map[string]*task
}

type task struct {
	busy   bool
	done   bool // until the next event
	again  bool // an event came while it was busy
	failed int
	due    time.Time
}

// external-attacher's --timeout
const callTimeout = 15 * time.Second

func newAttacher(s *Sim) *attacher {
	a := &attacher{s: s, caller: caller{name: "attacher", up: true}}
	a.forget()
	return a
}

func (a *attacher) forget() {
	a.at, a.seen, a.works = 0, map[string]ledger.Attachment{}, map[string]*task{}
}

func (a *attacher) kill() {
	a.incarnation++
	a.up = false
}

func (a *attacher) restart() {
	a.incarnation++
	a.up, a.paused = true, false
	a.forget()
}

func (a *attacher) work(name string) *task {
	if a.works[name] == nil {
		a.works[name] = &task{}
	}
	return a.works[name]
}

func (a *attacher) todo(va ledger.Attachment) bool {
	w := a.work(va.Name)
	return !w.busy && !w.done && !a.s.Now().Before(w.due) && (va.Deleting && a.s.w.Stamped(va.Name) || !va.Deleting && !va.Attached)
}

func (a *attacher) offer(m *menu) {
	if !a.awake() {
		return
	}
	if a.at < len(a.s.logs[world.Attachments]) {
		m.add(8, a.name, "watch", "")
	}
	for _, name := range a.s.w.Keys(world.Attachments) {
		if va, known := a.seen[name]; known && a.todo(va) {
			m.add(8, a.name, "handle", a.arg(va))
		}
	}
}

func (a *attacher) arg(va ledger.Attachment) string {
	v, _ := a.s.w.Attaches(va)
	return volumeArg(v) + " " + string(va.Node)
}

func (a *attacher) named(arg string) (ledger.Attachment, bool) {
	volume, node, _ := strings.Cut(arg, " ")
	va, ok := a.seen[ledger.AttachmentName(volumeOf(volume), ledger.NodeName(node))]
	return va, ok
}

func (a *attacher) act(what, arg string) bool {
	log := a.s.logs[world.Attachments]
	switch {
	case !a.awake():
		return false
	case what == "watch" && a.at < len(log):
		for ; a.at < len(log); a.at++ {
			a.see(log[a.at])
		}
		return true
	case what == "handle":
		va, ok := a.named(arg)
		if !ok || !a.todo(va) {
			return false
		}
		a.handle(va)
		return true
	}
	return false
}

// A change of anything but its errors has the attachment checked at once.
func (a *attacher) see(c world.Change) {
	now, exists := c.Fact.(ledger.Attachment)
	if !exists {
		delete(a.seen, c.Key)
		delete(a.works, c.Key)
		return
	}
	was := a.seen[c.Key]
	a.seen[c.Key] = now
	was.AttachError, was.DetachError, was.Version = now.AttachError, now.DetachError, now.Version
	if was.UID != now.UID {
		delete(a.works, c.Key)
	}
	if was != now || now.AttachError.IsZero() && now.DetachError.IsZero() {
		w := a.work(c.Key)
		w.due, w.done, w.again = time.Time{}, false, w.busy
	}
}

func (a *attacher) handle(va ledger.Attachment) {
	w := a.work(va.Name)
	w.busy, w.again = true, false
	v, ok := a.s.w.Source(va)
	if !ok {
		a.end(va, w, ledger.CallError{Code: 5, Message: "persistentvolume not found"})
		return
	}
	id := a.s.nodeID(va.Node)
	if va.Deleting || a.s.w.Stamped(va.Name) && va.NodeID == id {
		a.call(va, w, v, a.machine(va))
		return
	}
	if id == "" {
		a.end(va, w, ledger.CallError{Code: 5, Message: "the CSINode does not know the driver"})
		return
	}
	r := world.Request{Do: world.StampAttachment, Key: va.Name, UID: va.UID, NodeID: id}
	a.s.net.send(&a.caller, "stamp "+a.arg(va), a.s.Now().Add(callTimeout), r, func(ans world.Answer, err error) {
		if err != nil || ans.Code != world.OK {
			a.rest(w)
			return
		}
		a.call(va, w, v, id)
	})
}

func (a *attacher) machine(va ledger.Attachment) string {
	if id := a.s.nodeID(va.Node); id != "" {
		return id
	}
	return va.NodeID
}

func (a *attacher) call(va ledger.Attachment, w *task, v ledger.VolumeID, machine string) {
	a.s.disks.call(&a.caller, v, machine, !va.Deleting, func(e ledger.CallError) { a.end(va, w, e) })
}

func (a *attacher) end(va ledger.Attachment, w *task, e ledger.CallError) {
	r := world.Request{Do: world.MarkAttached, Key: va.Name, UID: va.UID, Error: e}
	if va.Deleting {
		r.Do = world.MarkDetached
	}
	a.s.net.send(&a.caller, "mark "+a.arg(va), a.s.Now().Add(callTimeout), r, func(_ world.Answer, err error) {
		if err != nil || !e.IsZero() {
			a.rest(w)
			return
		}
		w.busy, w.done, w.failed = false, !w.again, 0
	})
}

// rest pauses for a second, doubled after each failure, up to 5 minutes.
func (a *attacher) rest(w *task) {
	w.busy = false
	if w.again {
		return
	}
	w.due = a.s.Now().Add(min(time.Second<<min(w.failed, 10), 5*time.Minute))
	w.failed++
}

func (a *attacher) due() time.Time {
	var t time.Time
	if !a.awake() {
		return t
	}
	for name, va := range a.seen {
		w := a.works[name]
		if w != nil && !w.busy && !w.done && (va.Deleting || !va.Attached) && a.s.Now().Before(w.due) {
			t = earlier(t, w.due)
		}
	}
	return t
}

// diskService takes its time for each call. Calls for one volume at one machine run in order.
type diskService struct {
	s     *Sim
	calls []*diskCall
}

type diskCall struct {
	id          string
	caller      *caller
	incarnation int
	volume      ledger.VolumeID
	machine     string
	publish     bool
	deadline    time.Time
	given       bool
	then        func(ledger.CallError)
}

func (d *diskService) call(c *caller, v ledger.VolumeID, machine string, publish bool, then func(ledger.CallError)) {
	what := "unpublish"
	if publish {
		what = "publish"
	}
	id := messageID(c, what+"/"+volumeArg(v)+"/"+machine)
	for d.find(id) != nil {
		id += "'"
	}
	d.calls = append(d.calls, &diskCall{id: id, caller: c, incarnation: c.incarnation, volume: v, machine: machine,
		publish: publish, deadline: d.s.Now().Add(callTimeout), then: then})
}

func (d *diskService) called(arg string) *diskCall {
	id, _, _ := strings.Cut(arg, " ")
	return d.find(id)
}

func (d *diskService) find(id string) *diskCall {
	for _, c := range d.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (c *diskCall) deaf() bool { return c.given || c.caller.incarnation != c.incarnation }

func (d *diskService) turn(c *diskCall) bool {
	for _, other := range d.calls {
		if other == c {
			return true
		}
		if other.volume == c.volume && other.machine == c.machine {
			return false
		}
	}
	return false
}

func (d *diskService) offer(m *menu) {
	for _, c := range d.calls {
		if d.turn(c) {
			m.add(10, "disks", "do", c.id)
			if d.s.faulty && d.s.config.DiskFaults {
				code := strconv.Itoa(1 + d.s.rng.IntN(16))
				m.addTo(harm, 1, "disks", "fail", c.id+" "+code)
				m.addTo(harm, 1, "disks", "do-and-fail", c.id+" "+code)
				if c.publish {
					m.addTo(harm, 1, "disks", "exhausted", c.id)
				}
				if d.s.config.Lies {
					m.addTo(harm, 1, "disks", "lie", c.id)
				}
			}
		}
		if !c.deaf() && c.caller.awake() && !d.s.Now().Before(c.deadline) {
			m.add(10, "disks", "time-out", c.id)
		}
	}
}

func (d *diskService) act(what, arg string) bool {
	_, text, _ := strings.Cut(arg, " ")
	c := d.called(arg)
	if c == nil {
		return false
	}
	if what == "time-out" {
		if c.deaf() || !c.caller.awake() || d.s.Now().Before(c.deadline) {
			return false
		}
		c.given = true
		c.then(ledger.CallError{Code: 4, Message: "the call took too long"})
		return true
	}
	if !d.turn(c) || d.s.w.Machines[c.machine] == nil {
		return false
	}
	var e ledger.CallError
	switch what {
	case "do", "do-and-fail":
		d.effect(c)
		if what == "do-and-fail" {
			e = failure(text)
		}
	case "fail":
		e = failure(text)
	case "exhausted":
		e = ledger.CallError{Code: ledger.ResourceExhausted, Message: "no room for another volume"}
	case "lie":
		d.s.w.Disks.Lied[c.volume] = true
	default:
		return false
	}
	d.calls = slices.DeleteFunc(d.calls, func(o *diskCall) bool { return o == c })
	if !c.deaf() {
		c.then(e)
	}
	return true
}

func failure(code string) ledger.CallError {
	n, err := strconv.ParseInt(code, 10, 32)
	if err != nil || n <= 0 {
		n = 2 // unknown
	}
	return ledger.CallError{Code: int32(n), Message: "the disk service fails with code " + code}
}

func (d *diskService) effect(c *diskCall) {
	if c.publish {
		d.s.w.Publish(c.volume, c.machine)
	} else {
		d.s.w.Unpublish(c.volume, c.machine)
	}
}

func (d *diskService) due() time.Time {
	var t time.Time
	for _, c := range d.calls {
		if !c.deaf() && d.s.Now().Before(c.deadline) {
			t = earlier(t, c.deadline)
		}
	}
	return t
}
