// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// bindAtOnce guards I1, I2 and I8 where the controller binds pods without tickets: what it
// has sent may arrive late, and whoever asks may be gone before the answer.
func bindAtOnce() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "bind-at-once",
		Doc: "The controller binds pods whose volumes nobody contends for, without tickets. It is killed with 50 binds under way, which arrive late; " +
			"the scheduler is killed before it is answered; the controller is stopped for longer than its lease, and goes on; the two can't reach each other: pods run by their tickets. No violation.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Timeout: 10 * time.Minute,
		Takes:   2 * time.Minute,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.Slots, shape.BindAtOnce = 60, true
		},
		Run: tell(func(s *story) {
			b := &bindsAtOnce{story: s}
			b.plain()
			b.controllerKilled()
			b.schedulerKilled()
			b.controllerStopped()
			b.cutOff()
			for _, name := range b.pods {
				s.remove(name)
			}
			s.until("all pods are gone", func() error { return each(b.pods, s.PodGone) })
		}),
	}
}

// bindsAtOnce makes pods whose volumes are there beforehand.
type bindsAtOnce struct {
	*story
	pods []string
}

// each checks names until one fails.
func each(names []string, check func(string) error) error {
	for _, name := range names {
		if err := check(name); err != nil {
			return err
		}
	}
	return nil
}

// claims creates claims for the pods that come next, and waits until they are bound.
func (b *bindsAtOnce) claims(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("p%03d", len(b.pods)+i+1))
		claim := sandbox.Claim(names[i], corev1.ReadWriteOnce)
		claim.Spec.StorageClassName = new("disk-immediate")
		b.must(b.CreateClaim(b.ctx, claim))
	}
	b.until("the claims are bound", func() error {
		return each(names, func(name string) error {
			if claim := b.View.Claim(b.Namespace, name); claim == nil || claim.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("%s is not", name)
			}
			return nil
		})
	})
	b.pods = append(b.pods, names...)
	return names
}

// come creates the pods of claims.
func (b *bindsAtOnce) come(names []string) {
	for _, name := range names {
		b.pod(name, name)
	}
}

// bound is how many pods the controller has bound, and tickets how many tickets the
// scheduler has written.
func (b *bindsAtOnce) bound() int   { return len(b.requests(controllerUser, "pods/binding", "create")) }
func (b *bindsAtOnce) tickets() int { return len(b.requests(schedulerUser, "volumetickets", "create")) }

// plain: nobody writes a ticket.
func (b *bindsAtOnce) plain() {
	names := b.claims(10)
	b.come(names)
	b.allRun("the pods run", names...)
	asked{10, controllerUser, "pods/binding", []string{"create"}}.were(b.story)
	b.expect(b.tickets() == 0, "no ticket was written", "there were %d", b.tickets())
	b.say("10 pods run, all bound by the controller, without a ticket")
}

// ticketSeen waits until the scheduler has given up waiting for an answer, and has written a
// ticket.
func (b *bindsAtOnce) ticketSeen(before int) {
	b.until("a pod without an answer has a ticket", func() error {
		if b.tickets() == before {
			return errors.New("none has")
		}
		return nil
	})
}

// controllerKilled kills the controller with its binds on their way, which arrive when its
// connection is whole again.
func (b *bindsAtOnce) controllerKilled() {
	names, before := b.claims(50), b.tickets()
	b.must(b.Cluster.Cut(sandbox.MoorageController))
	b.come(names)
	b.ticketSeen(before)
	b.must(b.Cluster.Kill(b.ctx, sandbox.MoorageController))
	b.must(b.Cluster.Restore(sandbox.MoorageController))
	b.must(b.Cluster.StartAgain(sandbox.MoorageController))
	b.allRun("all 50 pods run", names...)
	b.say("the controller was killed with the binds of 50 pods under way: all run, %d of them by a ticket", b.tickets()-before)
}

// schedulerKilled kills the scheduler that waits for answers.
func (b *bindsAtOnce) schedulerKilled() {
	names, before := b.claims(20), b.tickets()
	b.must(b.Cluster.Pause(sandbox.MoorageController))
	b.come(names)
	b.ticketSeen(before)
	b.must(b.Cluster.Kill(b.ctx, sandbox.MoorageScheduler))
	b.must(b.Cluster.Resume(sandbox.MoorageController))
	b.must(b.Cluster.StartAgain(sandbox.MoorageScheduler))
	b.allRun("the pods run", names...)
	b.say("the scheduler was killed before it was answered: all 20 pods run")
}

// controllerStopped stops the controller for longer than its lease.
func (b *bindsAtOnce) controllerStopped() {
	names, before := b.claims(20), b.tickets()
	b.must(b.Cluster.Pause(sandbox.MoorageController))
	b.come(names)
	b.ticketSeen(before)
	b.until("its lease is over", func() error {
		lease, err := b.Client.CoordinationV1().Leases(sandbox.MoorageNamespace).Get(b.ctx, sandbox.MoorageController, metav1.GetOptions{})
		if err != nil {
			return err
		}
		end := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
		if left := time.Until(end); left > 0 {
			return fmt.Errorf("it lasts for %s", left)
		}
		return nil
	})
	b.must(b.Cluster.Resume(sandbox.MoorageController))
	b.allRun("the pods run", names...)
	b.say("the controller was stopped for longer than its lease: all 20 pods run")
}

// cutOff keeps the scheduler from the controller, and no other connection: tickets do what
// they do without all this. Once they reach each other again, pods are bound at once again.
func (b *bindsAtOnce) cutOff() {
	names, tickets, bound := b.claims(10), b.tickets(), b.bound()
	b.must(b.Cluster.CutBinds())
	b.come(names)
	b.allRun("the pods run", names...)
	b.until("all of them have had tickets", func() error {
		if n := b.tickets() - tickets; n < len(names) {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	b.expect(b.bound() == bound, "the controller has bound none of them", "it has bound %d", b.bound()-bound)
	b.Cluster.RestoreBinds()
	b.until("pods are bound at once again", func() error {
		again := b.claims(1)
		b.come(again)
		b.allRun("another pod runs", again...)
		if b.bound() == bound {
			return errors.New("it had a ticket")
		}
		return nil
	})
	b.say("without a connection between the two 10 pods ran by their tickets; then they were bound at once again")
}
