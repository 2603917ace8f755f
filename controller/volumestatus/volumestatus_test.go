// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

const placeholder = `{"volumes":[{"name":"v","claim":"data","safeToMount":false,"safeToDetach":false,"reason":"Pending"}]}`

var data = ledger.VolumeID{Driver: "d", Handle: "data"}

type gate struct {
	*Controller
	t         *testing.T
	ledger    *ledger.Ledger
	object    *corev1.Pod
	now       time.Time
	published []write.PodStatus
	recorder  *record.FakeRecorder
}

func (g *gate) Snapshot() ledger.Snapshot              { return g.ledger.Snapshot() }
func (g *gate) Pod(string, string) (*corev1.Pod, bool) { return g.object, g.object != nil }
func (g *gate) apply(e ledger.Event)                   { g.ledger.Apply(g.now, e) }
func (g *gate) last() write.PodStatus                  { return g.published[len(g.published)-1] }
func (g *gate) pod(phase ledger.PodPhase, version string) ledger.Pod {
	return ledger.Pod{UID: "p1", Version: version, Namespace: "shop", Name: "db", Node: "n1", Phase: phase,
		Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func (g *gate) PublishPod(_ context.Context, _ *ledger.Pod, s write.PodStatus) error {
	g.published = append(g.published, s)
	g.object = g.object.DeepCopy()
	g.object.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: s.Annotation}
	g.object.Status.Conditions = []corev1.PodCondition{s.Condition}
	return nil
}

func (g *gate) look(what string, writes int) time.Duration {
	g.t.Helper()
	after, err := g.process(g.t.Context(), "p1")
	if err != nil {
		g.t.Fatal(err)
	}
	if len(g.published) != writes {
		g.t.Fatalf("%s: %d writes, want %d: %+v", what, len(g.published), writes, g.published)
	}
	return after
}

func (g *gate) attachment(version string, attached bool) ledger.Attachment {
	return ledger.Attachment{Name: ledger.AttachmentName(data, "n1"), UID: "a", Version: version, Driver: "d", Node: "n1",
		PersistentVolume: "data", Ours: true, Attached: attached}
}

func (g *gate) node(version string, inUse, reported []ledger.VolumeID) ledger.NodeState {
	return ledger.NodeState{Name: "n1", UID: "n", Version: version, Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: inUse, Reported: reported}
}

func newGate(t *testing.T, stamped bool) *gate {
	t.Helper()
	g := &gate{t: t, ledger: ledger.New(), now: time.Unix(1000, 0), recorder: record.NewFakeRecorder(10)}
	g.object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: types.UID("p1"), Generation: 3}}
	if stamped {
		g.object.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: placeholder}
	}
	g.apply(g.node("1", nil, nil))
	g.apply(ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}})
	g.apply(ledger.PersistentVolume{Name: "data", Version: "1", Volume: data, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
	g.apply(ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "1", PersistentVolume: "data", Bound: true})
	g.apply(g.pod(ledger.PodLive, "1"))
	c, err := New(Config{Cache: g, Write: g, Now: func() time.Time { return g.now }, Grace: 30 * time.Second, Events: report.NewEventsWith(g.recorder)})
	if err != nil {
		t.Fatal(err)
	}
	g.Controller = c
	return g
}

// one write, when all volumes are safe to mount
func TestUsualWay(t *testing.T) {
	g := newGate(t, true)
	if after := g.look("nothing is attached yet", 0); after != 30*time.Second {
		t.Errorf("looked at again after %s", after)
	}
	g.apply(g.attachment("2", false))
	g.look("attaching", 0)
	g.apply(g.attachment("3", true))
	g.look("attached, and not reported", 0)
	g.apply(g.node("4", nil, []ledger.VolumeID{data}))
	g.look("reported", 1)
	if c := g.last().Condition; c.Type != v1alpha1.PodSafeToMount || c.Status != corev1.ConditionTrue || c.ObservedGeneration != 3 {
		t.Errorf("condition %+v", c)
	}
	g.look("nothing new", 1)
	g.apply(g.node("5", []ledger.VolumeID{data}, []ledger.VolumeID{data}))
	g.look("in use", 1)
	if len(g.recorder.Events) > 0 {
		t.Errorf("event %s", <-g.recorder.Events)
	}
}

