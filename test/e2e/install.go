// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// adoptAndLeave guards pods through Moorage's install and removal.
func adoptAndLeave() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "adopt-and-leave",
		Doc: "Pods run with the stock attach/detach controller; Moorage is installed, has a complete ledger and detaches nothing; it is taken out again, " +
			"and the stock controller goes on. No volume in use is ever detached.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Shape:     threeByFour,
		Exclusive: true,
		Takes:     40 * time.Second,
		Run: tell(func(s *story) {
			s.withoutMoorage(func() {
				for _, name := range []string{"a", "b", "c"} {
					s.claim(name)
					s.pod(name, name)
				}
				s.allRun("three pods run without Moorage", "a", "b", "c")
				s.expect(len(s.View.Holds()) == 0, "there are no VolumeHolds", "there are %d", len(s.View.Holds()))
				s.say("three pods run, and Moorage has never been here; it is installed")
			})
			for _, name := range []string{"a", "b", "c"} {
				s.held(name, s.View.Pod(s.Namespace, name).Spec.NodeName)
			}
			s.say("every volume has its VolumeHold; now a pod goes, and another comes")
			s.remove("c")
			s.gone("c")
			s.claim("d")
			s.pod("d", "d")
			s.runs("d")
			s.untouchedAll("a", "b")
			s.say("Moorage is taken out")
			s.withoutMoorage(func() {
				s.claim("e")
				s.pod("e", "e")
				s.runs("e")
				s.remove("d")
				s.gone("d")
				s.until("the stock controller detaches what Moorage attached", func() error {
					for _, a := range s.View.Attachments() {
						if pv := a.Spec.Source.PersistentVolumeName; pv != nil && *pv == s.View.Claim(s.Namespace, "d").Spec.VolumeName {
							return errors.New("it is attached")
						}
					}
					return nil
				})
				s.untouchedAll("a", "b")
				s.say("the stock controller has taken over, and nothing in use was detached")
			})
			s.untouchedAll("a", "b", "e")
		}),
	}
}

func (s *story) withoutMoorage(part func()) {
	s.withoutController(func() {
		s.enforce(false)
		s.must(s.Cluster.AttachDetach(s.ctx, true))
		part()
		s.must(s.Cluster.AttachDetach(s.ctx, false))
		s.enforce(true)
	})
}

func (s *story) withoutController(part func()) {
	s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
	policies, bindings := s.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), s.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	policy, err := policies.Get(s.ctx, sandbox.VolumesAttachedPolicy, metav1.GetOptions{})
	s.must(err)
	s.must(bindings.Delete(s.ctx, sandbox.VolumesAttachedPolicy, metav1.DeleteOptions{})) // the controller makes it again
	s.must(policies.Delete(s.ctx, policy.Name, metav1.DeleteOptions{}))
	part()
	policy.ObjectMeta = metav1.ObjectMeta{Name: policy.Name}
	_, err = policies.Create(s.ctx, policy, metav1.CreateOptions{})
	s.must(err)
	s.must(s.Cluster.StartAgain(sandbox.MoorageController))
}

