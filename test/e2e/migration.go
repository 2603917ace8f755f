// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// migration guards the one exception to I1: a volume is at two nodes during a live migration, and
// afterwards at one.
func migration() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "migration",
		Doc: "With moorage-attacher and a driver that can, a ticket of type LiveMigration brings a volume to a second node while the pod on the first has it; " +
			"the next pod runs there, and the volume leaves the first. When that is over, a late attachment to the first node is not carried out.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Exclusive: true,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.MoorageAttacher, shape.LenientDisks = true, true
		},
		Run: tell(func(s *story) {
			const from, to, third = "worker-1", "worker-2", "worker-3"
			s.claim("data")
			s.podAt(from, "vm", "data")
			s.runs("vm")
			handle := s.handle("data")
			before := s.held("data", from)
			s.policy("migrate", v1alpha1.AttachPolicySpec{LiveMigration: new(true)})
			s.ticketOfType("move", v1alpha1.TicketLiveMigration, to, "data")
			s.satisfied("move")
			s.besideSource(from, to)
			s.must(s.ExpectMigration(s.ctx, handle, to))
			s.ticketOfType("astray", v1alpha1.TicketLiveMigration, third, "data")
			s.until("a second target is refused", func() error { return s.ticketTells("astray", "HeldElsewhere") })
			s.removeTicket("astray")
			s.podAt(to, "vm-moved", "data")
			s.runs("vm-moved")
			s.must(s.ExpectBothWrite(s.ctx, handle, to))
			s.must(s.Running("vm"))
			s.say("vm runs on %s and vm-moved on %s; now vm goes", from, to)
			s.remove("vm")
			s.gone("vm")
			s.removeTicket("move")
			s.until("the volume has left "+from, func() error {
				if s.attachment("data", from) != nil {
					return errors.New("its VolumeAttachment is there")
				}
				return nil
			})
			s.expect(s.held("data", to) > before, "the volume has changed its node", "its transitions are not more than %d", before)
			s.lateAttachment(from, handle, before)
			s.never(diskapi.ControllerPublish, handle, third)
			s.must(s.Running("vm-moved"))
			s.noPolicy("migrate")
		}),
	}
}

func (s *story) besideSource(from, to string) {
	s.until("the volume is attached to both nodes", func() error {
		for _, node := range []string{from, to} {
			if a := s.attachment("data", node); a == nil || !a.Status.Attached || a.DeletionTimestamp != nil {
				return fmt.Errorf("not to %s", node)
			}
		}
		return nil
	})
	beside := s.attachment("data", to).Annotations[v1alpha1.AnnotationBeside]
	s.expect(beside == from, "the attachment at "+to+" is beside "+from, "it says %q", beside)
}

// A controller that was paused during the migration would make this attachment.
func (s *story) lateAttachment(node, handle string, transitions int64) {
	published := len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, node))
	pv := s.View.Claim(s.Namespace, "data").Spec.VolumeName
	late := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "late-" + s.Namespace, Finalizers: []string{convert.AttacherFinalizer(sandbox.DriverName)},
			Annotations: map[string]string{
				convert.AnnotationNodeID: diskapi.NodeID(node), v1alpha1.AnnotationTransitions: fmt.Sprint(transitions),
			},
		},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: sandbox.DriverName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
	}
	attachments := s.Client.StorageV1().VolumeAttachments()
	_, err := attachments.Create(s.ctx, late, metav1.CreateOptions{})
	s.must(err)
	s.until("the attacher says why the late attachment waits", func() error {
		a, err := attachments.Get(s.ctx, late.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case a.Status.Attached:
			return sandbox.Never("it is attached")
		case a.Status.AttachError == nil || !strings.Contains(a.Status.AttachError.Message, "the volume may be at node"):
			return fmt.Errorf("it says %+v", a.Status.AttachError)
		}
		return nil
	})
	again := len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, node))
	s.expect(again == published, "the volume is not published to "+node+" any more", "it was, %d times", again-published)
	s.must(attachments.Delete(s.ctx, late.Name, metav1.DeleteOptions{}))
	s.until("the late attachment is gone", func() error {
		if a := s.attachment("data", node); a != nil {
			return fmt.Errorf("%s is there", a.Name)
		}
		return nil
	})
}
