// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func shippedProfile(t *testing.T) config.KubeSchedulerProfile {
	t.Helper()
	data, err := os.ReadFile("../../manifests/deploy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var object corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &object); err == nil && object.Kind == "ConfigMap" && object.Name == v1alpha1.SchedulerName {
			return profileIn(t, object.Data["scheduler.yaml"], v1alpha1.SchedulerName)
		}
	}
	t.Fatal("manifests/deploy.yaml has no ConfigMap " + v1alpha1.SchedulerName)
	return config.KubeSchedulerProfile{}
}

func stockProfile(t *testing.T) config.KubeSchedulerProfile {
	t.Helper()
	return profileIn(t, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", corev1.DefaultSchedulerName)
}

func profileIn(t *testing.T, file, name string) config.KubeSchedulerProfile {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range object.(*config.KubeSchedulerConfiguration).Profiles {
		if p.SchedulerName == name {
			return p
		}
	}
	t.Fatalf("there is no profile %s", name)
	return config.KubeSchedulerProfile{}
}

// It is placed when a slot comes free, not at a flush.
func TestPodsWaitForSlots(t *testing.T) {
	c := newCluster(t)
	var pods []*corev1.Pod
	used := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		pod := c.pod(name, v1alpha1.SchedulerName, true)
		used[c.bound(pod)] = true
		pods = append(pods, pod)
	}
	if len(used) != 3 {
		t.Errorf("nodes used are %v, want all three", used)
	}
	last := c.pod("d", v1alpha1.SchedulerName, true)
	c.told(last, "0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 1 used)")
	c.delete(pods[1])
	c.bound(last)
}

// The plugin ignores other profiles' pods, yet counts their volumes.
func TestStockProfileIsNotGated(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b", "c"} {
		c.bound(c.pod(name, corev1.DefaultSchedulerName, true))
	}
	c.bound(c.pod("plain", v1alpha1.SchedulerName, false)) // the scheduler has heard of it later
	c.told(c.pod("d", v1alpha1.SchedulerName, true), "3 node(s) exceed max volume count: no free slot")
}

// Batching needs every plugin to sign: the stock plugins do for pods without topology spread.
func TestBatchingStaysOnForPodsWithoutVolumes(t *testing.T) {
	made, _, err := newScheduler(t, fake.NewClientset(), newMoorage(t), moorageProfile(t, `
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	profile := made.Profiles[v1alpha1.SchedulerName]
	plain := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName}}
	if profile.SignPod(t.Context(), plain) == nil {
		t.Error("a pod without volumes has no signature: batching is off for the profile")
	}
	withDisk := plain.DeepCopy()
	withDisk.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	if profile.SignPod(t.Context(), withDisk) != nil {
		t.Error("a pod with a claim has a signature: its result would be used for another")
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		plugins string
		want    []string // in the error; none: it starts
	}{
		"with NodeVolumeLimits": {"multiPoint: {enabled: [{name: VolumeHold}]}",
			[]string{"moorage-scheduler", "NodeVolumeLimits", "plugins.multiPoint.disabled"}},
		"not in permit": {"multiPoint: {enabled: [{name: VolumeHold}], disabled: [{name: NodeVolumeLimits}]}, permit: {disabled: [{name: VolumeHold}]}",
			[]string{"not enabled for permit", "plugins.multiPoint"}},
		"a filter only": {"multiPoint: {disabled: [{name: NodeVolumeLimits}]}, filter: {enabled: [{name: VolumeHold}]}",
			[]string{"not enabled for preEnqueue, preFilter, postFilter, reserve, permit, postBind"}},
		"with two plugins that bind claims": {"multiPoint: {enabled: [{name: PromptVolumeBinding}, {name: VolumeHold}], disabled: [{name: NodeVolumeLimits}]}, bind: {enabled: [{name: VolumeHold}]}",
			[]string{"both PromptVolumeBinding and VolumeBinding", "plugins.multiPoint.disabled"}},
		"with VolumeBinding as it is": {"multiPoint: {enabled: [{name: VolumeHold}], disabled: [{name: NodeVolumeLimits}]}, bind: {enabled: [{name: VolumeHold}]}", nil},
		"no score":                    {"multiPoint: {enabled: [{name: VolumeHold}], disabled: [{name: NodeVolumeLimits}]}, score: {disabled: [{name: VolumeHold}]}, bind: {enabled: [{name: VolumeHold}]}", nil},
	} {
		profile := profileIn(t, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: moorage-scheduler
  plugins: {`+test.plugins+`}
`, v1alpha1.SchedulerName)
		_, _, err := newScheduler(t, fake.NewClientset(), newMoorage(t), profile)
		if err != nil && test.want == nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one with %q", name, err, want)
			}
		}
	}
}

func TestProfileThatBindsWithoutThePluginIsRefused(t *testing.T) {
	late := profileIn(t, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: moorage-scheduler
  plugins:
    multiPoint:
      enabled: [{name: VolumeHold}]
      disabled: [{name: NodeVolumeLimits}]
`, v1alpha1.SchedulerName)
	_, _, err := newScheduler(t, fake.NewClientset(), newMoorage(t), late)
	for _, want := range []string{"moorage-scheduler", "VolumeHold", "plugins.bind.enabled"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func TestBadArgsAreRefused(t *testing.T) {
	_, _, err := newScheduler(t, fake.NewClientset(), newMoorage(t), moorageProfile(t, `
  - name: VolumeHold
    args: {weights: {held: 1001}}
`))
	if err == nil || !strings.Contains(err.Error(), "weights.held is 1001") {
		t.Errorf("the error is %v, want one about the weight", err)
	}
}

func moorageProfile(t *testing.T, pluginConfig string) config.KubeSchedulerProfile {
	t.Helper()
	return profileIn(t, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: moorage-scheduler
  plugins:
    multiPoint:
      enabled: [{name: VolumeHold}]
      disabled: [{name: NodeVolumeLimits}]
    bind:
      enabled: [{name: VolumeHold}]
  pluginConfig:`+pluginConfig, v1alpha1.SchedulerName)
}
