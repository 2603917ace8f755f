// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func sampleEvents(t *testing.T) []audit.Event {
	t.Helper()
	f, err := os.Open("testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := audit.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func refused(verb, subresource string, at float64) audit.Event {
	e := audit.Event{
		Stage: "ResponseComplete", Verb: verb, Received: second(at), Finished: second(at),
		Object: &audit.Object{Resource: "pods", Subresource: subresource, Namespace: "bench", Name: "pod-000"},
	}
	e.Response.Code = 409
	return e
}

func second(s float64) time.Time {
	return time.Date(2026, 11, 20, 9, 23, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

func call(call diskapi.Call, phase diskapi.Phase, outcome diskapi.Outcome, volume string, at float64) diskapi.Entry {
	return diskapi.Entry{Call: call, Phase: phase, Outcome: outcome, Volume: volume, Time: second(at)}
}

func sampleEvidence(t *testing.T) evidence {
	return evidence{
		events: append([]audit.Event{refused("create", "binding", 3.68), refused("delete", "", 5)}, sampleEvents(t)...),
		pods: []sandbox.PodTimes{
			{Namespace: "bench", Pod: "pod-000", Volume: "vol-a", At: map[sandbox.Stage]time.Time{
				sandbox.Created: second(3.69), sandbox.Bound: second(3.704), sandbox.Attached: second(6.15),
				sandbox.Reported: second(6.65), sandbox.Running: second(7.072), sandbox.Gone: second(10.93), sandbox.Detached: second(12.123),
			}},
			{Namespace: "bench", Pod: "pod-001", Volume: "vol-b", At: map[sandbox.Stage]time.Time{sandbox.Bound: second(3.71)}},
			{Namespace: "other", Pod: "pod-000", Volume: "vol-c", At: map[sandbox.Stage]time.Time{sandbox.Running: second(1)}},
		},
		calls: []diskapi.Entry{
			call(diskapi.ControllerPublish, diskapi.Arrived, "", "vol-c", 1),
			call(diskapi.ControllerPublish, diskapi.Arrived, "", "vol-a", 3.9),
			call(diskapi.ControllerPublish, diskapi.Returned, diskapi.Failed, "vol-a", 4.0),
			call(diskapi.ControllerPublish, diskapi.Arrived, "", "vol-a", 4.1),
			call(diskapi.ControllerPublish, diskapi.Returned, diskapi.OK, "vol-a", 4.2),
			call(diskapi.ControllerPublish, diskapi.Arrived, "", "vol-a", 5),
			call(diskapi.ControllerPublish, diskapi.Returned, diskapi.OK, "vol-a", 5.1),
			call(diskapi.NodeStage, diskapi.Arrived, "", "vol-a", 6.7),
		},
	}
}

func TestJourneys(t *testing.T) {
	pods := sampleEvidence(t).journeys("bench")
	want := []journey{
		{
			created: second(3.672752), bound: second(3.703144), deleted: second(10.561775),
			publishCalled: second(3.9), publishReturned: second(4.2), staged: second(6.7),
			boundSeen: second(3.704), attached: second(6.15), reported: second(6.65),
			running: second(7.072), gone: second(10.93), detached: second(12.123),
		},
		{created: pods[1].created, bound: pods[1].bound, deleted: second(10.561849), boundSeen: second(3.71)},
	}
	if !reflect.DeepEqual(pods, want) {
		t.Errorf("got\n%+v\nwant\n%+v", pods, want)
	}
}

func TestSample(t *testing.T) {
	got := sample(sampleEvidence(t).journeys("bench"))
	for key, want := range map[string]Samples{
		"boundToPublish":      {196.856},
		"publishedToAttached": {1950},
		"attachedToReported":  {500},
		"publishedToStage":    {2500},
		"createdToRunning":    {3399.248},
		"deletedToDetached":   {1561.225},
	} {
		if !reflect.DeepEqual(got[key], want) {
			t.Errorf("%s is %v, want %v: a pod that was not attached gives no sample", key, got[key], want)
		}
	}
	if got := got["createdToBound"]; len(got) != 2 || got[0] != 30.392 {
		t.Errorf("created → bound is %v, want 30.392 and that of the pod without a volume", got)
	}
	if n := len(got[BindingSeen]); n != 2 {
		t.Errorf("%d pods were seen bound, want 2", n)
	}
	if len(got) != len(Metrics()) {
		t.Errorf("%d metrics, want %d", len(got), len(Metrics()))
	}
}

// Moorage may call the driver before the pod is bound: negative, not zero.
func TestPublishBeforeBindIsNegative(t *testing.T) {
	got := sample([]journey{{bound: second(2), publishCalled: second(1.5)}})
	if want := (Samples{-500}); !reflect.DeepEqual(got["boundToPublish"], want) {
		t.Errorf("got %v, want %v", got["boundToPublish"], want)
	}
}

func TestSpans(t *testing.T) {
	running, detached := spans([]journey{
		{created: second(2), running: second(5), deleted: second(11), detached: second(12)},
		{created: second(1), running: second(9), deleted: second(10), detached: second(14)},
		{created: second(3)},
	})
	if running != 8000 || detached != 4000 {
		t.Errorf("all running after %v ms, all detached after %v ms; want 8000 and 4000", running, detached)
	}
	if running, detached := spans(nil); running != 0 || detached != 0 {
		t.Errorf("no pods take %v and %v ms", running, detached)
	}
}

func TestWritesOfThePhases(t *testing.T) {
	events := sampleEvents(t)
	const (
		nodes     = "system:node:*"
		scheduler = "system:kube-scheduler"
		attacher  = "system:serviceaccount:disk-system:csi-attacher"
		ad        = "system:serviceaccount:kube-system:attachdetach-controller"
		claims    = "system:serviceaccount:kube-system:pvc-protection-controller"
	)
	attach := []Write{
		{User: scheduler, Verb: "create", Resource: "events", Count: 2},
		{User: scheduler, Verb: "create", Resource: "pods/binding", Count: 2},
		{User: nodes, Verb: "patch", Resource: "pods/status", Count: 6},
		{User: attacher, Verb: "patch", Resource: "volumeattachments", Count: 2},
		{User: attacher, Verb: "patch", Resource: "volumeattachments/status", Count: 3},
		{User: ad, Verb: "create", Resource: "events", Count: 2},
		{User: ad, Verb: "create", Resource: "volumeattachments", Count: 2},
		{User: claims, Verb: "update", Resource: "persistentvolumeclaims/status", Count: 1},
	}
	detach := []Write{
		{User: nodes, Verb: "delete", Resource: "pods", Count: 2},
		{User: nodes, Verb: "patch", Resource: "pods/status", Count: 4},
		{User: attacher, Verb: "patch", Resource: "volumeattachments", Count: 2},
		{User: attacher, Verb: "patch", Resource: "volumeattachments/status", Count: 2, Failed: 2},
		{User: ad, Verb: "delete", Resource: "volumeattachments", Count: 2},
		{User: claims, Verb: "update", Resource: "persistentvolumeclaims/status", Count: 1},
	}
	if got := writesIn(events, window{second(3.6), second(10.5)}); !reflect.DeepEqual(got, attach) {
		t.Errorf("attach phase:\n%v\nwant\n%v", got, attach)
	}
	if got := writesIn(events, window{second(10.5), second(15)}); !reflect.DeepEqual(got, detach) {
		t.Errorf("detach phase:\n%v\nwant\n%v", got, detach)
	}
	if total(attach) != 20 || total(detach) != 13 {
		t.Errorf("totals %d and %d, want 20 and 13", total(attach), total(detach))
	}
	for _, w := range append(attach, detach...) {
		if purpose(w) == "" {
			t.Errorf("nobody says what %s %s by %s buys", w.Verb, w.Resource, w.User)
		}
	}
}

func TestMergeWrites(t *testing.T) {
	a := []Write{{User: "b", Verb: "create", Resource: "events", Count: 1}, {User: "a", Verb: "patch", Resource: "pods", Count: 2, Failed: 1}}
	b := []Write{{User: "a", Verb: "patch", Resource: "pods", Count: 3, Failed: 2}, {User: "a", Verb: "delete", Resource: "pods", Count: 1}}
	want := []Write{
		{User: "a", Verb: "delete", Resource: "pods", Count: 1},
		{User: "a", Verb: "patch", Resource: "pods", Count: 5, Failed: 3},
		{User: "b", Verb: "create", Resource: "events", Count: 1},
	}
	if got := mergeWrites(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if a[1].Count != 2 || b[0].Count != 3 {
		t.Error("the lists that were merged changed")
	}
}
