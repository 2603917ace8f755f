// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operationsMany() sandbox.Scenario {
	const volumes, used, slots = 20, 10, 12
	return sandbox.Scenario{
		Name: "operations-many",
		Doc: "A CronJob takes a snapshot of each of 20 volumes, by a driver that makes them only while the volume is attached; 10 are in use at nodes with 12 slots in all. Its program asks for a ticket for each, owned by the Job, as its pod's service account. " +
			"The first Job's program hangs with all slots taken until its deadline: its tickets end with it, and nothing stays attached. Another one, by hand, and one that the schedule makes get all of their snapshots, though the last one's program forgets a ticket, which ends with the Job. " +
			"No slot is taken twice, and pods lose nothing.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: func(shape *sandbox.Shape) {
			operating(shape)
			shape.Operations.AttachFor, shape.Operations.CopyLatency = "snapshot", 500*time.Millisecond
		},
		Takes:   75 * time.Second,
		Timeout: 6 * time.Minute,
		Run: tell(func(s *story) {
			var idle, busy []string
			for i := range volumes {
				name := fmt.Sprintf("v%d", i)
				s.boundClaimLater(name)
				if i < used {
					s.pod(name, name)
					busy = append(busy, name)
				} else {
					idle = append(idle, name)
				}
			}
			r := s.recurringSnapshots("nightly", append(slices.Clone(busy), idle...))
			s.allRun("the pods with the volumes in use run", busy...)
			for _, claim := range idle {
				s.bound(claim)
			}
			before := map[string]int{}
			for _, claim := range busy {
				before[claim] = s.published(s.handle(claim))
			}
			r.hangs("nightly-hangs", slots-used, idle)
			r.starts(r.byHand("nightly-by-hand"), round{}).isOver()
			s.say("a Job made by hand is over")
			last := r.starts(r.bySchedule(), round{forgets: idle[0]})
			last.isOver()
			s.noTicket(last.made(idle[0]))
			s.say("the Job %s of the schedule is over, and with it the ticket that it has left", last.job)
			r.ends()
			for _, claim := range busy {
				s.expect(s.published(s.handle(claim)) == before[claim], "the volume of "+claim+" stays where it is", "it was attached again")
			}
			for _, claim := range idle {
				s.leavesEveryNode(claim)
			}
			torn := s.View.Calls(diskapi.Filter{Call: diskapi.WorkTorn})
			s.expect(len(torn) == 0, "nothing was torn", "there is %v", torn)
			s.expect(len(s.View.Tickets(s.Namespace)) == 0, "no ticket is left", "there are %d", len(s.View.Tickets(s.Namespace)))
		}),
	}
}

func (r *recurring) hangs(name string, free int, idle []string) {
	job := r.starts(r.byHand(name), round{hangs: true})
	r.until("the volumes have all slots, and the other tickets wait for one", func() error {
		have, waits := 0, 0
		var others []string
		for _, claim := range idle {
			t, err := r.seenTicket(job.made(claim))
			switch {
			case err != nil:
				return err
			case t.Status.State == v1alpha1.ReasonSatisfied:
				have++
			case r.ticketTells(t.Name, "NoFreeSlot") == nil:
				waits++
			default:
				others = append(others, t.Name+": "+t.Status.State)
			}
		}
		if have != free || waits != len(idle)-have {
			return fmt.Errorf("%d of the unused volumes are attached, and %d wait; %s", have, waits, strings.Join(others, ", "))
		}
		return nil
	})
	r.isDue(name)
	job.dies()
	for _, claim := range r.claims {
		r.noTicket(job.made(claim))
	}
	for _, claim := range idle {
		r.leavesEveryNode(claim)
	}
	r.say("the deadline of a Job that hung with all slots taken is over, and its tickets have ended with it")
}

func (s *story) boundClaimLater(name string) {
	claim := sandbox.Claim(name, "ReadWriteOnce")
	claim.Spec.StorageClassName = new("disk-immediate")
	s.must(s.CreateClaim(s.ctx, claim))
}
