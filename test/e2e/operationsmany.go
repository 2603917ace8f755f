// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// operationsMany guards that snapshots of many volumes take the slots that are free, and no more.
func operationsMany() sandbox.Scenario {
	const volumes, used = 20, 10
	return sandbox.Scenario{
		Name: "operations-many",
		Doc: "The driver makes snapshots only while the volume is attached. Of 20 volumes, 10 in use at nodes with 12 slots in all, snapshots are asked for twice, as somebody does every night, and a ticket for each volume that nobody uses: " +
			"all become ready, the tickets wait their turn, no slot is taken twice, pods lose nothing, and nothing is left attached.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) {
			operating(shape)
			shape.Operations.AttachFor, shape.Operations.CopyLatency = "snapshot", 500*time.Millisecond
		},
		Takes:   90 * time.Second,
		Timeout: 8 * time.Minute,
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
			s.allRun("the pods with the volumes in use run", busy...)
			for _, claim := range idle {
				s.bound(claim)
			}
			before := map[string]int{}
			for _, claim := range busy {
				before[claim] = s.published(s.handle(claim))
			}
			for night := range 2 {
				s.nightly(fmt.Sprintf("night-%d-", night), idle, busy)
				s.say("night %d is over", night+1)
			}
			for _, claim := range busy {
				s.expect(s.published(s.handle(claim)) == before[claim], "the volume of "+claim+" stays where it is", "it was attached again")
			}
			for _, claim := range idle {
				s.leavesEveryNode(claim)
			}
			torn := s.View.Calls(diskapi.Filter{Call: diskapi.WorkTorn})
			s.expect(len(torn) == 0, "nothing was torn", "there is %v", torn)
		}),
	}
}

// boundClaimLater creates a claim whose volume is made at once, and does not wait for it.
func (s *story) boundClaimLater(name string) {
	claim := sandbox.Claim(name, "ReadWriteOnce")
	claim.Spec.StorageClassName = new("disk-immediate")
	s.must(s.CreateClaim(s.ctx, claim))
}

// nightly takes a snapshot of each claim's volume, with a ticket for each that nobody uses.
func (s *story) nightly(prefix string, idle, busy []string) {
	for _, claim := range busy {
		s.snapshotOf(prefix+claim, claim)
	}
	for _, claim := range idle {
		s.snapshotOf(prefix+claim, claim)
		s.ticketOfType(prefix+claim, v1alpha1.TicketSnapshot, "", claim)
	}
	open := map[string]bool{}
	for _, claim := range idle {
		open[claim] = true
	}
	s.until("every snapshot of the night is ready", func() error {
		for claim := range open {
			if ready(s.View.Snapshot(s.Namespace, prefix+claim)) == nil {
				s.removeTicket(prefix + claim)
				delete(open, claim)
			}
		}
		for _, claim := range busy {
			if err := ready(s.View.Snapshot(s.Namespace, prefix+claim)); err != nil {
				return fmt.Errorf("that of %s is not: %w", claim, err)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("%d of volumes that nobody uses are not", len(open))
		}
		return nil
	})
}
