// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestArgumentsLeadToWhatTheKubeletMade(t *testing.T) {
	m := mounts{paths: map[string]string{"/etc/moorage/tls": "/node/volumes/tls", "/etc/moorage": "/node/volumes/config", "/var/lib/kubelet": "/node"}}
	ports := []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}
	for arg, want := range map[string]string{
		"--tls-cert-file=/etc/moorage/tls/tls.crt": "--tls-cert-file=/node/volumes/tls/tls.crt",
		"--config=/etc/moorage/scheduler.yaml":     "--config=/node/volumes/config/scheduler.yaml",
		"/etc/moorage/scheduler.yaml":              "/node/volumes/config/scheduler.yaml",
		"--other=/usr/etc/moorage/x":               "--other=/usr/etc/moorage/x",
		"--kubelet-root=/var/lib/kubelet":          "--kubelet-root=/node",
		"--other=/var/lib/kubelets":                "--other=/var/lib/kubelets",
		"--name=etc":                               "--name=etc",
		"--listen=:8443":                           "--listen=127.1.2.3:8443",
		"--listen=:9999":                           "--listen=:9999",
		"--listen=0.0.0.0:8443":                    "--listen=0.0.0.0:8443",
	} {
		if got := listen(m.translate(arg), "127.1.2.3", ports); got != want {
			t.Errorf("%s becomes %s, want %s", arg, got, want)
		}
	}
}

func TestArgumentsNameTheEnvironment(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.2.3"}}
	address := corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
	env, expand, err := environment(pod, &corev1.Container{Env: []corev1.EnvVar{address, {Name: "LEVEL", Value: "4"}}})
	if err != nil || !slices.Equal(env, []string{"POD_IP=10.1.2.3", "LEVEL=4"}) {
		t.Errorf("the environment is %v, %v", env, err)
	}
	if got := expand.Replace("--at=$(POD_IP):$(LEVEL)$(OTHER)"); got != "--at=10.1.2.3:4$(OTHER)" {
		t.Errorf("the argument is %s", got)
	}
	address.ValueFrom.FieldRef.FieldPath = "spec.nodeName"
	for _, unknown := range []corev1.EnvVar{address, {Name: "X", ValueFrom: &corev1.EnvVarSource{}}} {
		if _, _, err := environment(pod, &corev1.Container{Env: []corev1.EnvVar{unknown}}); err == nil {
			t.Errorf("%+v is known", unknown.ValueFrom)
		}
	}
}

func TestPortsAreFoundByName(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}}}}}
	if got, err := portNumber(pod, intstr.FromString("https")); got != 8443 || err != nil {
		t.Errorf("https is %d, %v", got, err)
	}
	if got, err := portNumber(pod, intstr.FromInt32(80)); got != 80 || err != nil {
		t.Errorf("80 is %d, %v", got, err)
	}
	if _, err := portNumber(pod, intstr.FromString("http")); err == nil {
		t.Error("a port is found that is not there")
	}
}

func TestExactlyAsManyAsAWorkloadWants(t *testing.T) {
	pod := func(name, app string) *running {
		return &running{ip: name, pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}}}}
	}
	r := &Runtime{running: map[types.UID]*running{"1": pod("a-1", "a"), "2": pod("a-2", "a"), "3": pod("b-1", "b")}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	all, err := r.Exactly(2, selector)
	if addresses := slices.Sorted(maps.Values(all)); err != nil || !slices.Equal(addresses, []string{"a-1", "a-2"}) {
		t.Errorf("the pods are %v (%v)", addresses, err)
	}
	for _, want := range []int32{1, 3} {
		if all, err := r.Exactly(want, selector); err == nil || len(all) > 0 {
			t.Errorf("where %d are wanted the pods are %v (%v)", want, all, err)
		}
	}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "none"}}}
	if all, err := r.Exactly(0, wrong); err == nil {
		t.Errorf("a selector that is none selects %v", all)
	}
}

func TestHostFoldersAreTheNodes(t *testing.T) {
	node := t.TempDir()
	r := &Runtime{config: Config{NodeDir: func(name string) string { return node }}}
	container := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "kubelet", MountPath: "/var/lib/kubelet"}}}
	pod := func(path string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
			Name: "kubelet", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}}}}
	}
	if got, err := r.mounts(pod("/var/lib/kubelet"), container); err != nil || got.paths["/var/lib/kubelet"] != node {
		t.Errorf("the kubelet's folder is %+v, %v", got, err)
	}
	if got, err := r.mounts(pod("/etc"), container); err == nil {
		t.Errorf("/etc of the host is %+v", got)
	}
}
