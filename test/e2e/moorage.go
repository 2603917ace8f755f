// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func (s *story) hold(claim string) (*v1alpha1.VolumeHold, error) {
	handle, err := s.Handle(claim)
	if err != nil {
		return nil, err
	}
	name := v1alpha1.VolumeHoldName(sandbox.DriverName, handle)
	for _, o := range s.View.Holds() {
		if o.GetName() != name {
			continue
		}
		var hold v1alpha1.VolumeHold
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &hold); err != nil {
			return nil, fmt.Errorf("VolumeHold %s: %w", name, err)
		}
		return &hold, nil
	}
	return nil, fmt.Errorf("there is no VolumeHold %s", name)
}

// held reads the VolumeHold, or the note of the only VolumeAttachment, and returns the fencing token.
func (s *story) held(claim, node string) int64 {
	var transitions int64
	s.until(node+" has the volume", func() error {
		hold, err := s.hold(claim)
		if err != nil {
			transitions, err = s.noted(claim, node)
			return err
		}
		transitions = hold.Status.Transitions
		switch {
		case hold.Status.Holder == nil:
			return errors.New("nobody has it")
		case hold.Status.Holder.Node != node:
			return fmt.Errorf("%s has it", hold.Status.Holder.Node)
		case hold.Status.Next != nil:
			return fmt.Errorf("%s is next", hold.Status.Next.Node)
		}
		return nil
	})
	return transitions
}

// Several PersistentVolumes may name the volume.
func (s *story) noted(claim, node string) (int64, error) {
	handle, err := s.Handle(claim)
	if err != nil {
		return 0, err
	}
	list := slices.DeleteFunc(s.View.Attachments(), func(a *storagev1.VolumeAttachment) bool {
		return a.Name != ledger.AttachmentName(ledger.VolumeID{Driver: sandbox.DriverName, Handle: handle}, ledger.NodeName(a.Spec.NodeName))
	})
	switch {
	case len(list) != 1:
		return 0, fmt.Errorf("it has neither a VolumeHold nor one VolumeAttachment, but %d", len(list))
	case list[0].Spec.NodeName != node:
		return 0, fmt.Errorf("it is at %s", list[0].Spec.NodeName)
	case list[0].Annotations[v1alpha1.AnnotationHolder] == "":
		return 0, errors.New("its VolumeAttachment has no note")
	}
	return strconv.ParseInt(list[0].Annotations[v1alpha1.AnnotationTransitions], 10, 64)
}

func volumeStatus(pod *corev1.Pod) (v1alpha1.PodVolumeStatus, error) {
	if pod == nil {
		return v1alpha1.PodVolumeStatus{}, errors.New("there is no such pod")
	}
	status, err := v1alpha1.ParseVolumeStatus(pod.Annotations[v1alpha1.AnnotationVolumeStatus])
	if err != nil {
		return v1alpha1.PodVolumeStatus{}, err
	}
	if len(status.Volumes) != 1 {
		return v1alpha1.PodVolumeStatus{}, fmt.Errorf("the volume status names %d volumes", len(status.Volumes))
	}
	return status.Volumes[0], nil
}

func told(pod *corev1.Pod, code string, texts ...string) error {
	status, err := volumeStatus(pod)
	if err != nil {
		return err
	}
	if err := says("the volume status", status.Reason, status.Message, code, texts...); err != nil {
		return err
	}
	if status.SafeToMount {
		return errors.New("the volume status calls the volume safe to mount")
	}
	c := condition(pod, v1alpha1.PodSafeToMount)
	if c == nil || c.Status != corev1.ConditionFalse {
		return fmt.Errorf("condition %s is not False", v1alpha1.PodSafeToMount)
	}
	return says("the condition", c.Reason, c.Message, code, texts...)
}

func (s *story) sayTold(name string) {
	status, err := volumeStatus(s.View.Pod(s.Namespace, name))
	s.must(err)
	s.say("%s is told: %s", name, status.Message)
}

func holdTells(hold *v1alpha1.VolumeHold, kind string, status metav1.ConditionStatus, code string, texts ...string) error {
	c := meta.FindStatusCondition(hold.Status.Conditions, kind)
	if c == nil || c.Status != status {
		return fmt.Errorf("the VolumeHold's condition %s is not %s", kind, status)
	}
	return says("the VolumeHold", c.Reason, c.Message, code, texts...)
}

func says(who, reason, message, code string, texts ...string) error {
	if reason != code {
		return fmt.Errorf("%s gives the reason %q: %s", who, reason, message)
	}
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return fmt.Errorf("%s says %q, without %q", who, message, text)
		}
	}
	return nil
}
