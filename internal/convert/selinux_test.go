// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func level(level string) *corev1.SELinuxOptions { return &corev1.SELinuxOptions{Level: level} }

func mounting(options *corev1.SELinuxOptions, volumes ...string) corev1.Container {
	c := corev1.Container{Name: "c"}
	if options != nil {
		c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: options}
	}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v})
	}
	return c
}

func labelled(options *corev1.SELinuxOptions, containers ...corev1.Container) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: containers, Volumes: []corev1.Volume{{Name: "etc", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}}}
	if options != nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: options}
	}
	for _, name := range []string{"a", "b"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	return pod
}

func with(pod *corev1.Pod, change func(*corev1.PodSpec)) *corev1.Pod {
	change(&pod.Spec)
	return pod
}

func recursively(s *corev1.PodSpec) {
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	s.SecurityContext.SELinuxChangePolicy = ptr.To(corev1.SELinuxChangePolicyRecursive)
}

// The labels equal a kubelet's, also after repeated SlimContainers.
func TestSELinuxLabels(t *testing.T) {
	const none, unknown = ledger.SELinuxNone, ledger.SELinuxUnknown
	c1, c2 := ledger.SELinuxLabel("", "s0:c1"), ledger.SELinuxLabel("", "s0:c2")
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		a, b ledger.SELinux
		kept int // containers of the slimmed pod
	}{
		"nobody names a label":        {labelled(nil, mounting(nil, "a", "b")), none, none, 0},
		"the pod names one":           {labelled(level("s0:c1"), mounting(nil, "a", "b")), c1, c1, 1},
		"a container names one":       {labelled(nil, mounting(level("s0:c1"), "a"), mounting(nil, "b")), c1, none, 2},
		"a container's goes before":   {labelled(level("s0:c1"), mounting(level("s0:c2"), "a"), mounting(nil, "b")), c2, c1, 2},
		"a container's, as a whole":   {labelled(&corev1.SELinuxOptions{User: "u"}, mounting(level("s0:c1"), "a", "b")), c1, c1, 1},
		"user and level":              {labelled(&corev1.SELinuxOptions{User: "u", Level: "s0:c1,c2"}, mounting(nil, "a", "b")), "u:s0:c1,c2", "u:s0:c1,c2", 1},
		"role and type are no file's": {labelled(&corev1.SELinuxOptions{Role: "r", Type: "t", Level: "s0:c1"}, mounting(nil, "a", "b")), c1, c1, 1},
		"empty options":               {labelled(&corev1.SELinuxOptions{}, mounting(nil, "a", "b")), none, none, 0},
		"a level of the node's":       {labelled(&corev1.SELinuxOptions{Type: "spc_t"}, mounting(nil, "a", "b")), unknown, unknown, 1},
		"who names none decides nothing": {labelled(nil, mounting(nil, "a"), mounting(level("s0:c1"), "a", "b"), mounting(nil, "a")),
			c1, c1, 1},
		"the same twice":                  {labelled(nil, mounting(level("s0:c1"), "a", "b"), mounting(level("s0:c1"), "a")), c1, c1, 1},
		"different ones":                  {labelled(nil, mounting(level("s0:c1"), "a"), mounting(level("s0:c2"), "a", "b")), unknown, c2, 2},
		"different ones, and one of them": {labelled(nil, mounting(level("s0:c1"), "a"), mounting(level("s0:c2"), "a"), mounting(level("s0:c1"), "a", "b")), unknown, c1, 2},
		"empty options beside others":     {labelled(level("s0:c1"), mounting(nil, "a", "b"), mounting(&corev1.SELinuxOptions{}, "a")), unknown, c1, 2},
		"an init container": {with(labelled(nil, mounting(nil, "b")), func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{mounting(level("s0:c1"), "a")}
		}), c1, none, 2},
		"an init container differs": {with(labelled(nil, mounting(level("s0:c2"), "a", "b")), func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{mounting(level("s0:c1"), "a")}
		}), unknown, c2, 2},
		"an ephemeral container differs": {with(labelled(level("s0:c2"), mounting(nil, "a", "b")), func(s *corev1.PodSpec) {
			c := mounting(level("s0:c1"), "a")
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: c.SecurityContext, VolumeMounts: c.VolumeMounts}}}
		}), unknown, c2, 2},
		"recursive":                  {with(labelled(level("s0:c1"), mounting(nil, "a", "b")), recursively), none, none, 0},
		"recursive, of a container":  {with(labelled(nil, mounting(level("s0:c1"), "a"), mounting(nil, "b")), recursively), none, none, 0},
		"recursive, and they differ": {with(labelled(nil, mounting(level("s0:c1"), "a"), mounting(level("s0:c2"), "a", "b")), recursively), unknown, none, 2},
		"MountOption is what there is": {with(labelled(level("s0:c1"), mounting(nil, "a", "b")), func(s *corev1.PodSpec) {
			s.SecurityContext.SELinuxChangePolicy = ptr.To(corev1.SELinuxChangePolicyMountOption)
		}), c1, c1, 1},
		"one is mounted nowhere":    {labelled(level("s0:c1"), mounting(nil, "a")), c1, unknown, 2},
		"one is, without any label": {labelled(nil, mounting(nil, "a", "etc")), none, unknown, 2},
		"nothing is mounted":        {labelled(level("s0:c1"), mounting(nil)), unknown, unknown, 1},
		"a block device": {labelled(level("s0:c1"), func() corev1.Container {
			c := mounting(nil, "a")
			c.VolumeDevices = []corev1.VolumeDevice{{Name: "b"}}
			return c
		}()), c1, unknown, 2},
	} {
		want := []ledger.SELinux{test.a, test.b}
		pod := test.pod
		for _, how := range []string{"whole", "slim", "slimmed twice"} {
			fact, err := Pod(pod)
			if err != nil || len(fact.Volumes) != 2 {
				t.Fatalf("%s: %d volumes (%v)", name, len(fact.Volumes), err)
			}
			if got := []ledger.SELinux{fact.Volumes[0].SELinux, fact.Volumes[1].SELinux}; !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: %q, want %q", name, how, got, want)
			}
			slim := SlimContainers(pod)
			if len(slim) != test.kept {
				t.Errorf("%s, %s: slimming leaves %+v, want %d", name, how, slim, test.kept)
			}
			if how == "slim" && !reflect.DeepEqual(slim, pod.Spec.Containers) {
				t.Errorf("%s: slimming twice makes %+v of %+v", name, slim, pod.Spec.Containers)
			}
			pod = &corev1.Pod{Spec: corev1.PodSpec{Volumes: pod.Spec.Volumes, Containers: slim}}
		}
	}
}

