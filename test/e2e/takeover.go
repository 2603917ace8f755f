// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// takeOverNode is the node at which a scheduler dies with reservations.
const takeOverNode = "worker-1"

// takeOver is a change of the scheduler that leads: it dies with nodes reserved
// for pods that it has not bound, and is not started again before another one
// leads, which has stood by. Meanwhile the node is cordoned, so that the new one
// can't place the pods there: it must withdraw what the dead one had reserved.
type takeOver struct {
	*crashes
	leads, next  string   // replicas of the scheduler
	pods, claims []string // each pod's claim has its index
}

// takeOvers kills the scheduler that leads with pods waiting in Permit, and
// between Permit and Bind.
func (c *crashes) takeOvers() {
	next, err := c.Cluster.StandBy()
	c.must(err)
	t := &takeOver{crashes: c, leads: sandbox.MoorageScheduler, next: next}
	t.until("all who run have given their tickets back", t.none)
	t.inPermit()
	t.beforeBind()
}

// inPermit has pods wait for grants that nobody gives.
func (t *takeOver) inPermit() {
	t.must(t.Cluster.Kill(t.ctx, sandbox.MoorageController))
	t.kills++
	t.come("permit")
	t.until("the pods wait in Permit", t.each(func(ticket *v1alpha1.VolumeTicket) error {
		if meta.IsStatusConditionTrue(ticket.Status.Conditions, v1alpha1.TicketGranted) {
			return sandbox.Never("ticket %s is granted, and nobody is there to do it", ticket.Name)
		}
		return nil
	}))
	t.die("waited in Permit", func() { t.must(t.Cluster.StartAgain(sandbox.MoorageController)) })
}

// beforeBind has pods that are granted wait for their volumes, the making of which
// hangs.
func (t *takeOver) beforeBind() {
	mend := t.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.CreateVolume}, Action: diskapi.Hang})
	t.come("bind")
	t.until("the pods are granted and not bound", t.each(func(ticket *v1alpha1.VolumeTicket) error {
		if !meta.IsStatusConditionTrue(ticket.Status.Conditions, v1alpha1.TicketGranted) {
			return fmt.Errorf("ticket %s is not granted", ticket.Name)
		}
		return nil
	}))
	t.die("were granted and not bound", mend)
}

// come creates pods, each with a claim that is not bound.
func (t *takeOver) come(name string) {
	t.pods, t.claims = nil, nil
	for i := range 4 {
		pod, claim := fmt.Sprintf("%s-%d", name, i+1), fmt.Sprintf("taken-%s-%d", name, i+1)
		t.claim(claim)
		t.podAt(takeOverNode, pod, claim)
		t.pods, t.claims = append(t.pods, pod), append(t.claims, claim)
	}
}

// each checks the tickets of all pods, none of which is bound.
func (t *takeOver) each(check func(ticket *v1alpha1.VolumeTicket) error) func() error {
	return func() error {
		for _, name := range t.pods {
			pod := t.View.Pod(t.Namespace, name)
			switch {
			case pod == nil:
				return fmt.Errorf("pod %s is not seen yet", name)
			case pod.Spec.NodeName != "":
				return sandbox.Never("pod %s is bound to %s", name, pod.Spec.NodeName)
			}
			ticket, err := t.seenTicket(string(pod.UID))
			if err == nil {
				err = check(ticket)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// die kills the scheduler that leads and waits for the other one to lead, and to
// withdraw the tickets. Then what has kept the pods from being bound ends, and
// they run.
func (t *takeOver) die(when string, goOn func()) {
	before := t.leader()
	t.must(t.Cluster.Kill(t.ctx, t.leads))
	t.kills++
	t.cordon(takeOverNode)
	t.until("the scheduler that stood by leads", func() error {
		if now := t.leader(); now == "" || now == before {
			return fmt.Errorf("%q does", now)
		}
		return nil
	})
	t.until("it withdraws what the dead one had reserved", t.none)
	goOn()
	t.uncordon(takeOverNode)
	t.must(t.Cluster.StartAgain(t.leads))
	t.allRun("the pods run", t.pods...)
	t.say("%s was killed when pods %s: %s took over, withdrew their tickets and bound them", t.leads, when, t.next)
	t.leave()
	t.leads, t.next = t.next, t.leads
}

// leave deletes the pods, and waits until their volumes are nowhere.
func (t *takeOver) leave() {
	for _, pod := range t.pods {
		t.remove(pod)
	}
	t.until("the pods are gone, and their volumes detached", func() error {
		for i, pod := range t.pods {
			if err := t.PodGone(pod); err != nil {
				return err
			}
			if t.attachment(t.claims[i], takeOverNode) != nil {
				return fmt.Errorf("the volume of %s is attached", t.claims[i])
			}
		}
		return nil
	})
}

// none returns nil when there is no ticket.
func (t *takeOver) none() error {
	if left := t.View.Tickets(t.Namespace); len(left) > 0 {
		return fmt.Errorf("%d tickets are left, the first for %s", len(left), left[0].GetName())
	}
	return nil
}

// leader says who holds the scheduler's Lease.
func (t *takeOver) leader() string {
	lease, err := t.Client.CoordinationV1().Leases(sandbox.MoorageNamespace).Get(t.ctx, sandbox.MoorageScheduler, metav1.GetOptions{})
	t.must(err)
	if lease.Spec.HolderIdentity == nil {
		t.must(errors.New("nobody holds the scheduler's Lease"))
	}
	return *lease.Spec.HolderIdentity
}
