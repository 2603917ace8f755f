// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func imported() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "import",
		Doc: "Before Moorage attaches, volumes are attached by hand that no pod uses. kubectl moorage import makes a ticket for each, except for one that is attached afterwards. " +
			"When the controller begins it detaches the last one and, of the others, not one. Their tickets end them.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Shape:     threeByFour,
		Exclusive: true,
		Run: tell(func(s *story) {
			const node = "worker-1"
			claims := []string{"byhand", "other", "lost"}
			for _, claim := range claims {
				s.placed(claim, node)
			}
			before := map[string]int{}
			s.withoutController(func() {
				for _, claim := range claims[:2] {
					s.attachByHand(claim, node)
				}
				for _, claim := range claims[:2] {
					s.attachedAt(claim, node)
					before[claim] = s.unpublished(claim, node)
				}
				dry := s.moorageCommand("import")
				s.expect(dry.code == 0 && strings.Contains(dry.out, "type: Manual") && len(s.View.Tickets(s.Namespace)) == 0, "without --apply the tickets are printed, and not made", "%d: %s%s", dry.code, dry.out, dry.err)
				a := s.moorageCommand("import", "--ttl", "1h", "--apply")
				s.expect(a.code == 0 && strings.Count(a.out, "created") == 2, "each of the two gets a ticket", "%d: %s%s", a.code, a.out, a.err)
				s.say("%s", a.out)
				a = s.moorageCommand("import", "--ttl", "1h", "--apply")
				s.expect(a.code == 0 && strings.Count(a.out, "created") == 0, "nothing is imported twice", "%d: %s%s", a.code, a.out, a.err)
				s.attachByHand("lost", node)
				s.attachedAt("lost", node)
				before["lost"] = s.unpublished("lost", node)
			})
			s.until("the volume that nobody has imported is detached", func() error {
				if s.attachment("lost", node) != nil {
					return errors.New("it is attached")
				}
				return nil
			})
			for _, name := range s.ticketNames() {
				s.satisfied(name)
			}
			for _, claim := range claims[:2] {
				again := s.unpublished(claim, node)
				s.expect(again == before[claim], "not one of the imported volumes is detached", "%s was, %d times", claim, again-before[claim])
			}
			s.say("the controller has begun, and detached the one volume that nobody has imported")
			for _, name := range s.ticketNames() {
				s.removeTicket(name)
			}
			for _, claim := range claims[:2] {
				s.until("with its ticket the volume of "+claim+" leaves", func() error {
					if s.attachment(claim, node) != nil {
						return errors.New("it is attached")
					}
					return nil
				})
			}
		}),
	}
}

func (s *story) ticketNames() []string {
	var names []string
	for _, o := range s.View.Tickets(s.Namespace) {
		if t, err := s.seenTicket(o.GetName()); err == nil {
			names = append(names, t.Name)
		}
	}
	return names
}

func (s *story) unpublished(claim, node string) int {
	return len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, s.handle(claim), node))
}

func (s *story) attachByHand(claim, node string) {
	pv := s.View.Claim(s.Namespace, claim).Spec.VolumeName
	_, err := s.Client.StorageV1().VolumeAttachments().Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: sandbox.DriverName, Handle: s.handle(claim)}, ledger.NodeName(node))},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: sandbox.DriverName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
	}, metav1.CreateOptions{})
	s.must(err)
}
