// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestSlimPodsSayTheSame(t *testing.T) {
	ended := corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: strings.Repeat("x", 100)}}}
	runs := corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	one := []corev1.Container{{Name: "c", Image: "x", Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("b", 1000)}},
		VolumeMounts: []corev1.VolumeMount{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}}}
	now := metav1.Now()
	for name, status := range map[string]corev1.PodStatus{
		"new": {}, "running": {Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{runs}},
		"ended":      {ContainerStatuses: []corev1.ContainerStatus{ended}, InitContainerStatuses: []corev1.ContainerStatus{ended}},
		"init runs":  {ContainerStatuses: []corev1.ContainerStatus{ended}, InitContainerStatuses: []corev1.ContainerStatus{runs}},
		"debugged":   {ContainerStatuses: []corev1.ContainerStatus{ended}, InitContainerStatuses: []corev1.ContainerStatus{ended}, EphemeralContainerStatuses: []corev1.ContainerStatus{runs}},
		"incomplete": {ContainerStatuses: []corev1.ContainerStatus{ended}},
		"failed":     {Phase: corev1.PodFailed},
	} {
		for _, deleting := range []*metav1.Time{nil, &now} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", CreationTimestamp: now, DeletionTimestamp: deleting,
					Labels: map[string]string{"app": "db"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
					Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "m", v1alpha1.AnnotationVolumeStatus: "{}", "other": "long"},
				},
				Spec: corev1.PodSpec{NodeName: "n", Containers: one, InitContainers: one, Volumes: []corev1.Volume{
					{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
					{Name: "b", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
					{Name: "c", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-02399794d890f9375"}}},
					{Name: "d", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i"}}},
					{Name: "e", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
					{Name: "f", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets", VolumeAttributes: map[string]string{"a": "b"}}}},
				}},
				Status: status,
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: v1alpha1.PodSafeToMount}}
			want, err := convert.Pod(pod)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := new(Observer).slim(pod)
			if err != nil {
				t.Fatal(err)
			}
			slimmed := kept.(*keptPod).pod()
			if got, err := convert.Pod(slimmed); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v (%v)\nwant %+v", name, got, err, want)
			}
			if len(slimmed.Annotations) != 2 || len(slimmed.Status.Conditions) != 1 || slimmed.Labels != nil || slimmed.ManagedFields != nil ||
				len(slimmed.Spec.Volumes) != 5 || slimmed.Spec.Volumes[4].CSI.Driver != "" || len(slimmed.Spec.Containers) > 0 {
				t.Errorf("%s: too much or too little is kept: %+v", name, slimmed)
			}
		}
	}
}

// A kept pod takes less than two fifths of the memory.
func TestKeptPodsAreTheSlimmedOnes(t *testing.T) {
	claim := func(name string, readOnly bool) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name, ReadOnly: readOnly}}}
	}
	flex := corev1.Volume{Name: "f", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "d"}}}
	now, priority := metav1.Now(), int32(7)
	for name, volumes := range map[string][]corev1.Volume{
		"no volume": nil, "claims": {claim("a", false), claim("b", true)}, "a claim and another": {claim("a", true), flex}, "another": {flex},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64(3)),
				Finalizers: []string{"f"}, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "1"},
			},
			Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "s", Priority: &priority, Volumes: volumes, Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "a"}}}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{Type: v1alpha1.PodSafeToMount}},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
			},
		}
		kept := keepPod(pod)
		if got := kept.pod(); !reflect.DeepEqual(got, pod) {
			t.Errorf("%s: it is kept as %+v, want %+v", name, got, pod)
		}
		if got := kept.DeepCopyObject().(*keptPod).pod(); !reflect.DeepEqual(got, pod) {
			t.Errorf("%s: a copy is %+v, want %+v", name, got, pod)
		}
		if again, err := new(Observer).slim(kept); err != nil || again != any(kept) {
			t.Errorf("%s: kept once more it is %v (%v)", name, again, err)
		}
	}
	if kept, whole := unsafe.Sizeof(keptPod{}), unsafe.Sizeof(corev1.Pod{}); kept > 2*whole/5 {
		t.Errorf("it takes %d bytes, a Pod %d", kept, whole)
	}
}

func TestSlimPodsKeepTheirLabels(t *testing.T) {
	now := metav1.Now()
	container := func(level string, mounts ...string) corev1.Container {
		c := corev1.Container{Name: "c" + level, Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: new(bool)}}
		if level != "" {
			c.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "t", Level: level}
		}
		for _, name := range mounts {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		return c
	}
	for name, containers := range map[string][]corev1.Container{
		"one label": {container("s0:c1", "a", "b")}, "two labels": {container("s0:c1", "a"), container("s0:c2", "b")},
		"three labels": {container("s0:c1", "a"), container("s0:c2", "b"), container("", "c")}, "nothing is mounted": {container("s0:c1")},
	} {
		for ended, state := range map[bool]corev1.ContainerState{true: {Terminated: &corev1.ContainerStateTerminated{}}, false: {Running: &corev1.ContainerStateRunning{}}} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", DeletionTimestamp: &now},
				Spec:       corev1.PodSpec{NodeName: "n", Containers: containers, SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c9"}}},
				Status:     corev1.PodStatus{ContainerStatuses: slices.Repeat([]corev1.ContainerStatus{{State: state}}, len(containers))},
			}
			for _, claim := range []string{"a", "b", "c"} {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
			}
			want, err := convert.Pod(pod)
			if err != nil || (want.Phase == ledger.PodFinished) != ended {
				t.Fatalf("%s: %+v (%v)", name, want, err)
			}
			kept, err := new(Observer).slim(pod)
			if err != nil {
				t.Fatal(err)
			}
			slimmed := kept.(*keptPod).pod()
			if got, err := convert.Pod(slimmed); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, ended %v: %+v (%v)\nwant %+v", name, ended, got, err, want)
			}
			for _, c := range slimmed.Spec.Containers {
				if c.Image != "" || c.Name != "" || slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath != "" }) {
					t.Errorf("%s: too much is kept: %+v", name, c)
				}
			}
		}
	}
}