func TestSELinuxLabelOfInline(t *testing.T) {
	pod := labelled(level("s0:c1"), mounting(nil, "disk"))
	pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-02399794d890f9375"}}}}
	fact, err := Pod(pod)
	if err != nil || len(fact.Volumes) != 1 || fact.Volumes[0].Inline.Driver != "ebs.csi.aws.com" || fact.Volumes[0].SELinux != ledger.SELinuxLabel("", "s0:c1") {
		t.Errorf("it is %+v (%v)", fact.Volumes, err)
	}
}

func TestSELinuxMountOfNodes(t *testing.T) {
	const nfd = "feature.node.kubernetes.io/kernel-selinux.enabled"
	for name, test := range map[string]struct {
		version string
		labels  map[string]string
		want    bool
	}{
		"nothing is said":                    {"v1.37.1", nil, false},
		"SELinux":                            {"v1.37.0", map[string]string{nfd: "true"}, true},
		"SELinux, later":                     {"v1.40.2", map[string]string{nfd: "true"}, true},
		"SELinux, of a vendor's version":     {"v1.37.2+k3s1", map[string]string{nfd: "true"}, true},
		"SELinux, with a vendor's text":      {"v1.37.1-eks-abc", map[string]string{nfd: "true"}, true},
		"SELinux, before it was the default": {"v1.36.9", map[string]string{nfd: "true"}, false},
		"SELinux, of no version":             {"", map[string]string{nfd: "true"}, false},
		"no SELinux":                         {"v1.37.1", map[string]string{nfd: "false"}, false},
		"said":                               {"v1.34.0", map[string]string{LabelSELinuxMount: "true"}, true},
		"said, of no version":                {"", map[string]string{LabelSELinuxMount: "true"}, true},
		"denied":                             {"v1.37.1", map[string]string{LabelSELinuxMount: "false", nfd: "true"}, false},
		"said in other words":                {"v1.37.1", map[string]string{LabelSELinuxMount: "yes", nfd: "true"}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: test.labels}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: test.version}}}
		if got := Node(node).SELinuxMount; got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestSELinuxMountOfDrivers(t *testing.T) {
	for _, test := range []struct {
		says *bool
		want bool
	}{{nil, false}, {ptr.To(false), false}, {ptr.To(true), true}} {
		if got := Driver(&storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{SELinuxMount: test.says}}).SELinuxMount; got != test.want {
			t.Errorf("seLinuxMount %v: %v, want %v", test.says, got, test.want)
		}
	}
}
