// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The message names the missing right, and calls no volume lost.
func TestExplainWithoutPersistentVolumes(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain", UID: "pod-plain"},
		Spec: corev1.PodSpec{NodeName: "worker-2", SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "main"}}, Volumes: []corev1.Volume{{
			Name: "v0", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	server.Put("pods", pod)
	forbid(server, "pods shop", "persistentvolumeclaims shop")
	for subject, wrong := range map[string][]string{
		"pvc/data": {"does not exist", "by nobody", "restore it"}, "pod/plain": {"does not exist", "restore it", "not ready"},
	} {
		out, errs, code := run(t.Context(), server, now, "explain", subject, "-n", "shop", "-o", "wide")
		text := strings.Join(strings.Fields(out), " ")
		if code != 0 || !strings.Contains(text, "you may not list persistentvolumes") {
			t.Errorf("%s: exit code %d, output %q, errors %q", subject, code, out, errs)
		}
		for _, w := range wrong {
			if strings.Contains(text, w) {
				t.Errorf("%s says %q, which can't be known:\n%s", subject, w, out)
			}
		}
	}
}

func TestMissingRightIsNamed(t *testing.T) {
	for _, test := range []struct{ args, says string }{
		{"drain-plan worker-1", "the right to list nodes is missing"},
		{"explain pv pv-db", "the right to list persistentvolumes is missing"},
	} {
		server, now := load(t, "testdata/dead-node")
		forbid(server)
		out, errs, code := run(t.Context(), server, now, strings.Fields(test.args)...)
		if code != 1 || !strings.Contains(errs, test.says) {
			t.Errorf("%s: exit code %d, output %q, errors %q", test.args, code, out, errs)
		}
	}
}

func TestWhatToType(t *testing.T) {
	server, now := load(t, "testdata/others")
	for _, test := range []struct{ args, says string }{
		{"drain-plan", "name a node: kubectl moorage drain-plan NODE"},
		{"ticket make --node worker-1 --type Manual", "name a ticket: kubectl moorage ticket make NAME"},
		{"explain pvc/nosuch -n shop", `persistentvolumeclaims "nosuch" not found in namespace "shop"`},
		{"volumes x", "takes no name such as \"x\""},
		{"nodes nosuch", `nodes "nosuch" not found`},
		{"nodes worker-1 wroker-2", `nodes "wroker-2" not found`},
		{"explain volumeticket/x -n shop", `volumetickets "x" not found in namespace "shop"`},
		{"explain volumehold/x", "explain its claim or PersistentVolume"},
		{"explain foo/bar", "choose one of: pod, pvc"},
		{"explain pod db-0 -A", "--all-namespaces takes one type, and no name"},
	} {
		out, errs, code := run(t.Context(), server, now, strings.Fields(test.args)...)
		if code != 1 || out != "" || !strings.Contains(errs, test.says) || strings.Contains(errs, "unknown command") || strings.Contains(errs, `mean "pod"`) {
			t.Errorf("%s: exit code %d, output %q, errors %q", test.args, code, out, errs)
		}
	}
	for _, args := range []string{"explain pods -n shop --all", "explain pods -A --all", "explain pods -A --all -n nowhere"} {
		if out, errs, code := run(t.Context(), server, now, strings.Fields(args)...); code != 0 || !strings.Contains(out, "pod shop/db-0") {
			t.Errorf("%s: exit code %d, output %q, errors %q", args, code, out, errs)
		}
	}
}

func TestWithoutMoorage(t *testing.T) {
	server, now := load(t, "testdata/limit")
	server.Intercept(withoutMoorage)
	out, errs, code := run(t.Context(), discovering(t, server), now, "doctor", "--all", "-o", "json")
	if code != 0 || strings.Count(out, `"check"`) != 6 || !strings.Contains(out, "Moorage is not installed in this cluster") || !strings.Contains(out, "docs/operate/quickstart.md") {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errs)
	}
	if out, errs, code := run(t.Context(), server, now, "ticket", "make", "look", "--type", "Manual", "--claim", "a", "--node", "worker-1"); code != 1 || !strings.Contains(errs, "Moorage is not installed in this cluster") {
		t.Errorf("ticket make: exit code %d, output %q, errors %q", code, out, errs)
	}
}

// doctor must not say that none has opted in.
func TestDoctorWithoutNamespaces(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	forbid(server, "pods")
	out, errs, _ := run(t.Context(), discovering(t, server), now, "doctor", "--all")
	if strings.Contains(out, "no namespace has opted in") || !strings.Contains(out, "you may not list namespaces") {
		t.Errorf("output %q, errors %q", out, errs)
	}
}
