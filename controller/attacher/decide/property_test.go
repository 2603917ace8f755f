// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/test/proptest"
)

var nodes = []string{"a", "b", "c"}

// Random histories: objects come and go, calls fail or take effect late, writes fail, the process is
// killed. The world judges every publish and the final state.
func TestAnyHistory(t *testing.T) {
	for i := range 30 { // rapid runs a hundred of each
		t.Run(strconv.Itoa(i), func(t *testing.T) { proptest.Check(t, anyHistory) })
	}
}

func anyHistory(t *rapid.T) {
	w := newWorld(t, rapid.Bool().Draw(t, "exclusive"), rapid.Bool().Draw(t, "looks"))
	w.secret = rapid.Bool().Draw(t, "secret")
	if rapid.Bool().Draw(t, "migration") {
		w.attach("a")
		w.migrate(w.objects["va-a"], "b")
		if rapid.Bool().Draw(t, "moved") {
			w.moved()
		}
	}
	for range rapid.IntRange(30, 150).Draw(t, "events") {
		w.random(t)
	}
	w.calm()
}

func (w *world) random(t *rapid.T) {
	switch rapid.IntRange(0, 15).Draw(t, "event") {
	case 15:
		if o := w.pick(t); o != nil {
			w.migrate(o, rapid.SampledFrom(nodes).Draw(t, "node"))
		}
	case 14:
		node := rapid.SampledFrom(nodes).Draw(t, "node")
		if o := w.objects["va-"+node]; w.left[node] || o != nil && o.wanted {
			return // another attachment looks after it
		}
		w.ids[node] = "id-" + node + rapid.SampledFrom([]string{"", "2"}).Draw(t, "id")
		w.logf("node %s is %s now", node, w.ids[node])
	case 0, 1:
		w.create(rapid.SampledFrom(nodes).Draw(t, "node"), rapid.Int64Range(0, 3).Draw(t, "transitions"))
	case 2:
		if o := w.pick(t); o != nil && !o.deleting {
			w.delete(o)
		}
	case 3:
		if o := w.pick(t); o != nil && o.deleting && !w.claimed(o.node) {
			o.wanted = true
			w.logf("%s is wanted again", o.name)
		}
	case 4:
		w.interfere(t)
	case 5:
		w.restart()
	case 6:
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 5 * time.Minute}).Draw(t, "time"))
	case 7:
		if n := len(w.lingering); n > 0 {
			w.finishLingering(rapid.IntRange(0, n-1).Draw(t, "lingering"), rapid.Bool().Draw(t, "effect"))
		}
	case 8:
		w.sight()
	case 9, 10:
		w.deliver()
		w.begin()
	default:
		w.begin()
		if n := len(w.running); n > 0 {
			w.finish(rapid.IntRange(0, n-1).Draw(t, "step"), rapid.IntRange(0, 7).Draw(t, "outcome"))
		}
	}
}

func (w *world) claimed(node string) bool {
	for _, o := range w.objects {
		if w.exclusive && o.node != node && !o.deleting {
			return true
		}
	}
	return false
}

func (w *world) interfere(t *rapid.T) {
	o := w.pick(t)
	if o == nil {
		return
	}
	switch rapid.IntRange(0, 3).Draw(t, "hand") {
	case 0:
		if !o.attached && !o.stamped && !o.deleting && o.nodeID == "" {
			o.stamped, o.nodeID = true, w.id(o.node)
			w.logf("%s is stamped by somebody else", o.name)
		}
	case 1:
		o.kept = true
		w.logf("%s is kept by somebody else", o.name)
	case 2:
		o.kept = false
		w.logf("%s is kept no more", o.name)
		w.collect(o)
	case 3:
		if o.deleting && o.stamped {
			o.stamped, w.leaks = false, true
			w.logf("%s loses its finalizer", o.name)
			w.collect(o)
			w.deliver()
		}
	}
}

func (w *world) pick(t *rapid.T) *object {
	names := slices.Sorted(maps.Keys(w.objects))
	if len(names) == 0 {
		return nil
	}
	return w.objects[rapid.SampledFrom(names).Draw(t, "object")]
}

func (w *world) sight() {
	if len(w.lingering) > 0 {
		return
	}
	for _, o := range w.objects {
		w.tracker.Sighted(o.uid, w.at(o.nodeID), w.now)
	}
	w.logf("the driver lists %v", slices.Sorted(maps.Keys(w.published)))
}

func (w *world) calm() {
	w.logf("calm")
	for range 400 {
		for len(w.lingering) > 0 {
			w.finishLingering(0, true)
		}
		w.deliver()
		wake := w.begin()
		if len(w.running) > 0 {
			w.finish(0, outcomeSuccess)
			continue
		}
		if wake.IsZero() {
			w.atRest()
			return
		}
		w.now = wake
	}
	w.violated("never comes to rest")
}

func (w *world) atRest() {
	fence, attached := int64(0), map[string]bool{}
	for _, o := range w.objects {
		fence = max(fence, o.transitions)
	}
	claims, served, joined := 0, 0, false
	for _, o := range w.objects {
		if o.source != nil && o.attached && !o.deleting && w.objects[o.source.name] == o.source && !o.source.deleting {
			joined = true
		}
		switch {
		case o.deleting && o.stamped:
			w.violated("%s is never detached", o.name)
		case !o.deleting && o.attached:
			served++
			attached[o.nodeID] = true
		}
		if !o.deleting && (o.transitions == 0 || o.transitions >= fence) {
			claims++
		}
	}
	switch {
	case w.exclusive && claims > 0 && served == 0:
		w.violated("nobody gets the volume")
	case !w.exclusive && served < claims:
		w.violated("%d of %d get the volume", served, claims)
	case w.exclusive && served > 1 && !w.leaks && !(joined && served == 2):
		w.violated("%d have the volume", served)
	}
	for id := range attached {
		if !w.at(id) && !w.leaks {
			w.violated("attached at %s, where it is not", id)
		}
	}
	for id := range w.published {
		if !attached[id] && !w.leaks && !w.accounted(id) && !w.left[nodeOf(id)] {
			w.violated("left at %s", id)
		}
	}
}

