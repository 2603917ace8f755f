// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/webhook/pod"
)

const placeholder = `{"volumes":[{"name":"data","claim":"shop-data","safeToMount":false,"safeToDetach":false,"reason":"Pending"}]}`

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func podWithClaim() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers:    []corev1.Container{{Name: "db", Image: "db"}},
			Volumes:       []corev1.Volume{claimVolume("data", "shop-data")},
		},
	}
}

func mutated(t *testing.T, in *corev1.Pod) *corev1.Pod {
	t.Helper()
	patch, err := pod.Mutate(in, v1alpha1.SchedulerName)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) > 0 {
		operations, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = decoded.Apply(raw); err != nil {
			t.Fatalf("patch %s does not apply: %v", operations, err)
		}
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMutate(t *testing.T) {
	annotation := v1alpha1.AnnotationVolumeStatus
	tests := []struct {
		name          string
		change        func(*corev1.Pod)
		scheduler     string
		annotations   map[string]string
		wantUntouched bool
	}{
		{name: "a claim", scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "no scheduler yet", change: func(p *corev1.Pod) { p.Spec.SchedulerName = "" },
			scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "another scheduler", change: func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" },
			scheduler: "batch", annotations: map[string]string{annotation: placeholder}},
		{name: "a node already", change: func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" },
			scheduler: "default-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "annotations of others stay", change: func(p *corev1.Pod) { p.Annotations = map[string]string{"a/b~c": "d"} },
			scheduler: "moorage-scheduler", annotations: map[string]string{"a/b~c": "d", annotation: placeholder}},
		{name: "a status of its own is replaced", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotation: `{"volumes":[{"name":"data","safeToMount":true}]}`}
		}, scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "an empty status is replaced", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotation: ""}
		}, scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "marks of a restored pod are removed", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotation: `{"uid":"before","volumes":[]}`, "a": "b"}
			p.Spec.SchedulerName = v1alpha1.SchedulerName
		}, scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder, "a": "b"}},
		{name: "stamped before a volume was added", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotation: `{"volumes":[]}`}
			p.Spec.SchedulerName = v1alpha1.SchedulerName
		}, scheduler: "moorage-scheduler", annotations: map[string]string{annotation: placeholder}},
		{name: "a mirror pod", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		}, wantUntouched: true},
		{name: "no volumes", change: func(p *corev1.Pod) { p.Spec.Volumes = nil }, wantUntouched: true},
		{name: "volumes that are never attached", change: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
				{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}},
			}
		}, wantUntouched: true},
		{name: "no volumes, in a group", change: func(p *corev1.Pod) {
			p.Spec.Volumes, p.Spec.SchedulingGroup = nil, &corev1.PodSchedulingGroup{PodGroupName: new("train")}
		}, scheduler: "moorage-scheduler"},
		{name: "no volumes, in a group of scheduler-plugins", change: func(p *corev1.Pod) {
			p.Spec.Volumes, p.Labels = nil, map[string]string{"scheduling.x-k8s.io/pod-group": "train"}
		}, scheduler: "moorage-scheduler"},
		{name: "no volumes, in a group with another scheduler", change: func(p *corev1.Pod) {
			p.Spec.Volumes, p.Labels = nil, map[string]string{"scheduling.x-k8s.io/pod-group": "train"}
			p.Spec.SchedulerName = "batch"
		}, wantUntouched: true},
		{name: "stamped already", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotation: placeholder}
			p.Spec.SchedulerName = v1alpha1.SchedulerName
		}, wantUntouched: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := podWithClaim()
			if test.change != nil {
				test.change(in)
			}
			want := in.DeepCopy()
			if !test.wantUntouched {
				want.Spec.SchedulerName, want.Annotations = test.scheduler, test.annotations
			}
			got := mutated(t, in)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the pod becomes %+v\nwant %+v", got, want)
			}
			again, err := pod.Mutate(got, v1alpha1.SchedulerName)
			if err != nil || len(again) > 0 {
				t.Errorf("asked again it changes %v (%v)", again, err)
			}
		})
	}
}

func TestPlaceholder(t *testing.T) {
	in := podWithClaim()
	in.Spec.Volumes = []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		claimVolume("data", "shop-data"),
		{Name: "old", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}},
	}
	const pending = `"safeToMount":false,"safeToDetach":false,"reason":"Pending"`
	want := `{"volumes":[{"name":"scratch",` + pending + `},{"name":"data","claim":"shop-data",` + pending + `},{"name":"old",` + pending + `}]}`
	got, err := pod.Placeholder(in)
	if err != nil || got != want {
		t.Errorf("placeholder %s (%v)\nwant        %s", got, err, want)
	}
}

// A person must sort each kind of volume that Kubernetes adds: this test fails until then.
func TestEveryKindOfVolumeIsSorted(t *testing.T) {
	attachable := map[string]bool{
		"PersistentVolumeClaim": true, "Ephemeral": true,
		"GCEPersistentDisk": true, "AWSElasticBlockStore": true, "Cinder": true, "AzureDisk": true,
		"AzureFile": true, "VsphereVolume": true, "PortworxVolume": true,
		"ISCSI": true, "FC": true,
		"HostPath": false, "EmptyDir": false, "GitRepo": false, "Secret": false, "NFS": false, "Glusterfs": false,
		"RBD": false, "FlexVolume": false, "CephFS": false, "Flocker": false, "DownwardAPI": false, "ConfigMap": false,
		"Quobyte": false, "PhotonPersistentDisk": false, "Projected": false, "ScaleIO": false, "StorageOS": false,
		"CSI": false, "Image": false,
	}
	kinds := reflect.TypeFor[corev1.VolumeSource]()
	for i := range kinds.NumField() {
		field := kinds.Field(i)
		want, known := attachable[field.Name]
		if !known {
			t.Errorf("Kubernetes has a kind of volume %s that nobody has sorted yet", field.Name)
			continue
		}
		var volume corev1.Volume
		reflect.ValueOf(&volume.VolumeSource).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		if got := pod.CanBeAttachable(&volume); got != want {
			t.Errorf("%s can be attachable: %t, want %t", field.Name, got, want)
		}
	}
}
