// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// volumeKinds guards that a volume is its disk, under any name and in any use.
func volumeKinds() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "volume-kinds",
		Doc: "A pod with a claim, a claim that it may only read and a generic ephemeral volume runs. A second PersistentVolume names the first one's disk: a pod elsewhere that claims it waits for the disk, and is told. " +
			"When the first pod goes, the disk changes its node and the ephemeral volume is deleted. " +
			"At a node with SELinux a pod with another label waits for the one that has the disk mounted.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const here, there, scratch = "worker-1", "worker-2", "writer-scratch"
			s.claim("data")
			s.claim("read")
			s.must(s.CreatePod(s.ctx, everyKind("writer", here, "data", "read")))
			s.runs("writer")
			for _, claim := range []string{"data", "read", scratch} {
				s.attachedAt(claim, here)
				s.held(claim, here)
			}
			s.say("writer runs on %s with a claim, a claim to be read and an ephemeral volume", here)
			handle, before := s.handle("data"), s.held("data", here)
			s.secondName("data", "alias")
			s.podAt(there, "second", "alias")
			s.until("the second pod is told who has the disk", func() error {
				pod := s.View.Pod(s.Namespace, "second")
				if pod != nil && pod.Spec.NodeName != "" {
					return sandbox.Never("it is bound to %s", pod.Spec.NodeName)
				}
				return unscheduled(pod, here)
			})
			s.never(diskapi.ControllerPublish, handle, there)
			s.say("a second PersistentVolume names its disk, and a pod on %s waits for it", there)
			s.remove("writer")
			s.gone("writer")
			s.runs("second")
			s.detachedBefore(last(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, there)), here)
			after := s.held("alias", there)
			s.expect(after > before, "it is one volume, and its transitions rise", "it was %d and is %d", before, after)
			s.until("the ephemeral volume is deleted with its pod", func() error {
				if s.View.Claim(s.Namespace, scratch) != nil {
					return errors.New("its claim is there")
				}
				return nil
			})
			s.remove("second")
			s.gone("second")
			s.otherLabel("data", there)
			s.must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.ctx, "alias", metav1.DeleteOptions{}))
			s.must(s.Client.CoreV1().PersistentVolumes().Delete(s.ctx, s.Namespace+"-alias", metav1.DeleteOptions{}))
			s.say("the disk went to %s, by its other name", there)
		}),
	}
}

// The machine need not have SELinux: its Node's label counts, and without SELinux a kubelet mounts for
// both.
func (s *story) otherLabel(claim, node string) {
	byLabel := func(driver, label string) {
		_, err := s.Client.StorageV1().CSIDrivers().Patch(s.ctx, sandbox.DriverName, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"seLinuxMount":%s}}`, driver), metav1.PatchOptions{})
		s.must(err)
		_, err = s.Client.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"moorage.dev/selinux-mount":%s}}}`, label), metav1.PatchOptions{})
		s.must(err)
	}
	labelled := func(name, level string) {
		pod := sandbox.Pod(name, claim)
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: level}}
		s.must(s.CreatePod(s.ctx, pod))
	}
	byLabel("true", `"true"`)
	labelled("labelled", "s0:c1,c2")
	s.runs("labelled")
	labelled("otherwise", "s0:c3,c4")
	s.until("the pod with another SELinux label is told who has the volume mounted", func() error {
		pod := s.View.Pod(s.Namespace, "otherwise")
		if pod != nil && pod.Spec.NodeName != "" {
			return sandbox.Never("it is bound to %s, where the volume is mounted with another SELinux label", node)
		}
		return unscheduled(pod, "with another SELinux label for pod "+s.Namespace+"/labelled")
	})
	s.remove("labelled")
	s.gone("labelled")
	s.runs("otherwise")
	s.remove("otherwise")
	s.gone("otherwise")
	byLabel("null", "null")
	s.say("a pod with another SELinux label waited at %s for the first one to go", node)
}

func everyKind(name, node, claim, read string) *corev1.Pod {
	pod := sandbox.Pod(name, claim, read)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.Volumes[1].PersistentVolumeClaim.ReadOnly = true
	pod.Spec.Containers[0].VolumeMounts[1].ReadOnly = true
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: sandbox.Claim("", corev1.ReadWriteOnce).Spec,
		}},
	}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	return pod
}

func (s *story) secondName(claim, name string) {
	first := s.View.Volume(s.View.Claim(s.Namespace, claim).Spec.VolumeName)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name}, Spec: *first.Spec.DeepCopy()}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: s.Namespace, Name: name}
	pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.StorageClassName = corev1.PersistentVolumeReclaimRetain, ""
	if _, err := s.Client.CoreV1().PersistentVolumes().Create(s.ctx, pv, metav1.CreateOptions{}); err != nil {
		s.must(fmt.Errorf("create PersistentVolume %s: %w", pv.Name, err))
	}
	second := sandbox.Claim(name, corev1.ReadWriteOnce)
	second.Spec.StorageClassName, second.Spec.VolumeName = new(""), pv.Name
	s.must(s.CreateClaim(s.ctx, second))
	s.until("claim "+name+" is bound", func() error {
		if c := s.View.Claim(s.Namespace, name); c == nil || c.Status.Phase != corev1.ClaimBound {
			return errors.New("not yet")
		}
		return nil
	})
}
