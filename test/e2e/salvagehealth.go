// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func salvageHealth() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "salvage-health",
		Doc: "The driver says of a volume that a pod uses that data is lost (ControllerListVolumeHealth, which CSI 1.13 has in place of VolumeCondition). An integrator with rights of its own asks it, takes a Salvage ticket with detached: true, and ends the pod, whose successor is told what it waits for; the disk is at no machine. " +
			"The integrator dies before the repair: its ticket ends with its time, and the pod has the broken volume again. Its next process begins anew, repairs the volume and ends its ticket, and the pod runs with what was on the disk.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.VolumeHealth = true
		},
		Takes: 30 * time.Second,
		Run: tell(func(s *story) {
			s.statefulSet("db")
			s.runs("db-0")
			claim := dataOf("db-0")
			handle := s.handle(claim)
			s.well(claim)
			s.must(s.Disk.SetHealth(s.ctx, handle, diskapi.Health{Status: diskapi.DataLoss, Reason: "ReplicaFaulted", Message: "the last replica has a bad block"}))
			first := s.salvager("first")
			defer first.end()
			s.expect(first.finds() == claim, "the integrator finds the claim of the broken volume", "it finds another one")
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle, Action: diskapi.Delay, DelayMs: 2000})
			h := first.takes(claim, 20*time.Second)
			s.must(s.atNoMachine(handle))
			mend()
			s.waitsForSalvage("db-0")
			h.Leave() // the process is killed
			s.say("the volume is at no node, its pod waits, and the integrator dies")
			s.noTicket("salvage")
			s.toldOfEnd("VolumeTicket", "salvage", "TimeOver")
			s.runs("db-0")
			s.say("its ticket has ended with its time, and db-0 has the broken volume again")
			second := s.salvager("second")
			defer second.end()
			s.expect(second.finds() == claim, "the next process finds the broken volume, too", "it finds another one")
			h = second.takes(claim, time.Hour)
			s.must(s.atNoMachine(handle))
			s.waitsForSalvage("db-0")
			tried := s.published(handle)
			s.must(s.Disk.SetHealth(s.ctx, handle))
			s.well(claim)
			s.must(s.atNoMachine(handle))
			s.expect(s.published(handle) == tried, "nobody attaches the volume while it is repaired", "%d attempts", s.published(handle)-tried)
			repaired := last(s.View.Calls(diskapi.Filter{Volume: handle})).Seq
			s.must(h.Release(s.ctx))
			after := s.runs("db-0")
			s.findsAll(handle, after.Spec.NodeName, repaired)
			s.say("it is repaired: db-0 runs on %s, and finds what it had written", after.Spec.NodeName)
		}),
	}
}

func (s *story) waitsForSalvage(pod string) {
	s.until(pod+" waits, and is told for whom", func() error {
		p := s.View.Pod(s.Namespace, pod)
		if p == nil {
			return errors.New("there is none yet")
		}
		return unscheduled(p, "to stay detached for ticket "+s.Namespace+"/salvage (Salvage)")
	})
}

// salvager asks the driver by the sidecars' socket. Its processes share a name, and have an account each.
type salvager struct {
	*story
	kube    kubernetes.Interface
	tickets *ticket.Client
	disk    csi.ControllerClient
	end     func()
}

func (s *story) salvager(account string) *salvager {
	s.account(account, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}}}, "moorage-view")
	i := &salvager{story: s, disk: s.driver(), end: s.everywhere(account, "moorage-tickets-all")}
	config := s.as(account, nil)
	api, err := client.NewForConfig(config)
	s.must(err)
	i.tickets, err = ticket.New(api, "salvager.example.com")
	s.must(err)
	i.kube, err = kubernetes.NewForConfig(config)
	s.must(err)
	return i
}

func (i *salvager) finds() (claim string) {
	i.until("the driver says that a volume is broken", func() error {
		answer, err := i.disk.ControllerListVolumeHealth(i.ctx, &csi.ControllerListVolumeHealthRequest{})
		if err != nil {
			return err
		}
		for _, broken := range answer.GetEntries() {
			for _, pv := range i.View.Volumes() {
				if pv.Spec.CSI.VolumeHandle == broken.GetVolumeId() && pv.Spec.ClaimRef.Namespace == i.Namespace {
					claim = pv.Spec.ClaimRef.Name
					return nil
				}
			}
		}
		return fmt.Errorf("it says %v", answer)
	})
	return claim
}

func (s *story) driver() csi.ControllerClient {
	conn, err := grpc.NewClient("unix://"+s.Cluster.CSISocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err)
	context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	return csi.NewControllerClient(conn)
}

func (s *story) well(claim string) {
	answer, err := s.driver().ControllerGetVolumeHealth(s.ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: s.handle(claim)})
	s.must(err)
	wrong := answer.GetVolumeHealth().GetHealthStatuses()
	s.expect(len(wrong) == 0, "the driver says that nothing is wrong with the volume of "+claim, "it says %v", wrong)
}

func (i *salvager) takes(claim string, ttl time.Duration) *ticket.Handle {
	ctx, cancel := context.WithTimeout(i.ctx, sandbox.Patience)
	defer cancel()
	waits, got := make(chan struct{}, 1), make(chan acquired, 1)
	request := ticket.Request{
		Namespace: i.Namespace, Name: "salvage", Type: v1alpha1.TicketSalvage, Detached: true, Claims: []string{claim}, TTL: ttl,
		OnWait: func(string, string) {
			select {
			case waits <- struct{}{}:
			default:
			}
		},
	}
	go func() {
		h, err := i.tickets.Acquire(ctx, request)
		got <- acquired{h, err}
	}()
	for {
		select {
		case <-waits:
			i.endsUsers(claim)
		case a := <-got:
			i.must(a.err)
			return a.handle
		}
	}
}

type acquired struct {
	handle *ticket.Handle
	err    error
}

func (i *salvager) endsUsers(claim string) {
	pods, err := i.kube.CoreV1().Pods(i.Namespace).List(i.ctx, metav1.ListOptions{})
	i.must(err)
	for _, p := range pods.Items {
		uses := func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}
		if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Spec.Volumes, uses) {
			continue
		}
		this := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}
		i.must(ifThere(i.kube.CoreV1().Pods(i.Namespace).Delete(i.ctx, p.Name, this)))
	}
}
