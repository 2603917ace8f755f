// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type sidecar interface {
	process
	victim
	self() *caller
}

func (a *attacher) self() *caller { return &a.caller }

// ownAttacher is moorage-attacher: package controller/attacher/decide chooses the steps; views and writes
// are simulated.
type ownAttacher struct {
	caller
	s       *Sim
	tracker *decide.Tracker
	listed  bool
	at      int
	seen    map[string]ledger.Attachment // by UID, the last state told to the tracker
	dirty   map[decide.VolumeID]bool
	wakes   map[decide.VolumeID]time.Time
	ids     map[ledger.NodeName]string // the driver's last seen names for nodes
	pvsAt   int                        // the seen part of the PersistentVolumes' log
	calls   map[string]ledger.VolumeID // by UID: the calls' volumes, also without their PersistentVolumes
}

func newOwnAttacher(s *Sim) *ownAttacher {
	a := &ownAttacher{s: s, caller: caller{name: "attacher", up: true}}
	a.forget()
	return a
}

func (a *ownAttacher) self() *caller { return &a.caller }

// forget's pauses are the longest possible ones.
func (a *ownAttacher) forget() {
	tracker, err := decide.NewTracker(decide.Rules{
		Driver: driver, Publishes: true, Looks: a.s.config.Looks,
		Backoff: decide.Backoff{First: time.Second, Max: 5 * time.Minute},
		Random:  func() float64 { return 0 },
	})
	if err != nil {
		panic(err) // the rules above are complete
	}
	a.tracker, a.listed, a.at = tracker, false, 0
	a.seen, a.dirty, a.wakes = map[string]ledger.Attachment{}, map[decide.VolumeID]bool{}, map[decide.VolumeID]time.Time{}
	a.ids, a.calls = map[ledger.NodeName]string{}, map[string]ledger.VolumeID{}
	a.pvsAt = len(a.s.logs[world.PersistentVolumes])
}

func (a *ownAttacher) kill() {
	a.incarnation++
	a.up = false
}

func (a *ownAttacher) restart() {
	a.incarnation++
	a.up, a.paused = true, false
	a.forget()
}

