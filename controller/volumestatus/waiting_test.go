// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func (g *gate) waits(what string, want map[ledger.Code]report.PodWait) {
	g.t.Helper()
	if _, err := g.process(g.t.Context(), "p1"); err != nil {
		g.t.Fatal(err)
	}
	if got := g.Waiting(); !maps.Equal(got, want) {
		g.t.Errorf("%s: %v wait, want %v", what, got, want)
	}
}

func TestWaitingPods(t *testing.T) {
	g := newGate(t, true)
	began := g.now
	g.apply(g.attachment("2", false))
	g.waits("attaching", map[ledger.Code]report.PodWait{rules.Attaching: {Pods: 1, Oldest: began}})
	g.now = g.now.Add(time.Hour)
	failed := g.attachment("3", false)
	failed.AttachError = ledger.CallError{Message: "no"}
	g.apply(failed)
	g.waits("refused", map[ledger.Code]report.PodWait{rules.AttachFailed: {Pods: 1, Oldest: began}})
	g.apply(g.attachment("4", true))
	g.apply(g.node("5", nil, []ledger.VolumeID{data}))
	g.waits("attached and reported", map[ledger.Code]report.PodWait{})
}

func TestWaitingPodsOfAnEarlierLeader(t *testing.T) {
	g := newGate(t, true)
	before := time.Unix(100, 0)
	g.object.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodSafeToMount, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(before)}}
	g.apply(g.attachment("2", false))
	g.waits("attaching", map[ledger.Code]report.PodWait{rules.Attaching: {Pods: 1, Oldest: before}})
	g.apply(ledger.PodGone{UID: "p1"})
	if got := g.Waiting(); len(got) != 0 {
		t.Errorf("%v wait after the pod is gone", got)
	}
}

func TestWaitingPodsThatOptedOut(t *testing.T) {
	g := newGate(t, false)
	g.config.Arbiter = rules.Arbiter{Cooperative: true}
	pod := g.pod(ledger.PodLive, "2")
	pod.OptedOut = true
	g.apply(pod)
	g.apply(g.attachment("2", false))
	g.waits("opted out", map[ledger.Code]report.PodWait{})
}

// A passing reason is judged at the count: the pod is not looked at for each change.
func TestWaitingPodsAsTheyAreNow(t *testing.T) {
	g := newGate(t, true)
	began := g.now
	g.apply(g.attachment("2", false))
	g.waits("attaching", map[ledger.Code]report.PodWait{rules.Attaching: {Pods: 1, Oldest: began}})
	g.apply(g.attachment("3", true))
	if got, want := g.Waiting(), (map[ledger.Code]report.PodWait{rules.NotReported: {Pods: 1, Oldest: began}}); !maps.Equal(got, want) {
		t.Errorf("it is attached: %v wait, want %v", got, want)
	}
	g.apply(g.node("5", nil, []ledger.VolumeID{data}))
	if got := g.Waiting(); len(got) != 0 {
		t.Errorf("it is reported: %v wait", got)
	}
}

func TestConditionSaysSinceWhenItWaits(t *testing.T) {
	g := newGate(t, true)
	began := g.now
	g.apply(g.attachment("2", false))
	for range 2 {
		if _, err := g.process(t.Context(), "p1"); err != nil {
			t.Fatal(err)
		}
		g.now = g.now.Add(31 * time.Second)
	}
	if _, err := g.process(t.Context(), "p1"); err != nil {
		t.Fatal(err)
	}
	if is := g.last().Condition; is.Status != corev1.ConditionFalse || !is.LastTransitionTime.Time.Equal(began) {
		t.Errorf("it says %s since %s, want False since %s", is.Status, is.LastTransitionTime, began)
	}
}

// The write's answer is lost, and the volumes are not safe at its delivery.
func TestConditionIsNotSinceBeforeItWasSafe(t *testing.T) {
	g := newGate(t, true)
	look := func() {
		t.Helper()
		if _, err := g.process(t.Context(), "p1"); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() { // the informer delivers the last write
		is := g.last()
		g.object = g.object.DeepCopy()
		g.object.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: is.Annotation}
		g.object.Status.Conditions = []corev1.PodCondition{is.Condition}
	}
	g.apply(g.attachment("2", false))
	look()
	g.now = g.now.Add(31 * time.Second)
	look()
	seen()
	if c := g.last().Condition; c.Status != corev1.ConditionFalse {
		t.Fatalf("%+v", c)
	}
	g.now = g.now.Add(time.Hour)
	g.apply(g.attachment("3", true))
	g.apply(g.node("5", nil, []ledger.VolumeID{data}))
	stale := g.object
	look()
	g.object = stale // carried out; the answer is lost, and the watch is behind
	safe := g.last().Condition
	if safe.Status != corev1.ConditionTrue {
		t.Fatalf("%+v", safe)
	}
	g.now = g.now.Add(100 * time.Millisecond)
	g.apply(g.node("6", nil, nil))
	look()
	g.object = stale.DeepCopy() // now the watch delivers it
	g.object.Status.Conditions = []corev1.PodCondition{safe}
	g.object.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: g.published[1].Annotation}
	g.now = g.now.Add(31 * time.Second)
	look()
	c := g.last().Condition
	if c.Status != corev1.ConditionFalse {
		t.Fatalf("%+v", c)
	}
	if c.LastTransitionTime.Before(&safe.LastTransitionTime) {
		t.Errorf("False since %s, and it was True since %s", c.LastTransitionTime, safe.LastTransitionTime)
	}
}
