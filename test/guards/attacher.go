// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/moorage-dev/moorage/test/internal/breaks"

// Without an unpublish, a volume stays where nobody knows of it any more.
func attached() []guard {
	released := []breaks.Break{"controller/attacher/decide pass.detach: if r.Stamped || r.Kept { return p.finish(r) }"}
	rule := "I1, I9: the attacher's finalizer goes only after an unpublish that has succeeded"
	return []guard{
		{Scenario: "attacher-path", Rule: rule, Breaks: released, Expect: []string{"every stage of the path was seen"}},
		{Scenario: "attacher-handover", Rule: rule, Breaks: released, Expect: []string{"the detach from"}},
		{Scenario: "attacher-handover-failing", Rule: rule, Breaks: released, Expect: []string{"the detach", "two-nodes"}},
		{Scenario: "readd-stays", Rule: "the attacher is told that the volume is wanted where it is", Breaks: []breaks.Break{"internal/rules holdPlan.asksToStay: return false"}, Expect: []string{"pod db runs"}},
		{
			Scenario: "attacher-faults", Rule: "I9: an attach that has failed is no attach",
			Breaks: []breaks.Break{"controller/attacher/decide Tracker.published: result.Failed = Reason{}"},
			Expect: []string{"every pod runs", "stage-before-publish"},
		},
		{
			Scenario: "attacher-reason", Rule: "I7: who waits is told what the driver says",
			Breaks: []breaks.Break{"controller/attacher/objects Reason: if err != nil { return decide.Reason{Message: shortened(err.Error())} }"},
			Expect: []string{"the VolumeAttachment has the driver's words and code"},
		},
		{
			Scenario: "attacher-reason", Rule: "I7: who looks the volume up is told, too",
			Breaks: []breaks.Break{"internal/rules holdPlan.refused: return"},
			Expect: []string{"the hold has the driver's words"},
		},
		{
			Scenario: "attacher-lies", Rule: "I9: what the driver says is compared with what it lists",
			Breaks: []breaks.Break{"controller/attacher/decide pass.attach: if r.evidence == Published { return p.confirm(r) }"},
			Expect: []string{"the volume is where the driver said it was"},
		},
		{
			Scenario: "migration", Rule: "I1: a live migration's exception ends with its source",
			Breaks: []breaks.Break{"controller/attacher/decide record.joins: return r.Beside == source.Node"},
			Expect: []string{"it is attached", "two-nodes"},
		},
		{
			Scenario: "migration-fails", Rule: "a LiveMigration ticket has its volume at a second node, and no other type has",
			Breaks: []breaks.Break{"internal/ledger TicketType.SharesVolume: return false"},
			Expect: []string{"ticket rolled-back is satisfied"},
		},
		{Scenario: "swap", Rule: rule, Breaks: released, Expect: []string{"an attach and a detach are under way", "the pods run"}},
	}
}