func nodeOf(id string) string { return id[3:4] } // id-a, id-a2

func (w *world) accounted(id string) bool {
	for _, o := range w.objects {
		if o.node == nodeOf(id) && (o.deleting && !o.stamped || !o.deleting && !o.attached) {
			return true
		}
	}
	return false
}

const (
	outcomeSuccess     = 0
	outcomeLost        = 3 // of a write: done, but not answered
	outcomeUnavailable = 4 // of a call: done, but answered with an error
)

func (w *world) finish(i, outcome int) {
	c := w.running[i]
	w.running = slices.Delete(w.running, i, i+1)
	if c.step.Do.Call() {
		w.tracker.Done(c.step, w.answer(c, outcome), w.now)
		return
	}
	w.tracker.Done(c.step, w.write(c, outcome), w.now)
}

func (w *world) finishLingering(i int, effect bool) {
	c := w.lingering[i]
	w.lingering = slices.Delete(w.lingering, i, i+1)
	if effect {
		w.take(c)
	}
}

func (w *world) answer(c call, outcome int) decide.Result {
	fail := func(code codes.Code) decide.Result {
		w.logf("< %s %s: %s", c.step.Do, c.at, code)
		return decide.Result{Failed: decide.Reason{Message: code.String(), Code: code}}
	}
	if c.step.Do == decide.Look { // needs no wait
		w.logf("< look %s: %v", c.at, w.at(c.at))
		return decide.Result{There: w.at(c.at)}
	}
	switch {
	case outcome == 1:
		return fail(codes.FailedPrecondition)
	case outcome == 2:
		return fail(codes.NotFound)
	case w.busyDriver(c.at):
		return fail(codes.Aborted)
	}
	switch outcome {
	case 3:
		w.lingering = append(w.lingering, c)
		return fail(codes.DeadlineExceeded)
	case outcomeUnavailable:
		w.take(c)
		return fail(codes.Unavailable)
	case 5:
		return fail(codes.ResourceExhausted)
	}
	w.take(c)
	w.logf("< %s %s: ok", c.step.Do, c.at)
	return decide.Result{Context: map[string]string{"device": c.at}}
}

func (w *world) write(c call, outcome int) decide.Result {
	s := c.step
	if s.Do == decide.ReadSecret && outcome != 1 {
		return decide.Result{}
	}
	o := w.objects[s.Name]
	if o == nil || o.uid != s.UID {
		w.logf("< %s %s: gone", s.Do, s.Name)
		w.tracker.Lose(s.UID, w.now)
		return decide.Result{Failed: decide.Reason{Message: "not found"}, Moved: true}
	}
	if outcome == 1 || outcome == 2 {
		w.logf("< %s %s: failed", s.Do, s.Name)
		return decide.Result{Failed: decide.Reason{Message: "failed"}, Moved: outcome == 1}
	}
	if s.Do == decide.Stamp && o.stamped && c.unstamped { // the patch tests the finalizers
		w.logf("< %s %s: changed", s.Do, s.Name)
		w.see(o)
		return decide.Result{Failed: decide.Reason{Message: "changed"}, Moved: true}
	}
	w.apply(o, s)
	if outcome == outcomeLost {
		w.logf("< %s %s: no answer", s.Do, s.Name)
		return decide.Result{Failed: decide.Reason{Message: "timeout"}}
	}
	w.logf("< %s %s: ok", s.Do, s.Name)
	w.see(o)
	return decide.Result{}
}

func (w *world) apply(o *object, s decide.Step) {
	switch s.Do {
	case decide.Stamp:
		o.stamped, o.nodeID = true, s.NodeID
	case decide.MarkAttached:
		o.attached, o.metadata, o.attachError, o.attachErrorCode = true, s.Context, "", codes.OK
		delete(w.left, o.node)
	case decide.MarkDetached:
		o.attached, o.metadata = false, nil
	case decide.Release:
		w.judgeRelease(o)
		o.stamped = false
		defer w.collect(o)
	case decide.ReportAttach:
		o.attachError, o.attachErrorCode = s.Reason.Message, s.Reason.Code
	case decide.ReportDetach:
		o.detachError, o.detachErrorCode = s.Reason.Message, s.Reason.Code
	default: // the driver's calls write nothing
	}
}

// The finalizer goes only when the volume is certainly gone, or safely kept.
func (w *world) judgeRelease(o *object) {
	for _, c := range slices.Concat(w.lingering, w.running) {
		if w.blind && c.step.UID != o.uid {
			continue
		}
		if c.at == o.nodeID && (c.step.Do == decide.Publish || c.step.Do == decide.Unpublish) {
			w.violated("%s is released with a %s under way", o.name, c.step.Do)
		}
	}
	if !w.at(o.nodeID) || w.blind && w.published[o.nodeID] != o.uid {
		return
	}
	if !o.wanted {
		w.violated("%s is released with the volume at its node", o.name)
	}
	w.left[o.node] = true
}
