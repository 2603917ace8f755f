// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// longhornAttachments is the kind of Longhorn's attachment tickets.
var longhornAttachments = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "volumeattachments"}

// imported guards that Moorage detaches no volume that was imported before it began.
func imported() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "import",
		Doc: "Before Moorage attaches, volumes are attached that no pod uses: two that Longhorn's own tickets ask for, one by hand, and one that nobody has imported. " +
			"kubectl moorage import makes tickets of the matching types; when the controller begins it detaches the last one and, of the others, not one. Their tickets end them.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Shape:     threeByFour,
		Exclusive: true,
		Run: tell(func(s *story) {
			const node = "worker-1"
			claims := []string{"ui", "backup", "byhand", "lost"}
			for _, claim := range claims {
				s.placed(claim, node)
			}
			s.defineLonghorn()
			defer s.forgetLonghorn()
			before := map[string]int{}
			s.withoutController(func() {
				for _, claim := range claims {
					s.attachByHand(claim, node)
				}
				for _, claim := range claims {
					s.attachedAt(claim, node)
					before[claim] = s.unpublished(claim, node)
				}
				s.longhornTicket("ui", "longhorn-ui", "longhorn-api", node)
				s.longhornTicket("backup", "backup-controller-b1", "backup-controller", node)
				dry := s.moorageCommand("import", "longhorn", "--driver", sandbox.DriverName, "--longhorn-namespace", s.Namespace)
				s.expect(dry.code == 0 && strings.Contains(dry.out, "type: Backup") && len(s.View.Tickets(s.Namespace)) == 0, "without --apply the tickets are printed, and not made", "%d: %s%s", dry.code, dry.out, dry.err)
				a := s.moorageCommand("import", "longhorn", "--driver", sandbox.DriverName, "--longhorn-namespace", s.Namespace, "--apply")
				s.expect(a.code == 0, "Longhorn's tickets are imported", "%d: %s%s", a.code, a.out, a.err)
				s.say("%s", a.out)
				s.onlyAttached("lost", node)
				a = s.moorageCommand("import", "attachments", "--ttl", "1h", "--apply")
				s.expect(a.code == 0 && strings.Count(a.out, "created") == 1, "what was attached by hand is imported, and nothing twice", "%d: %s%s", a.code, a.out, a.err)
				s.say("%s", a.out)
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
			for _, claim := range claims[:3] {
				again := s.unpublished(claim, node)
				s.expect(again == before[claim], "not one of the imported volumes is detached", "%s was, %d times", claim, again-before[claim])
			}
			s.say("the controller has begun, and detached the one volume that nobody has imported")
			a := s.moorageCommand("detach", s.View.Claim(s.Namespace, "byhand").Spec.VolumeName, "--node", node)
			s.expect(a.code == 0 && s.attachment("byhand", node) == nil, "detach ends the imported ticket, and the volume leaves", "%d: %s%s", a.code, a.out, a.err)
			for _, name := range s.ticketNames() {
				s.removeTicket(name)
			}
		}),
	}
}

// ticketNames are the names of the namespace's tickets.
func (s *story) ticketNames() []string {
	var names []string
	for _, o := range s.View.Tickets(s.Namespace) {
		if t, err := s.seenTicket(o.GetName()); err == nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// unpublished is how often a claim's volume has been asked to leave a node.
func (s *story) unpublished(claim, node string) int {
	return len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, s.handle(claim), node))
}

// attachByHand makes the VolumeAttachment of a claim's volume without a pod.
func (s *story) attachByHand(claim, node string) {
	pv := s.View.Claim(s.Namespace, claim).Spec.VolumeName
	_, err := s.Client.StorageV1().VolumeAttachments().Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: sandbox.DriverName, Handle: s.handle(claim)}, ledger.NodeName(node))},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: sandbox.DriverName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
	}, metav1.CreateOptions{})
	s.must(err)
}

// onlyAttached takes the VolumeAttachment of a claim's volume away, and waits until it is gone.
func (s *story) onlyAttached(claim, node string) {
	s.must(s.Client.StorageV1().VolumeAttachments().Delete(s.ctx, s.attachment(claim, node).Name, metav1.DeleteOptions{}))
	s.until("the volume of "+claim+" is detached by hand", func() error {
		if s.attachment(claim, node) != nil {
			return errors.New("it is attached")
		}
		return nil
	})
}

// longhornTicket makes Longhorn's object for a claim's volume, with one attachment ticket.
func (s *story) longhornTicket(claim, key, kind, node string) {
	s.create(longhornAttachments, s.Namespace, map[string]any{
		"apiVersion": longhornAttachments.GroupVersion().String(), "kind": "VolumeAttachment",
		"metadata": map[string]any{"name": claim},
		"spec": map[string]any{"volume": s.handle(claim), "attachmentTickets": map[string]any{
			key:   map[string]any{"id": key, "type": kind, "nodeID": node, "parameters": map[string]any{"disableFrontend": "false"}},
			"csi": map[string]any{"id": "csi", "type": "csi-attacher", "nodeID": node},
		}},
	})
}

// defineLonghorn defines the used part of Longhorn's kind in the API server.
func (s *story) defineLonghorn() {
	preserve := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	s.create(definitions, "", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "volumeattachments.longhorn.io"},
		"spec": map[string]any{
			"group": longhornAttachments.Group, "scope": "Namespaced",
			"names":    map[string]any{"kind": "VolumeAttachment", "listKind": "VolumeAttachmentList", "plural": "volumeattachments", "singular": "volumeattachment"},
			"versions": []any{map[string]any{"name": longhornAttachments.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": preserve}}},
		},
	})
}

// forgetLonghorn removes it, also after an early end of the story.
func (s *story) forgetLonghorn() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer cancel()
	if err := s.Dynamic.Resource(definitions).Delete(ctx, "volumeattachments.longhorn.io", metav1.DeleteOptions{}); err != nil {
		s.say("the definition of Longhorn's attachments could not be removed: %v", err)
	}
}
