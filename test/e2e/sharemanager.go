// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// shareDriver serves shares, which need no attachment.
const shareDriver = "share.example.com"

// shareManager guards that a volume which many nodes use is served by one, and by another when that dies.
func shareManager() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "share-manager",
		Doc: "The server of a share has its disk by a ShareManager ticket, at a node that Moorage chooses; ten pods use the share by a driver with attachRequired: false, and take neither a slot nor an attachment. " +
			"(No node plugin of that driver runs here: the pods are bound, and mount nothing.) The server's node dies and is out of service: the ticket has the disk at another node. A drain of that one moves it again.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: failingNodes,
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			s.claim("disk")
			s.podAt("worker-1", "makes", "disk")
			s.runs("makes")
			s.remove("makes")
			s.gone("makes")
			s.ticketWith("server", v1alpha1.TicketShareManager, "", "disk", func(t *v1alpha1.VolumeTicket) {
				t.OwnerReferences, t.Spec.TTLSeconds, t.Spec.OnDrain = s.work("share"), nil, v1alpha1.OnDrainMove
			})
			s.satisfied("server")
			first := s.ticketNode("server")
			defer s.share("files")()
			attached := len(s.View.Attachments())
			for i := range 10 {
				s.pod(fmt.Sprintf("user-%d", i), "files")
			}
			s.until("ten pods that use the share have nodes", func() error {
				for i := range 10 {
					if p := s.View.Pod(s.Namespace, fmt.Sprintf("user-%d", i)); p == nil || p.Spec.NodeName == "" {
						return fmt.Errorf("not user-%d", i)
					}
				}
				return nil
			})
			s.expect(len(s.View.Attachments()) == attached && len(s.View.Tickets(s.Namespace)) == 1, "they take neither a ticket nor an attachment", "%d attachments, %d tickets", len(s.View.Attachments())-attached, len(s.View.Tickets(s.Namespace)))
			s.say("the server is at %s; ten pods use the share, and no slot", first)
			s.must(s.Cluster.PowerOff(s.ctx, first))
			s.nodeIs(first, false)
			s.taint(first, outOfService())
			second := s.movesFrom("server", first)
			s.say("%s is out of service: the server has its disk at %s", first, second)
			s.must(s.Cluster.PowerOn(s.ctx, first))
			s.nodeIs(first, true)
			s.untaint(first, outOfService())
			s.cordon(second)
			s.letGo("server", s.yields("server"))
			third := s.movesFrom("server", second)
			s.say("%s is cordoned: the server has let go of its disk, and has it at %s", second, third)
			s.uncordon(second)
			for i := range 10 {
				s.must(ifThere(s.forceDelete(s.ctx, fmt.Sprintf("user-%d", i)))) // the taint has ended those at the node
			}
			s.removeTicket("server")
		}),
	}
}

// ticketNode is where a ticket has its volumes.
func (s *story) ticketNode(name string) string {
	t, err := s.seenTicket(name)
	s.must(err)
	return t.Node()
}

// movesFrom waits until a ticket is satisfied at another node, where its volume is attached, and at no other.
func (s *story) movesFrom(name, node string) string {
	t := s.untilTicket(name, "has left "+node, func(t *v1alpha1.VolumeTicket) bool {
		return t.Node() != "" && t.Node() != node && t.Status.State == v1alpha1.ReasonSatisfied
	})
	s.attachedAt("disk", t.Node())
	s.until("the disk has left "+node, func() error {
		if s.attachment("disk", node) != nil {
			return errors.New("it is attached there")
		}
		return nil
	})
	return t.Node()
}

// share makes a driver whose volumes need no attachment, and a claim for one that many nodes may use. What it
// returns removes the driver and the volume.
func (s *story) share(claim string) (remove func()) {
	required, pv := false, claim+"-"+s.Namespace
	_, err := s.Client.StorageV1().CSIDrivers().Create(s.ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: shareDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &required}}, metav1.CreateOptions{})
	s.must(err)
	modes, capacity := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	_, err = s.Client.CoreV1().PersistentVolumes().Create(s.ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, Capacity: capacity, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: s.Namespace, Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: shareDriver, VolumeHandle: pv}},
	}}, metav1.CreateOptions{})
	s.must(err)
	object := sandbox.Claim(claim, corev1.ReadWriteMany)
	object.Spec.VolumeName, object.Spec.StorageClassName = pv, new("")
	s.must(s.CreateClaim(s.ctx, object))
	return func() {
		s.must(errors.Join(
			s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.ctx, claim, metav1.DeleteOptions{}),
			s.Client.CoreV1().PersistentVolumes().Delete(s.ctx, pv, metav1.DeleteOptions{}),
			s.Client.StorageV1().CSIDrivers().Delete(s.ctx, shareDriver, metav1.DeleteOptions{})))
	}
}
