// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const shareNodes = 10

func shareManager() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "share-manager",
		Doc: "The server of a share has its disk by a ShareManager ticket, at a node that Moorage chooses; pods at ten nodes mount the share by a driver with attachRequired: false, and take neither a slot nor an attachment. " +
			"The driver mounts only while the ticket is satisfied. The server's node dies: a pod that comes then has a node, and volumes that are safe to mount as far as Moorage can say, and its mount waits; out of service, the ticket has the disk at another node, and the pod runs. " +
			"A cordon of that node moves the server again. The pods at the other nodes run on.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: func(shape *sandbox.Shape) {
			failingNodes(shape)
			shape.Nodes = shareNodes
		},
		Takes: 45 * time.Second,
		Run: tell(func(s *story) {
			s.placed("disk", "worker-1")
			d := s.shareDriver()
			m := s.shareServer(d)
			defer m.end()
			h := m.acquires()
			first := h.Node()
			removeShare := s.share("files")
			attached := len(s.View.Attachments())
			users := s.shareUsers()
			s.expect(len(s.View.Attachments()) == attached && len(s.View.Tickets(s.Namespace)) == 1, "they take neither a ticket nor an attachment", "%d attachments, %d tickets", len(s.View.Attachments())-attached, len(s.View.Tickets(s.Namespace)))
			s.say("the server is at %s; pods at %d nodes use the share, and no slot", first, len(users))
			h = m.outlives(h)
			h = m.makesRoom(h)
			for _, before := range users {
				if before.Spec.NodeName != first {
					s.stays(before)
				}
			}
			s.must(h.Release(s.ctx))
			users["late"] = nil
			for name := range users {
				s.must(ifThere(s.DeletePod(s.ctx, name))) // the taint has ended the pod at the dead node
			}
			for name := range users {
				s.gone(name) // its kubelet has taken the mount away
			}
			removeShare()
			d.end()
		}),
	}
}

func (m *shareServer) outlives(h *ticket.Handle) *ticket.Handle {
	dead := h.Node()
	m.driver.ends(dead)
	m.must(m.Cluster.PowerOff(m.ctx, dead))
	m.driver.servedAt("")
	m.nodeIs(dead, false)
	m.podAt(m.otherNode(dead), "late", "files")
	m.mountsNothing(m.driver, "late")
	m.say("%s is dead, and the share without a server: a pod that is late waits for its mount", dead)
	m.taint(dead, outOfService())
	m.loses(h)
	h = m.acquires()
	m.atOneNode("disk", h.Node())
	m.runs("late")
	m.say("%s is out of service: the server has its disk at %s, and the late pod runs", dead, h.Node())
	m.must(m.Cluster.PowerOn(m.ctx, dead))
	m.driver.begins(dead)
	m.nodeIs(dead, true)
	m.untaint(dead, outOfService())
	return h
}

func (m *shareServer) makesRoom(h *ticket.Handle) *ticket.Handle {
	cordoned := h.Node()
	m.cordon(cordoned)
	m.isAsked()
	m.driver.servedAt("")
	m.must(h.LetGo(m.ctx))
	h = m.acquires()
	m.expect(h.Node() != cordoned, "the server is at another node", "it is at %s", h.Node())
	m.atOneNode("disk", h.Node())
	m.uncordon(cordoned)
	m.say("%s is cordoned: the server has let go of its disk, and has it at %s", cordoned, h.Node())
	return h
}

func (s *story) shareUsers() map[string]*corev1.Pod {
	users := map[string]*corev1.Pod{}
	for i := range shareNodes {
		name, node := fmt.Sprintf("user-%d", i+1), sandbox.NodeName(i+1)
		s.podAt(node, name, "files")
		users[name] = nil
	}
	for name := range users {
		users[name] = s.runs(name)
		s.until(name+" is told that its volume needs no attachment", func() error { return needsNone(s.View.Pod(s.Namespace, name)) })
	}
	return users
}

func (s *story) atOneNode(claim, node string) {
	s.until("the volume of "+claim+" is attached at "+node+" alone", func() error {
		for _, n := range s.View.Nodes() {
			if is := s.attachment(claim, n.Name) != nil; is != (n.Name == node) {
				return fmt.Errorf("attached at %s: %t", n.Name, is)
			}
		}
		return nil
	})
}

func needsNone(pod *corev1.Pod) error {
	status, err := volumeStatus(pod)
	if err == nil && (!status.SafeToMount || status.Node != "") {
		err = fmt.Errorf("the volume status is %+v", status)
	}
	return err
}

func (s *story) mountsNothing(d *shares, pod string) {
	s.until("the driver does not mount the share for "+pod, func() error {
		if d.refusals() == 0 {
			return errors.New("it was not asked to")
		}
		return needsNone(s.View.Pod(s.Namespace, pod))
	})
	s.expect(s.Running(pod) != nil, pod+" does not run", "it does")
}

type shareServer struct {
	*story
	driver  *shares
	tickets *ticket.Client
	request ticket.Request
	asked   chan string
	end     func()
}

func (s *story) shareServer(d *shares) *shareServer {
	s.account("share-manager", nil, "moorage-view")
	m := &shareServer{story: s, driver: d, asked: make(chan string, 10), end: s.everywhere("share-manager", "moorage-tickets-all")}
	api, err := client.NewForConfig(s.as("share-manager", nil))
	s.must(err)
	m.tickets, err = ticket.New(api, "share.example.com")
	s.must(err)
	m.request = ticket.Request{
		Namespace: s.Namespace, Name: "server", Type: v1alpha1.TicketShareManager, Claims: []string{"disk"},
		OnDrain: v1alpha1.OnDrainMove, Owner: &s.work("share")[0],
		OnYield: func(message string) { m.asked <- message },
	}
	return m
}

func (m *shareServer) acquires() *ticket.Handle {
	ctx, cancel := context.WithTimeout(m.ctx, sandbox.Patience)
	defer cancel()
	h, err := m.tickets.Acquire(ctx, m.request)
	if err != nil {
		m.expect(false, "ticket server has the disk", "%v", err)
	}
	m.driver.servedAt(h.Node())
	return h
}

func (m *shareServer) loses(h *ticket.Handle) {
	m.until("ticket server has left "+h.Node(), func() error { return stillAcquired(h) })
	var lost *ticket.LostError
	m.expect(errors.As(context.Cause(h.Context()), &lost), "the server is told that it has lost its disk", "it says %v", context.Cause(h.Context()))
}

func stillAcquired(h *ticket.Handle) error {
	if h.Context().Err() == nil {
		return errors.New("it has them still")
	}
	return nil
}

func (m *shareServer) isAsked() {
	m.until("the server is asked to let go", func() error {
		select {
		case <-m.asked:
			return nil
		default:
			return errors.New("it is not")
		}
	})
}
