// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// backupMover guards that the workload interrupts a data mover without a pod, without a torn write.
func backupMover() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "backup-mover",
		Doc: "An agent without a pod, which uses api/ticket, stages a volume at a node through the driver and writes there. A pod elsewhere needs the volume: the agent is asked, unstages it and lets go, and the pod runs. " +
			"When the pod has gone the agent has the volume again, and finds what the pod wrote. It is killed with the volume staged: its next process has the same ticket, and takes the volume down. " +
			"One that does not renew loses the ticket when its time is over. A mover with a pod of its own runs beside the workload's at the same node.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.placed("data", here)
			handle := s.handle("data")
			mover := s.newMover("data")
			h := mover.acquires(time.Hour)
			first := h.Node()
			mover.begins(first)
			s.say("the agent writes at %s", first)
			s.podAt(s.otherThan(first, here, there), "db", "data")
			mover.asked()
			mover.ends(first)
			s.must(h.LetGo(s.ctx))
			db := s.runs("db")
			s.goesOn(handle, first, db.Spec.NodeName)
			s.say("it was asked, has let go, and db runs on %s", db.Spec.NodeName)
			s.remove("db")
			s.gone("db")
			h = mover.acquires(time.Hour)
			second, uid := h.Node(), h.Ticket().UID
			mover.begins(second)
			s.goesOn(handle, db.Spec.NodeName, second)
			h.Leave() // a killed process leaves its ticket and its staged volumes
			h = mover.acquires(time.Hour)
			s.expect(h.Ticket().UID == uid && h.Node() == second, "the next process has the same ticket", "it has %s at %s", h.Ticket().UID, h.Node())
			mover.ends(second)
			s.must(h.Release(s.ctx))
			s.noTicket("mover")
			s.say("killed with the volume staged at %s, the agent went on with its ticket, and took the volume down", second)
			h = mover.acquires(15 * time.Second)
			<-h.Context().Done()
			var lost *ticket.LostError
			s.expect(errors.As(context.Cause(h.Context()), &lost) && lost.Reason == ticket.ReasonEnded, "who does not renew loses the ticket", "it says %v", context.Cause(h.Context()))
			s.toldOfEnd("VolumeTicket", "mover", "TimeOver")
			s.podAt(here, "db2", "data")
			s.runs("db2")
			s.ticketOfType("beside", v1alpha1.TicketBackup, "", "data")
			s.satisfied("beside")
			s.chosen("beside", here)
			s.podAt(here, "copies", "data")
			s.runs("copies")
			s.must(s.Running("db2"))
			s.remove("copies")
			s.gone("copies")
			s.removeTicket("beside")
			s.must(s.Running("db2"))
			s.say("a mover with a pod of its own ran beside db2 at %s, where its ticket had found the volume", here)
		}),
	}
}

// mover stages a volume through the driver's own socket, as an agent on the machine does.
type mover struct {
	s       *story
	claim   string
	tickets *ticket.Client
	told    chan string
}

func (s *story) newMover(claim string) *mover {
	tickets, err := ticket.New(s.own(), "mover.example.com")
	s.must(err)
	return &mover{s, claim, tickets, make(chan string, 10)}
}

func (m *mover) acquires(ttl time.Duration) *ticket.Handle {
	ctx, cancel := context.WithTimeout(m.s.ctx, sandbox.Patience)
	defer cancel()
	h, err := m.tickets.Acquire(ctx, ticket.Request{
		Namespace: m.s.Namespace, Name: "mover", Type: v1alpha1.TicketBackup, Claims: []string{m.claim}, TTL: ttl,
		OnYield: func(message string) { m.told <- message },
	})
	if err != nil {
		m.s.must(fmt.Errorf("the mover's ticket: %w", err))
	}
	return h
}

func (m *mover) asked() {
	select {
	case <-m.told:
	case <-time.After(sandbox.Patience):
		m.s.expect(false, "the mover is asked to let go", "nobody has asked it")
	}
}

func (m *mover) begins(node string) {
	s := m.s
	handle, attached := s.handle(m.claim), s.attachedAt(m.claim, node)
	before := len(s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node))
	able := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	m.calls(node, func(ctx context.Context, n csi.NodeClient, staging, target string) error {
		if _, err := n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: handle, StagingTargetPath: staging, VolumeCapability: able, PublishContext: attached.Status.AttachmentMetadata,
		}); err != nil {
			return err
		}
		_, err := n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: handle, StagingTargetPath: staging, TargetPath: target, VolumeCapability: able, PublishContext: attached.Status.AttachmentMetadata,
		})
		return err
	})
	s.until("the mover writes at "+node, func() error {
		if len(s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node)) == before {
			return errors.New("it does not")
		}
		return nil
	})
}

func (m *mover) ends(node string) {
	handle := m.s.handle(m.claim)
	m.calls(node, func(ctx context.Context, n csi.NodeClient, staging, target string) error {
		if _, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: target}); err != nil {
			return err
		}
		_, err := n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: staging})
		return err
	})
}

func (m *mover) calls(node string, do func(ctx context.Context, n csi.NodeClient, staging, target string) error) {
	root := m.s.Cluster.KubeletFolder(node)
	conn, err := grpc.NewClient("unix://"+filepath.Join(root, "plugins", sandbox.DriverName, "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	m.s.must(err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(m.s.ctx, sandbox.Patience)
	defer cancel()
	folder := filepath.Join(root, "mover")
	if err := do(ctx, csi.NewNodeClient(conn), filepath.Join(folder, "globalmount"), filepath.Join(folder, "mount")); err != nil {
		m.s.must(fmt.Errorf("the driver at %s: %w", node, err))
	}
}

func (s *story) otherThan(node string, others ...string) string {
	for _, o := range others {
		if o != node {
			return o
		}
	}
	return node
}