func TestReservedIsNoWait(t *testing.T) {
	g := newGate(t, true)
	g.object.Annotations[v1alpha1.AnnotationVolumeStatus] = strings.Replace(placeholder, v1alpha1.ReasonPending, v1alpha1.VolumeReserved, 1)
	g.apply(g.attachment("3", true))
	g.apply(g.node("4", nil, []ledger.VolumeID{data}))
	g.look("reported", 1)
	if len(g.recorder.Events) > 0 {
		t.Errorf("event %s", <-g.recorder.Events)
	}
}

func TestUnstamped(t *testing.T) {
	g := newGate(t, false)
	g.apply(g.attachment("3", true))
	g.apply(g.node("4", nil, []ledger.VolumeID{data}))
	g.look("safe", 0)
}

// told at once, also without the placeholder
func TestReasonThatLasts(t *testing.T) {
	for _, stamped := range []bool{true, false} {
		g := newGate(t, stamped)
		failed := g.attachment("2", false)
		failed.AttachError = ledger.CallError{Code: 13, Message: "no such disk"}
		g.apply(failed)
		g.look("the attach fails", 1)
		c := g.last().Condition
		if c.Status != corev1.ConditionFalse || c.Reason != "AttachFailed" || !strings.Contains(c.Message, "no such disk") {
			t.Errorf("condition %+v", c)
		}
		status, err := v1alpha1.ParseVolumeStatus(g.last().Annotation)
		if err != nil || status.Volumes[0].Reason != "AttachFailed" || status.Volumes[0].SafeToMount {
			t.Errorf("status %+v (%v)", status, err)
		}
		if event := <-g.recorder.Events; !strings.Contains(event, "FailedAttachVolume") || !strings.Contains(event, "no such disk") {
			t.Errorf("event %s", event)
		}
		g.look("it fails on", 1)
		g.apply(g.attachment("3", true))
		g.apply(g.node("4", nil, []ledger.VolumeID{data}))
		g.look("it is over", 2)
	}
}

func TestWaitThatDoesNotPass(t *testing.T) {
	g := newGate(t, true)
	g.apply(g.attachment("2", false))
	g.look("attaching", 0)
	g.now = g.now.Add(29 * time.Second)
	if after := g.look("still attaching", 0); after != time.Second {
		t.Errorf("looked at again after %s", after)
	}
	g.now = g.now.Add(time.Second)
	g.look("attaching for too long", 1)
	if reason := g.last().Condition.Reason; reason != "Attaching" {
		t.Errorf("reason %s", reason)
	}
}