func (s *story) enforce(on bool) {
	value := "null"
	if on {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, sandbox.EnforceLabel, value)
	_, err := s.Client.CoreV1().Namespaces().Patch(s.ctx, s.Namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

func (s *story) untouchedAll(pods ...string) {
	for _, name := range pods {
		pod := s.View.Pod(s.Namespace, name)
		s.must(s.Running(name))
		s.never(diskapi.ControllerUnpublish, s.handle(name), pod.Spec.NodeName)
	}
}

// stockReturns guards against a control-plane upgrade that forgets Standalone mode.
func stockReturns() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "stock-returns",
		Doc: "kube-controller-manager comes back with its attach/detach controller on: its writes of volumesAttached are denied, its attachments are reported, " +
			"and volumes are attached and detached as before.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Shape:     threeByFour,
		Exclusive: true,
		Run: tell(func(s *story) {
			const node = "worker-1"
			s.claim("before")
			s.podAt(node, "before", "before")
			s.runs("before")
			s.must(s.Cluster.AttachDetach(s.ctx, true))
			s.say("kube-controller-manager is back, with its attach/detach controller")
			s.claim("after")
			s.podAt(node, "after", "after")
			s.runs("after")
			s.say("another pod runs; the first one's volume is given back")
			s.remove("before")
			s.gone("before")
			s.until("its attachment is gone", func() error {
				if s.attachment("before", node) != nil {
					return errors.New("it is there")
				}
				return nil
			})
			s.stranger(node)
			s.until("its attachment is reported as somebody else's", func() error {
				for _, e := range s.View.Events(metav1.NamespaceDefault) {
					if e.InvolvedObject.Kind == "VolumeAttachment" && e.Reason == "OtherController" {
						return nil
					}
				}
				return errors.New("there is no such event")
			})
			s.keptOut(node)
			s.must(s.Running("after"))
			s.must(s.Cluster.AttachDetach(s.ctx, false))
			s.noStranger()
		}),
	}
}

// The attach/detach controller is denied its write, and the volume stays.
func (s *story) keptOut(node string) {
	s.policy("delay", v1alpha1.AttachPolicySpec{DetachDelay: &metav1.Duration{Duration: time.Hour}})
	s.claim("kept")
	s.podAt(node, "kept", "kept")
	s.runs("kept")
	s.remove("kept")
	s.gone("kept")
	s.until("the attach/detach controller's writes are denied", func() error {
		for _, e := range s.everyRequest() {
			if e.User.Username == attachDetachUser && e.Object.Path() == "nodes/status" && e.Response.Code >= 400 {
				return nil
			}
		}
		return errors.New("none was")
	})
	s.expect(s.attachment("kept", node) != nil, "the volume is kept", "its attachment is gone")
	s.say("the attach/detach controller would detach a volume that is to be kept: it can't")
	s.noPolicy("delay")
	s.until("the volume is given back without the policy", func() error {
		if s.attachment("kept", node) != nil {
			return errors.New("its attachment is there")
		}
		return nil
	})
}

const strangers = "strange.example.com"

// Moorage makes no attachment for a driver that the node lacks, but the attach/detach controller does.
func (s *story) stranger(node string) {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "strange"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: s.Namespace, Name: "strange"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: strangers, VolumeHandle: "strange"}},
		},
	}
	_, err := s.Client.CoreV1().PersistentVolumes().Create(s.ctx, pv, metav1.CreateOptions{})
	s.must(err)
	claim := sandbox.Claim("strange", corev1.ReadWriteOnce)
	claim.Spec.StorageClassName, claim.Spec.VolumeName = new(""), pv.Name
	s.must(s.CreateClaim(s.ctx, claim))
	s.until("the claim is bound", func() error {
		if c := s.View.Claim(s.Namespace, "strange"); c == nil || c.Status.Phase != corev1.ClaimBound {
			return errors.New("not yet")
		}
		return nil
	})
	pod := sandbox.Pod("strange", "strange")
	pod.Spec.NodeName = node
	s.must(s.CreatePod(s.ctx, pod))
	s.until("the attach/detach controller makes an attachment", func() error {
		for _, a := range s.View.Attachments() {
			if a.Spec.Attacher == strangers {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

func (s *story) noStranger() {
	s.remove("strange")
	s.gone("strange")
	s.until("its attachment is gone", func() error {
		for _, a := range s.View.Attachments() {
			if a.Spec.Attacher == strangers {
				return fmt.Errorf("it is there: %s", stateOf(a))
			}
		}
		return nil
	})
	s.must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.ctx, "strange", metav1.DeleteOptions{}))
	s.must(s.Client.CoreV1().PersistentVolumes().Delete(s.ctx, "strange", metav1.DeleteOptions{}))
}

func stateOf(a *storagev1.VolumeAttachment) string {
	return fmt.Sprintf("attached %v, deleting %v, finalizers %s", a.Status.Attached, a.DeletionTimestamp != nil, strings.Join(a.Finalizers, ", "))
}
