// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestPodPhase(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	one := []corev1.Container{{Name: "c"}}
	now := metav1.Now()
	tests := []struct {
		name     string
		deleting bool
		init     int
		status   corev1.PodStatus
		want     ledger.PodPhase
	}{
		{name: "new", want: ledger.PodLive},
		{name: "its containers ended, and may start again", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended}}, want: ledger.PodLive},
		{name: "succeeded", status: corev1.PodStatus{Phase: corev1.PodSucceeded}, want: ledger.PodFinished},
		{name: "failed while being deleted", deleting: true, status: corev1.PodStatus{Phase: corev1.PodFailed}, want: ledger.PodFinished},
		{name: "deleted, no status yet", deleting: true, want: ledger.PodTerminating},
		{name: "deleted, runs", deleting: true, status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{running}}, want: ledger.PodTerminating},
		{name: "deleted, waits", deleting: true, status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting}}, want: ledger.PodTerminating},
		{name: "deleted, ended", deleting: true, status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended}}, want: ledger.PodFinished},
		{name: "deleted, nothing known of the init container", deleting: true, init: 1, status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended}}, want: ledger.PodTerminating},
		{name: "deleted, its init container runs", deleting: true, init: 1, status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{ended}, InitContainerStatuses: []corev1.ContainerStatus{running}}, want: ledger.PodTerminating},
		{name: "deleted, an ephemeral container runs", deleting: true, status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{ended}, EphemeralContainerStatuses: []corev1.ContainerStatus{running}}, want: ledger.PodTerminating},
	}
	for _, test := range tests {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: one, InitContainers: make([]corev1.Container, test.init)}, Status: test.status}
		if test.deleting {
			pod.DeletionTimestamp = &now
		}
		if fact, err := Pod(pod); err != nil || fact.Phase != test.want {
			t.Errorf("%s: %s (%v), want %s", test.name, fact.Phase, err, test.want)
		}
	}
}

// The webhook's stamp or Moorage's scheduler opts a pod in.
func TestPodOptsIn(t *testing.T) {
	stamp := map[string]string{v1alpha1.AnnotationVolumeStatus: "{}"}
	of := func(uid string) map[string]string {
		return map[string]string{v1alpha1.AnnotationVolumeStatus: `{"uid":"` + uid + `","volumes":[{"name":"v","node":"n","safeToMount":true,"safeToDetach":false}]}`}
	}
	for name, test := range map[string]struct {
		pod  corev1.Pod
		outs bool
	}{
		"stamped":                       {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: stamp}}, false},
		"stamped, of another scheduler": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: stamp}, Spec: corev1.PodSpec{SchedulerName: "batch"}}, false},
		"of Moorage's scheduler":        {corev1.Pod{Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName}}, false},
		"of the default scheduler":      {corev1.Pod{Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}}, true},
		"of none":                       {corev1.Pod{}, true},
		"with a status of its own":      {corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", Annotations: of("p")}}, false},
		"a restored copy":               {corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", Annotations: of("before")}}, true},
		"with what is no status":        {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationVolumeStatus: "x"}}}, true},
	} {
		if fact, err := Pod(&test.pod); err != nil || fact.OptedOut != test.outs {
			t.Errorf("%s: opted out %t (%v)", name, fact.OptedOut, err)
		}
	}
}