// The scheduler's name says whether the pod has opted in.
func TestSlimPodsKeepTheirScheduler(t *testing.T) {
	for _, scheduler := range []string{v1alpha1.SchedulerName, "batch"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: scheduler}}
		want, _ := convert.Pod(pod)
		slimmed, err := new(Observer).slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		kept := slimmed.(*keptPod).pod()
		if got, _ := convert.Pod(kept); !reflect.DeepEqual(got, want) || kept.Spec.SchedulerName != scheduler {
			t.Errorf("scheduler %s: %+v, want %+v", scheduler, got, want)
		}
	}
}

func TestSlimNodesSayTheSame(t *testing.T) {
	then := metav1.NewTime(time.Unix(100_000, 0))
	later := metav1.NewTime(then.Add(time.Hour))
	written := []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Time: &then, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{}}}}`)},
		{Manager: "kubelet", Subresource: "status", Time: &later, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:status":{}}}}}`)},
	}
	for name, test := range map[string]struct {
		transition metav1.Time
		fields     []metav1.ManagedFieldsEntry
		reporting  bool
		kept       int
	}{
		"has written since it was Ready":    {then, written, true, 0},
		"was silent, and had written":       {later, written, true, 1},
		"was silent, and had never written": {later, written[:1], false, 1},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: then, ManagedFields: test.fields}}
		node.Labels, node.Status.NodeInfo.KubeletVersion = map[string]string{"feature.node.kubernetes.io/kernel-selinux.enabled": "true"}, "v1.37.1"
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: later, LastTransitionTime: test.transition}}
		for range 2 { // as informers do with a first list
			if _, err := new(Observer).slim(node); err != nil {
				t.Fatal(err)
			}
			if fact := convert.Node(node); !fact.SELinuxMount {
				t.Errorf("%s: it is not known any more that its kubelet mounts by label", name)
			}
			if got := convert.Node(node).Reporting; got != test.reporting || len(node.ManagedFields) != test.kept || node.Status.Images != nil {
				t.Errorf("%s: reporting %v, want %v, with %d entries of managedFields, want %d", name, got, test.reporting, len(node.ManagedFields), test.kept)
			}
		}
	}
}

func TestRefusedPodsAreTold(t *testing.T) {
	o := &Observer{}
	var told []string
	o.SubscribeRefused(func(uid string) { told = append(told, uid) })
	why := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no slot"}
	placed := why
	placed.Status = corev1.ConditionTrue
	for name, pod := range map[string]*corev1.Pod{
		"refused": {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{why}}},
		"new":     {},
		"bound":   {Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{why}}},
		"placed":  {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{placed}}},
	} {
		pod.UID = types.UID(name)
		kept, err := o.slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		pod := kept.(*keptPod).pod()
		if n := len(pod.Status.Conditions); (n == 1) != (name == "refused") {
			t.Errorf("%s: %d conditions are kept", name, n)
		}
		o.publishRefused(pod)
	}
	if !slices.Equal(told, []string{"refused"}) {
		t.Errorf("told are %v", told)
	}
}

// The folder's name alone identifies an unreadable record's volume.
func TestSlimNodeMountReport(t *testing.T) {
	const yes, no = v1alpha1.NodeYes, v1alpha1.NodeNo
	pods := []v1alpha1.PublishedPod{{PodUID: "p", PodFolder: true, Mounted: no}, {PodUID: "q", PodFolder: true, Mounted: no}}
	whole := &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "w", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	whole.Status.Volumes = []v1alpha1.ReportedVolume{
		{Path: "staged", Driver: "d", Handle: "a", PersistentVolume: "pv-a", Mode: "Filesystem", Staged: yes, Mounted: yes, Published: pods},
		{Path: "forgotten", Driver: "d", Handle: "b", Mode: "Filesystem", Staged: yes, Mounted: yes, Forgotten: true},
		{Path: "pods/p/volumes/kubernetes.io~csi/pv", PersistentVolume: "pv", Mode: "Filesystem", Staged: no, Mounted: no, Published: pods[:1], Unknown: "cut off"},
		{Path: "plugins/kubernetes.io/csi/volumeDevices/staging/pv-b", PersistentVolume: "pv-b", Mode: "Block", Staged: yes, Mounted: no, Unknown: "cut off"},
		{Path: "plugins/kubernetes.io/csi/d/" + strings.Repeat("0a", 32) + "/globalmount", Driver: "d", Mode: "Filesystem", Staged: yes, Mounted: yes, Unknown: "no record"},
	}
	want := convert.NodeWord(whole)
	if len(want.Unread) != 3 || len(want.Has) != 2 {
		t.Fatalf("the whole object says %+v", want)
	}
	kept, err := new(Observer).slim(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	slimmed := kept.(*v1alpha1.NodeMountReport)
	if got := convert.NodeWord(slimmed); !reflect.DeepEqual(got, want) {
		t.Errorf("it says %+v, want %+v", got, want)
	}
	if v := slimmed.Status.Volumes[0]; slimmed.ManagedFields != nil || v.Path != "" || v.PersistentVolume != "" || len(v.Published) != 1 {
		t.Errorf("too much is kept: %+v", slimmed)
	}
}
