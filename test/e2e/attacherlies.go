// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// There is no pod, since a kubelet would find out as well.
func attacherLies() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "attacher-lies",
		Doc: "With moorage-attacher, the driver says that it has attached a volume, and has not: its list shows it, and it is asked again. " +
			"It says that it has detached one, and has not: that is told on the PersistentVolume, by nobody undone, and over once the volume is attached and detached again.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Exclusive: true,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.MoorageAttacher, shape.ListVolumes = true, true
		},
		Run: tell(func(s *story) {
			const node = "worker-1"
			s.placed("data", node)
			handle := s.handle("data")
			s.lie(diskapi.ControllerPublish, handle)
			s.manualTicket("keep", node, "data")
			s.attachedAt("data", node)
			s.lied(diskapi.ControllerPublish, handle)
			s.until("the volume is where the driver said it was", func() error { return s.onDisk(handle, node, true) })
			s.say("the driver said that it had attached the volume, its own list did not; asked again, it did")
			s.lie(diskapi.ControllerUnpublish, handle)
			s.removeTicket("keep")
			s.lied(diskapi.ControllerUnpublish, handle)
			s.toldStray(diskapi.NodeID(node))
			s.must(s.onDisk(handle, node, true))
			s.say("the driver said that it had detached the volume, and had not: the PersistentVolume says so")
			s.manualTicket("keep-again", node, "data")
			s.attachedAt("data", node)
			s.removeTicket("keep-again")
			s.until("the volume is detached", func() error { return s.onDisk(handle, node, false) })
			s.toldStray("")
		}),
	}
}

func (s *story) lie(call diskapi.Call, handle string) {
	s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{call}, Volume: handle, Action: diskapi.Ignore, Times: 1})
}

func (s *story) lied(call diskapi.Call, handle string) {
	s.until("the driver has lied", func() error {
		entries := s.View.Calls(diskapi.Filter{Call: call, Volume: handle, Phase: diskapi.Returned, Outcome: diskapi.OK})
		if !slices.ContainsFunc(entries, func(e diskapi.Entry) bool { return e.FaultID != "" }) {
			return fmt.Errorf("it has answered %d times, in earnest", len(entries))
		}
		return nil
	})
}

func (s *story) onDisk(handle, node string, want bool) error {
	disks, err := s.Disk.Disks(s.ctx)
	if err != nil {
		return err
	}
	for _, d := range disks {
		if d.Volume != handle {
			continue
		}
		here := slices.ContainsFunc(d.Attached, func(a diskapi.Attachment) bool { return a.Node == diskapi.NodeID(node) })
		if here != want {
			return fmt.Errorf("that disk %s is at %s: %t", handle, node, here)
		}
		return nil
	}
	return fmt.Errorf("there is no disk %s", handle)
}

func (s *story) toldStray(nodes string) {
	s.until("the PersistentVolume says where its volume is without an attachment: "+nodes, func() error {
		claim := s.View.Claim(s.Namespace, "data")
		if claim == nil {
			return fmt.Errorf("its claim is gone")
		}
		pv := s.View.Volume(claim.Spec.VolumeName)
		if pv == nil || pv.Annotations[v1alpha1.AnnotationStrays] != nodes {
			return fmt.Errorf("it has %v", pv.GetAnnotations())
		}
		return nil
	})
}