func (a *ownAttacher) ready() []decide.VolumeID {
	if len(a.dirty)+len(a.wakes) == 0 {
		return nil
	}
	set := maps.Clone(a.dirty)
	for v, due := range a.wakes {
		if !a.s.Now().Before(due) {
			set[v] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (a *ownAttacher) moved() bool {
	return slices.ContainsFunc(a.s.nodeNames(), func(n ledger.NodeName) bool { return a.ids[n] != a.s.nodeID(n) })
}

func (a *ownAttacher) renamed() bool {
	return a.s.config.Vanishing && a.pvsAt < len(a.s.logs[world.PersistentVolumes])
}

func (a *ownAttacher) offer(m *menu) {
	switch {
	case !a.awake():
		return
	case !a.listed:
		m.add(8, a.name, "list", "")
		return
	case a.at < len(a.s.logs[world.Attachments]):
		m.add(8, a.name, "watch", "")
	}
	if a.moved() {
		m.add(8, a.name, "watch-nodes", "")
	}
	if a.renamed() {
		m.add(8, a.name, "watch-pvs", "")
	}
	for _, v := range a.ready() {
		m.add(8, a.name, "handle", string(v))
	}
}

func (a *ownAttacher) act(what, arg string) bool {
	log := a.s.logs[world.Attachments]
	switch {
	case !a.awake():
		return false
	case what == "list" && !a.listed:
		a.listed, a.at = true, len(log)
		a.nodes()
		for _, key := range a.s.w.Keys(world.Attachments) {
			va, _ := a.s.w.Attachment(key)
			a.see(va)
		}
	case !a.listed:
		return false
	case what == "watch" && a.at < len(log):
		for ; a.at < len(log); a.at++ {
			a.event(log[a.at])
		}
	case what == "watch-nodes" && a.moved():
		a.nodes()
		a.tellAll()
	case what == "watch-pvs" && a.renamed():
		a.pvsAt = len(a.s.logs[world.PersistentVolumes])
		a.tellAll()
	case what == "handle" && slices.Contains(a.ready(), decide.VolumeID(arg)):
		a.handle(decide.VolumeID(arg))
	default:
		return false
	}
	return true
}

func (a *ownAttacher) nodes() {
	for _, n := range a.s.nodeNames() {
		a.ids[n] = a.s.nodeID(n)
	}
}

func (a *ownAttacher) event(c world.Change) {
	if va, exists := c.Fact.(ledger.Attachment); exists {
		a.see(va)
	} else if old, was := c.Old.(ledger.Attachment); was {
		a.lose(old.UID)
	}
}

// Late events of an ended attachment don't count as a new one.
func (a *ownAttacher) lose(uid string) {
	a.seen[uid] = ledger.Attachment{}
	a.touch(a.tracker.Lose(uid, a.s.Now()))
}

func (a *ownAttacher) see(va ledger.Attachment) {
	if was, known := a.seen[va.UID]; known && (was.UID == "" || world.VersionOf(was) >= world.VersionOf(va)) {
		return
	}
	a.seen[va.UID] = va
	a.tell(va)
}

func (a *ownAttacher) tellAll() {
	for _, uid := range slices.Sorted(maps.Keys(a.seen)) {
		a.tell(a.seen[uid])
	}
}

func (a *ownAttacher) tell(va ledger.Attachment) {
	if va.UID == "" {
		return // gone
	}
	now, _ := a.s.w.Attachment(va.Name)
	made := a.s.w.Made(va.UID)
	told := decide.Attachment{
		Name: va.Name, UID: va.UID, Node: string(va.Node), Created: made.At, Mark: "", Transitions: va.Transitions, Beside: string(made.Beside),
		Deleting: va.Deleting, Stamped: now.UID != va.UID || a.s.w.Stamped(va.Name), Attached: va.Attached, Wanted: va.Wanted,
		AttachError: reasonOf(va.AttachError), DetachError: reasonOf(va.DetachError),
		NodeID: va.NodeID, TargetID: a.ids[va.Node], PVStamped: true,
	}
	if v, ok := a.s.w.Source(va); ok {
		told.Volume, told.Exclusive = decide.VolumeID(v.Handle), a.s.w.Exclusive(v)
		a.calls[va.UID] = v
	} else {
		told.NoPublish = decide.Reason{Message: "the PersistentVolume is not there"}
		if _, kept := a.calls[va.UID]; !kept {
			told.NoUnpublish = told.NoPublish
		}
	}
	if told.TargetID == "" {
		told.NoTarget = decide.Reason{Message: "the CSINode does not know the driver"}
	}
	a.touch(a.tracker.See(told, a.s.Now()))
}

func reasonOf(e ledger.CallError) decide.Reason {
	return decide.Reason{Message: e.Message, Code: codes.Code(e.Code)}
}

func (a *ownAttacher) touch(volumes []decide.VolumeID) {
	for _, v := range volumes {
		a.dirty[v] = true
	}
}

func (a *ownAttacher) handle(v decide.VolumeID) {
	delete(a.dirty, v)
	delete(a.wakes, v)
	steps, wake := a.tracker.Next(v, a.s.Now())
	if !wake.IsZero() {
		a.wakes[v] = wake
	}
	for _, step := range steps {
		a.tracker.Start(step, a.s.Now())
		a.s.note("attacher %s %s", step.Do, step.Name[:8])
		a.begin(step)
	}
}

func (a *ownAttacher) begin(step decide.Step) {
	volume, seen := a.calls[step.UID] // its volume while its PersistentVolume existed
	if !seen {
		volume = ledger.VolumeID{Driver: driver, Handle: string(step.Volume)} // by another attachment of it
	}
	r := world.Request{Key: step.Name, UID: step.UID}
	switch step.Do {
	case decide.Publish, decide.Unpublish:
		a.s.disks.call(&a.caller, volume, step.NodeID, step.Do == decide.Publish, func(e ledger.CallError) {
			a.done(step, decide.Result{Failed: reasonOf(e)})
		})
		return
	case decide.Look:
		a.done(step, decide.Result{There: slices.Contains(a.s.w.Disks.At[volume], step.NodeID)})
		return
	case decide.Stamp:
		r.Do, r.NodeID = world.StampAttachment, step.NodeID
		r.TestsID, r.WasID = true, a.seen[step.UID].NodeID
	case decide.MarkAttached, decide.ReportAttach:
		r.Do = world.MarkAttached
	default:
		r.Do = world.MarkDetached
	}
	if step.Do == decide.ReportAttach || step.Do == decide.ReportDetach {
		r.Error = ledger.CallError{Code: int32(step.Reason.Code), Message: cmp.Or(step.Reason.Message, "it failed")}
	}
	a.s.net.send(&a.caller, step.Do.String()+" "+step.Name, a.s.Now().Add(callTimeout), r, func(ans world.Answer, err error) {
		a.wrote(step, ans, err)
	})
}

func (a *ownAttacher) wrote(step decide.Step, ans world.Answer, err error) {
	result := decide.Result{}
	switch {
	case err != nil:
		result.Failed = decide.Reason{Message: err.Error()}
	case ans.Code == world.OK:
		for _, e := range ans.Facts {
			a.see(e.(ledger.Attachment))
		}
	case ans.Code == world.Conflict: // it is read anew
		result = decide.Result{Failed: decide.Reason{Message: ans.Code.String()}, Moved: true}
		if va, exists := a.s.w.Attachment(step.Name); exists && va.UID == step.UID {
			a.see(va)
		} else {
			a.lose(step.UID)
		}
	default:
		result = decide.Result{Failed: decide.Reason{Message: ans.Code.String()}, Moved: true}
		a.lose(step.UID)
	}
	a.done(step, result)
}

func (a *ownAttacher) done(step decide.Step, result decide.Result) {
	a.touch(a.tracker.Done(step, result, a.s.Now()))
}

func (a *ownAttacher) due() time.Time {
	var t time.Time
	if !a.awake() {
		return t
	}
	for _, due := range a.wakes {
		if a.s.Now().Before(due) {
			t = earlier(t, due)
		}
	}
	return t
}