// For a shared volume no hold tells an unanswered detach, and nothing touches the pod.
func TestWaitThatLastsByTimeAlone(t *testing.T) {
	g := newGate(t, true)
	g.apply(ledger.PersistentVolume{Name: "data", Version: "2", Volume: data, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
	leaving := g.attachment("3", true)
	leaving.Deleting = true
	g.apply(leaving)
	began := g.now
	g.now = g.now.Add(g.look("it is being detached", 0))
	after := g.look("for longer than usual", 1)
	if reason := g.last().Condition.Reason; reason != "Detaching" {
		t.Fatalf("it is told %s", reason)
	}
	for ; g.last().Condition.Reason == "Detaching"; after, _ = g.process(t.Context(), "p1") {
		if after == 0 || g.now.Sub(began) > 2*time.Minute {
			t.Fatalf("after %s it is told that the volume is being detached, and is looked at again after %s", g.now.Sub(began), after)
		}
		g.now = g.now.Add(after)
	}
	if reason := g.last().Condition.Reason; reason != "DetachUnanswered" {
		t.Errorf("it is told %s", reason)
	}
}

func (g *gate) volume() v1alpha1.PodVolumeStatus {
	g.t.Helper()
	status, err := v1alpha1.ParseVolumeStatus(g.last().Annotation)
	if err != nil {
		g.t.Fatal(err)
	}
	return status.Volumes[0]
}

func runs(t *testing.T) *gate {
	g := newGate(t, true)
	g.apply(g.attachment("2", true))
	g.apply(g.node("3", []ledger.VolumeID{data}, []ledger.VolumeID{data}))
	g.look("runs", 1)
	return g
}

// Safe to detach comes after the kubelet's release and before the detach.
func TestFinishedPod(t *testing.T) {
	g := runs(t)
	g.apply(g.pod(ledger.PodFinished, "4"))
	g.look("finished, and still in use", 2)
	if v := g.volume(); v.SafeToMount || v.SafeToDetach {
		t.Errorf("finished: %+v", v)
	}
	g.apply(g.node("5", nil, []ledger.VolumeID{data}))
	g.look("not in use any more", 3)
	if v := g.volume(); v.SafeToMount || !v.SafeToDetach || g.last().Condition.Status != corev1.ConditionFalse || g.last().Condition.Reason == "" {
		t.Errorf("let go of: %+v, condition %+v", v, g.last().Condition)
	}
	g.look("nothing new", 3)
	g.apply(g.node("6", nil, nil))
	g.apply(ledger.AttachmentGone{Name: ledger.AttachmentName(data, "n1")})
	if after := g.look("detached", 3); after > 0 {
		t.Errorf("it has been told all, and is looked at after %s", after)
	}
}

func TestSafeToDetachIsNotToldAfterwards(t *testing.T) {
	g := runs(t)
	g.apply(g.pod(ledger.PodFinished, "4"))
	g.apply(g.node("5", nil, nil))
	g.apply(ledger.AttachmentGone{Name: ledger.AttachmentName(data, "n1")})
	if after := g.look("finished and detached", 2); after > 0 {
		t.Errorf("nothing more is to come, and it is looked at after %s", after)
	}
	if v := g.volume(); v.SafeToMount || v.SafeToDetach {
		t.Errorf("detached: %+v", v)
	}
}

func TestPromiseEndsWithVolumesAttached(t *testing.T) {
	for name, phase := range map[string]ledger.PodPhase{"runs": ledger.PodLive, "terminating": ledger.PodTerminating} {
		g := runs(t)
		if phase == ledger.PodTerminating {
			g.object.DeletionTimestamp = &metav1.Time{Time: g.now}
			g.apply(g.pod(phase, "4"))
			g.look("nothing has changed for its volume", 1)
		}
		g.apply(g.node("5", []ledger.VolumeID{data}, nil))
		g.look(name, 2)
		if v := g.volume(); v.SafeToMount || v.Reason == "" || g.last().Condition.Status != corev1.ConditionFalse || g.last().Condition.Reason == "" {
			t.Errorf("%s: %+v, condition %+v", name, v, g.last().Condition)
		}
	}
}

// The kubelet's deletion costs no write; a pod that stays is told like a finished pod.
func TestTerminatingPod(t *testing.T) {
	for name, test := range map[string]struct {
		finalizers    []string
		ended, letsGo int
	}{
		"it goes by itself":    {nil, 1, 2},
		"a finalizer keeps it": {[]string{"x/y"}, 2, 3},
	} {
		g := runs(t)
		g.object.DeletionTimestamp, g.object.Finalizers = &metav1.Time{Time: g.now}, test.finalizers
		g.apply(g.pod(ledger.PodFinished, "4"))
		g.look(name+": ended", test.ended)
		g.apply(g.node("5", nil, []ledger.VolumeID{data}))
		g.look(name+": let go of", test.letsGo)
		if v := g.volume(); v.SafeToMount || !v.SafeToDetach {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A finished pod uses no volume, but is looked at until it has been told all.
func TestFinishedPodIsLookedAt(t *testing.T) {
	g := runs(t)
	g.apply(g.pod(ledger.PodFinished, "4"))
	if after := g.look("finished, and still in use", 2); after == 0 {
		t.Error("it is not looked at again by itself")
	}
	g.AddEnded(ledger.VolumeID{Driver: "d", Handle: "other"})
	if g.Depth() != 0 {
		t.Error("another volume has it looked at")
	}
	g.AddEnded(data)
	if g.Depth() != 1 {
		t.Error("its volume does not have it looked at")
	}
	g.apply(g.node("5", nil, []ledger.VolumeID{data}))
	if after := g.look("not in use any more", 3); after > 0 {
		t.Errorf("it has been told all, and is looked at after %s", after)
	}
	if len(g.ended.pods)+len(g.ended.volumes) > 0 {
		t.Errorf("kept: %+v", g.ended)
	}
}

func TestNothingToAttach(t *testing.T) {
	g := newGate(t, true)
	g.apply(ledger.Driver{Name: "d", Version: "1"})
	g.look("the driver needs no attachments", 1)
	if want := `{"uid":"p1","volumes":[{"name":"v","claim":"data","persistentVolume":"data","safeToMount":true,"safeToDetach":false}]}`; g.last().Annotation != want {
		t.Errorf("annotation %s", g.last().Annotation)
	}
}

func TestPodsThatAreLeftAlone(t *testing.T) {
	tests := map[string]func(*gate){
		"being deleted":        func(g *gate) { g.object.DeletionTimestamp = &metav1.Time{Time: g.now} },
		"another of the name":  func(g *gate) { g.object.UID = "other" },
		"gone":                 func(g *gate) { g.object = nil },
		"gone from the ledger": func(g *gate) { g.apply(ledger.PodGone{UID: "p1"}) },
		"bound nowhere": func(g *gate) {
			p := g.pod(ledger.PodLive, "9")
			p.Node = ""
			g.apply(p)
		},
	}
	for name, change := range tests {
		g := newGate(t, true)
		failed := g.attachment("2", false)
		failed.AttachError = ledger.CallError{Code: 13, Message: "no such disk"}
		g.apply(failed)
		change(g)
		g.look(name, 0)
	}
}

func TestConditionEndsWithItsReason(t *testing.T) {
	g := newGate(t, true)
	other := func(node ledger.NodeName, version string, ready ledger.Readiness, has ...ledger.VolumeID) {
		g.apply(ledger.NodeState{Name: node, UID: string(node), Version: version, Ready: ready, Managed: true, Reporting: true, InUse: has, Reported: has})
	}
	other("n2", "1", ledger.ReadyTrue)
	other("n3", "1", ledger.ReadyUnknown, data)
	for _, node := range []ledger.NodeName{"n2", "n3"} {
		g.apply(ledger.Attachment{Name: ledger.AttachmentName(data, node), UID: string(node), Version: "1", Driver: "d", Node: node,
			PersistentVolume: "data", Ours: true, Attached: true, Deleting: node == "n2"})
	}
	g.apply(ledger.HoldSeen{Volume: data, Hold: ledger.Hold{Version: "1", Node: "n1", Transitions: 1, State: ledger.HoldHeld}})
	g.look("it leaves one node, and another one is silent", 1)
	if c := g.last().Condition; c.Reason != "NodeUnreachable" {
		t.Fatalf("condition %+v", c)
	}
	other("n3", "2", ledger.ReadyTrue)
	g.apply(ledger.AttachmentGone{Name: ledger.AttachmentName(data, "n3")})
	for range 2 {
		after, err := g.process(t.Context(), "p1")
		if err != nil {
			t.Fatal(err)
		}
		g.now = g.now.Add(after)
	}
	if c := g.last().Condition; c.Reason != "Detaching" {
		t.Errorf("it is at the silent node no more, and the condition says %s: %s", c.Reason, c.Message)
	}
}

func TestBystandersAreToldNothing(t *testing.T) {
	for _, cooperative := range []bool{true, false} {
		g := newGate(t, false)
		g.config.Arbiter.Cooperative = cooperative
		p := g.pod(ledger.PodLive, "9")
		p.OptedOut = true
		g.apply(p)
		failed := g.attachment("2", false)
		failed.AttachError = ledger.CallError{Code: 13, Message: "no such disk"}
		g.apply(failed)
		g.look("it fails", map[bool]int{false: 1}[cooperative])
	}
}

func TestConditionTime(t *testing.T) {
	g := newGate(t, true)
	failed := g.attachment("2", false)
	failed.AttachError = ledger.CallError{Code: 13, Message: "first"}
	g.apply(failed)
	g.look("it fails", 1)
	began := g.last().Condition.LastTransitionTime
	g.now = g.now.Add(time.Minute)
	failed.Version, failed.AttachError.Message = "3", "second"
	g.apply(failed)
	g.look("it fails otherwise", 2)
	if got := g.last().Condition.LastTransitionTime; !got.Equal(&began) {
		t.Errorf("the condition is False since %s, and says %s", began, got)
	}
}

func (g *gate) events() []string {
	var list []string
	for len(g.recorder.Events) > 0 {
		list = append(list, <-g.recorder.Events)
	}
	return list
}

func TestToldOnce(t *testing.T) {
	g := newGate(t, true)
	g.recorder.IncludeObject = true
	for i, words := range []string{"request 1: no such disk", "request 2: no such disk"} {
		failed := g.attachment("2"+words, false)
		failed.AttachError = ledger.CallError{Code: 13, Message: words}
		g.apply(failed)
		g.look(words, i+1)
	}
	got := g.events()
	if len(got) != 2 || !strings.Contains(got[0], "kind=Pod,") ||
		!strings.Contains(got[1], "pod db waits: AttachFailed: ") || !strings.Contains(got[1], "PersistentVolumeClaim") {
		t.Errorf("events %q, want one for the pod and one for its claim", got)
	}
	next, err := New(g.config)
	if err != nil {
		t.Fatal(err)
	}
	g.Controller = next
	failed := g.attachment("4", false)
	failed.AttachError = ledger.CallError{Code: 13, Message: "request 3: no such disk"}
	g.apply(failed)
	g.look("the next leader", 3)
	if got := g.events(); len(got) > 0 {
		t.Errorf("it is told again: %q", got)
	}
	g.apply(g.attachment("5", true))
	g.apply(g.node("6", nil, []ledger.VolumeID{data}))
	g.look("it is over", 4)
	if got := g.events(); len(got) != 2 || !strings.Contains(got[0], "Normal VolumesReady every volume is attached to n1") || !strings.Contains(got[1], "Normal VolumesReady pod db has it at n1") {
		t.Errorf("events %q, want the end of the wait, for the pod and for its claim", got)
	}
}

func TestHoldTellsTheClaim(t *testing.T) {
	g := newGate(t, true)
	g.recorder.IncludeObject = true
	g.apply(ledger.NodeState{Name: "n2", UID: "m", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	g.apply(ledger.Attachment{Name: ledger.AttachmentName(data, "n2"), UID: "b", Version: "1", Driver: "d", Node: "n2", PersistentVolume: "data",
		Ours: true, Attached: true, Deleting: true, DetachError: ledger.CallError{Code: 13, Message: "busy"}})
	g.apply(ledger.HoldSeen{Volume: data, Hold: ledger.Hold{Version: "1", Node: "n2", Transitions: 1, State: ledger.HoldDetachPending, Reason: rules.DetachFailed}})
	g.look("the detach fails elsewhere", 1)
	if got := g.events(); len(got) != 1 || !strings.Contains(got[0], "VolumeWait DetachFailed: ") {
		t.Errorf("events %q, want one, for the pod", got)
	}
}

func TestHoldLeavesTheAttachToPods(t *testing.T) {
	g := newGate(t, true)
	g.recorder.IncludeObject = true
	failed := g.attachment("2", false)
	failed.AttachError = ledger.CallError{Code: 13, Message: "no such disk"}
	g.apply(failed)
	g.apply(ledger.HoldSeen{Volume: data, Hold: ledger.Hold{Version: "1", Node: "n1", Transitions: 1, State: ledger.HoldAttachFailed, Reason: rules.AttachFailed}})
	g.look("the attach fails", 1)
	if got := g.events(); len(got) != 2 || !strings.Contains(got[1], "PersistentVolumeClaim") {
		t.Errorf("events %q, want one for the pod and one for its claim", got)
	}
}
