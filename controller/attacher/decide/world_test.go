// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

const (
	handle = decide.VolumeID("disk-1")
	driver = "disk.example.com"
)

type object struct {
	name, uid, node                   string
	created                           time.Time
	transitions                       int64
	deleting, stamped, kept, attached bool
	nodeID, attachError, detachError  string
	attachErrorCode, detachErrorCode  codes.Code
	metadata                          map[string]string
	wanted                            bool
	source                            *object
}

func (o *object) beside() string {
	if o.source == nil {
		return ""
	}
	return o.source.node
}

// call is a step under way, or past its timeout.
type call struct {
	step decide.Step
	at   string // the driver's ID of the node
	// no finalizer when the step began
	unstamped bool
}

type tester interface {
	Helper()
	Log(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is one volume, an API server, a driver that serialises a volume's calls as CSI asks, and the
// process. It judges each call.
type world struct {
	t         tester
	exclusive bool
	secret    bool
	ids       map[string]string // the driver's IDs of the nodes
	looks     bool
	now       time.Time
	tracker   *decide.Tracker
	objects   map[string]*object // the API's truth, by name
	lost      []string           // UIDs of gone objects, not delivered yet
	published map[string]string  // the driver's truth, by node ID: the UID
	running   []call             // steps of the process
	lingering []call             // calls that the driver still works on
	uids      int
	publishes int
	trace     []string
	// leaks: a finalizer was taken off by hand. blind: the process that saw it is gone, so the volume's
	// place is unknown.
	leaks, blind bool
	// Until the next attachment at these nodes is attached, the controller makes none elsewhere.
	left  map[string]bool
	seen  map[string]bool
	pairs map[[2]string]bool
}

func newWorld(t tester, exclusive, looks bool) *world {
	w := &world{
		t: t, exclusive: exclusive, looks: looks, now: time.Unix(1_000_000, 0),
		objects: map[string]*object{}, published: map[string]string{}, left: map[string]bool{}, ids: map[string]string{},
		pairs: map[[2]string]bool{},
	}
	w.restart()
	return w
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%6.1fs  ", w.now.Sub(time.Unix(1_000_000, 0)).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) violated(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// Messages of the old process may still take effect.
func (w *world) restart() {
	for _, c := range w.running {
		if c.step.Do == decide.Publish || c.step.Do == decide.Unpublish {
			w.lingering = append(w.lingering, c)
		}
	}
	w.running, w.lost, w.blind, w.seen = nil, nil, w.leaks, map[string]bool{}
	tracker, err := decide.NewTracker(decide.Rules{
		Driver: driver, Publishes: true, Looks: w.looks,
		Backoff: decide.Backoff{First: time.Second, Max: time.Minute},
		Random:  func() float64 { return 0 },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.tracker = tracker
	w.logf("process starts")
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		w.see(w.objects[name])
	}
}

func (w *world) create(node string, transitions int64) {
	name := "va-" + node
	if w.objects[name] != nil || w.exclusive && w.held(node) {
		return
	}
	w.uids++
	w.now = w.now.Add(time.Second) // to give objects different timestamps
	o := &object{name: name, uid: "uid-" + strconv.Itoa(w.uids), node: node, created: w.now, transitions: transitions}
	w.objects[name] = o
	w.logf("create %s transitions=%d", name, transitions)
}

func (w *world) migrate(source *object, node string) {
	if source.deleting || !source.attached || w.objects["va-"+node] != nil || w.held(source.node) {
		return
	}
	for _, o := range w.objects {
		if o.source != nil {
			return // one at a time
		}
	}
	w.create(node, source.transitions)
	if o := w.objects["va-"+node]; o != nil {
		o.source = source
		w.pairs[[2]string{o.uid, source.uid}] = true
		w.logf("%s is beside %s", o.name, source.name)
	}
}

func (w *world) joined(uid, other string) bool {
	return w.pairs[[2]string{uid, other}] || w.pairs[[2]string{other, uid}]
}

func (w *world) held(node string) bool {
	for _, o := range w.objects {
		if o.wanted && o.node != node {
			return true
		}
	}
	for other := range w.left {
		if other != node {
			return true
		}
	}
	return false
}

func (w *world) delete(o *object) {
	o.deleting = true
	w.logf("delete %s", o.name)
	w.collect(o)
}

func (w *world) collect(o *object) {
	if o.deleting && !o.stamped && !o.kept && w.objects[o.name] == o {
		delete(w.objects, o.name)
		w.lost = append(w.lost, o.uid)
		w.logf("%s is gone", o.name)
	}
}

func (w *world) see(o *object) {
	w.seen[o.uid] = true
	w.tracker.See(decide.Attachment{
		Name: o.name, UID: o.uid, Node: o.node, Created: o.created,
		Mark: fmt.Sprint(o.wanted, o.kept), Transitions: o.transitions,
		Deleting: o.deleting, Stamped: o.stamped, Kept: o.kept, Attached: o.attached,
		Metadata: o.metadata, NodeID: o.nodeID, Wanted: o.wanted, Beside: o.beside(),
		AttachError: decide.Reason{Message: o.attachError, Code: o.attachErrorCode},
		DetachError: decide.Reason{Message: o.detachError, Code: o.detachErrorCode},
		Volume:      handle, Exclusive: w.exclusive, NeedsSecret: w.secret, TargetID: w.id(o.node), PVStamped: true,
	}, w.now)
}

func (w *world) id(node string) string {
	if id := w.ids[node]; id != "" {
		return id
	}
	return "id-" + node
}

func (w *world) deliver() {
	for _, uid := range w.lost {
		w.tracker.Lose(uid, w.now)
	}
	w.lost = nil
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		w.see(w.objects[name])
	}
}

func (w *world) begin() time.Time {
	steps, wake := w.tracker.Next(handle, w.now)
	for _, s := range steps {
		w.tracker.Start(s, w.now)
		o := w.objects[s.Name]
		w.running = append(w.running, call{step: s, at: s.NodeID, unstamped: o != nil && o.uid == s.UID && !o.stamped})
		w.logf("> %s %s %s %s", s.Do, s.Name, s.NodeID, s.Reason.Message)
		if s.Do == decide.Publish {
			w.judgePublish(s)
		}
	}
	w.judgeCalls()
	return wake
}

func (w *world) judgePublish(s decide.Step) {
	w.publishes++
	if o := w.objects[s.Name]; o != nil && o.uid == s.UID && !o.stamped {
		w.violated("publish of %s without the finalizer", s.Name)
	}
	newest := int64(0)
	for _, o := range w.objects {
		if w.seen[o.uid] {
			newest = max(newest, o.transitions)
		}
	}
	if o := w.objects[s.Name]; w.exclusive && o != nil && o.uid == s.UID && o.transitions > 0 && o.transitions < newest && !o.attached {
		w.violated("publish of %s, made at transition %d, beside one of %d", s.Name, o.transitions, newest)
	}
	if !w.exclusive || w.blind {
		return
	}
	for id, uid := range w.published {
		if id != s.NodeID && !w.joined(s.UID, uid) {
			w.violated("publish at %s while the volume is at %s", s.NodeID, id)
		}
	}
	for _, c := range w.lingering {
		if c.step.Do == decide.Publish && c.at != s.NodeID && !w.joined(s.UID, c.step.UID) {
			w.violated("publish at %s while it is being published at %s", s.NodeID, c.at)
		}
	}
}

func (w *world) judgeCalls() {
	at := map[string]bool{}
	for _, c := range w.running {
		if !c.step.Do.Call() {
			continue
		}
		if at[c.at] || w.exclusive && len(at) > 0 {
			w.violated("two calls for the volume at once")
		}
		at[c.at] = true
	}
}

func (w *world) busyDriver(at string) bool {
	return slices.ContainsFunc(w.lingering, func(c call) bool { return w.exclusive || c.at == at })
}

func (w *world) at(id string) bool { return w.published[id] != "" }

func (w *world) take(c call) {
	if c.step.Do == decide.Publish {
		for id, uid := range w.published {
			if w.exclusive && id != c.at && !w.blind && !w.joined(c.step.UID, uid) {
				w.violated("the volume is published at %s and %s", id, c.at)
			}
		}
		w.published[c.at] = c.step.UID
	} else {
		delete(w.published, c.at)
	}
	w.logf("  the driver: %s %s", c.step.Do, c.at)
}
