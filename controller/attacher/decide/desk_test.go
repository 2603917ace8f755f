// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

// desk plays a Tracker: a test lists the seen objects, the offered steps and their ends.
type desk struct {
	t       *testing.T
	tracker *decide.Tracker
	now     time.Time
}

func newDesk(t *testing.T, changes ...func(*decide.Rules)) *desk {
	t.Helper()
	rules := decide.Rules{
		Driver: driver, Publishes: true,
		Backoff: decide.Backoff{First: time.Second, Max: 5 * time.Minute}, Random: func() float64 { return 0 },
	}
	for _, change := range changes {
		change(&rules)
	}
	tracker, err := decide.NewTracker(rules)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, tracker: tracker, now: epoch}
}

func looks(r *decide.Rules) { r.Looks = true }

// wanted is an attachment of disk-1, an exclusive volume: va-a and uid-a at node a, with the ID id-a.
func wanted(node string, changes ...func(*decide.Attachment)) decide.Attachment {
	a := decide.Attachment{
		Name: "va-" + node, UID: "uid-" + node, Node: node, Created: epoch,
		Volume: handle, Exclusive: true, TargetID: "id-" + node, PVStamped: true,
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func stamped(node string, changes ...func(*decide.Attachment)) decide.Attachment {
	a := wanted(node)
	a.Stamped, a.NodeID = true, a.TargetID
	for _, change := range changes {
		change(&a)
	}
	return a
}

func attached(node string, changes ...func(*decide.Attachment)) decide.Attachment {
	return stamped(node, append([]func(*decide.Attachment){func(a *decide.Attachment) { a.Attached = true }}, changes...)...)
}

func deleting(a *decide.Attachment)    { a.Deleting = true }
func shared(a *decide.Attachment)      { a.Exclusive = false }
func kept(a *decide.Attachment)        { a.Deleting, a.Kept = true, true }
func wantedAgain(a *decide.Attachment) { a.Wanted, a.Mark = true, "wanted" }

func of(volume decide.VolumeID) func(*decide.Attachment) {
	return func(a *decide.Attachment) {
		a.Volume, a.Name, a.UID = volume, a.Name+"-"+string(volume), a.UID+"-"+string(volume)
	}
}

func named(name string) func(*decide.Attachment) {
	return func(a *decide.Attachment) { a.Name, a.UID = name, "uid-"+name }
}

func (d *desk) see(list ...decide.Attachment) []decide.VolumeID {
	var touched []decide.VolumeID
	for _, a := range list {
		touched = append(touched, d.tracker.See(a, d.now)...)
	}
	return touched
}

func (d *desk) pass(t time.Duration) { d.now = d.now.Add(t) }

func text(s decide.Step) string {
	line := s.Do.String() + " " + s.Name
	if s.NodeID != "" {
		line += " " + s.NodeID
	}
	if !s.Reason.IsZero() {
		line += ": " + s.Reason.Message
	}
	return line
}

func (d *desk) offers(want ...string) {
	d.t.Helper()
	d.offersOf(handle, want...)
}

func (d *desk) offersOf(id decide.VolumeID, want ...string) {
	d.t.Helper()
	var got []string
	steps, _ := d.tracker.Next(id, d.now)
	for _, s := range steps {
		got = append(got, text(s))
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("the steps are\n  %q, want\n  %q", got, want)
	}
}

func (d *desk) wakes(after time.Duration) {
	d.t.Helper()
	_, wake := d.tracker.Next(handle, d.now)
	if after == 0 && !wake.IsZero() || after != 0 && !wake.Equal(d.now.Add(after)) {
		d.t.Fatalf("it wakes at %s, and it is %s: want %s after", wake, d.now, after)
	}
}

func (d *desk) starts(want string) decide.Step {
	d.t.Helper()
	return d.startsOf(handle, want)
}

func (d *desk) startsOf(id decide.VolumeID, want string) decide.Step {
	d.t.Helper()
	steps, _ := d.tracker.Next(id, d.now)
	var got []string
	for _, s := range steps {
		if got = append(got, text(s)); got[len(got)-1] == want {
			d.tracker.Start(s, d.now)
			return s
		}
	}
	d.t.Fatalf("%q is not among the steps: %q", want, got)
	return decide.Step{}
}

func (d *desk) ends(s decide.Step, result decide.Result) []decide.VolumeID {
	return d.tracker.Done(s, result, d.now)
}

func (d *desk) does(want string, result decide.Result) []decide.VolumeID {
	d.t.Helper()
	return d.ends(d.starts(want), result)
}

// stamps has the Tracker write the finalizer, so no call can be under way.
func (d *desk) stamps(changes ...func(*decide.Attachment)) {
	d.t.Helper()
	d.see(wanted("a", changes...))
	s := d.starts("stamp va-a id-a")
	d.see(stamped("a", changes...))
	d.ends(s, ok)
}

var ok = decide.Result{}

func failed(code codes.Code) decide.Result {
	return decide.Result{Failed: decide.Reason{Message: code.String(), Code: code}}
}

var (
	refused = decide.Result{Failed: decide.Reason{Message: "refused"}}
	moved   = decide.Result{Failed: decide.Reason{Message: "changed"}, Moved: true}
)
