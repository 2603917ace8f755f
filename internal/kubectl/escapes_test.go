// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// It would rename the terminal, wipe it and turn text around.
const steering = "\x1b]0;OWNED\x07\x1b[2J\x1b[31mALL GOOD\x1b[0m\u202e\u009b2J"

func TestEscapes(t *testing.T) {
	server, now := load(t, "testdata/handover")
	put := func(name string, spec corev1.PodSpec, status corev1.PodStatus) {
		spec.Containers = []corev1.Container{{Name: "c", Image: "an/image:v1"}}
		server.Put("pods", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: spec, Status: status,
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}})
	}
	condition := func(reason string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: steering}}
	}
	put("waits", corev1.PodSpec{}, corev1.PodStatus{Phase: corev1.PodPending, Conditions: condition("Unschedulable")})
	put("crashes", corev1.PodSpec{NodeName: "worker-2"}, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: steering}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: steering}},
	}}})
	own := regexp.MustCompile(`\x1b\[[0-9]*m`)
	coloured, shown := false, false
	for _, line := range []string{
		"explain pod/waits -n shop", "explain pod/crashes -n shop", "explain pod/waits -n shop -o wide", "explain pod/crashes -n shop -o wide",
		"explain pod/waits -n shop -o json", "explain pod/waits -n shop -o yaml",
		"explain pod/\x1b[2Jnone -n shop", "volumes -A", "top", "doctor -o wide", "\x1b[2J",
	} {
		for _, style := range []screen.Style{{}, {Terminal: true, Colour: true, Width: 80}} {
			setting := kubectl.Setting{Now: func() time.Time { return now }, Style: &style}
			style.Terminal = style.Terminal && line != "top" // it would not end
			out, errs, _ := runIn(t.Context(), server, setting, strings.Split(line, " ")...)
			text := out + errs
			shown = shown || strings.Contains(text, `\x1b]0;OWNED\a\x1b[2J\x1b[31mALL`)
			if style.Colour {
				coloured = coloured || own.MatchString(text)
				text = own.ReplaceAllString(text, "")
				if strings.Contains(out, "\x1b[31mALL") {
					t.Errorf("%q: a message has colours of its own", line)
				}
			}
			limits := "\x1b\x07\u009b\u202e"
			if strings.HasSuffix(line, "yaml") {
				limits = "\x1b\x07\u009b"
			}
			if strings.ContainsAny(text, limits) {
				t.Errorf("%q prints %q", line, text)
			}
		}
	}
	if !coloured || !shown {
		t.Errorf("own colours were seen: %t, the message with escapes: %t", coloured, shown)
	}
}
