// SPDX-License-Identifier: Apache-2.0

package main

// attached lists the guards of the scenarios with moorage-attacher: without an
// unpublish, a volume stays where nobody knows of it any more.
func attached() []guard {
	released := []edit{{
		File: "controller/attacher/decide/detach.go",
		Old:  "if r.proved && r.sight != there || r.mayStay() && p.stays(r) {",
		New:  "if true {",
	}}
	rule := "I1, I9: the attacher's finalizer goes only after an unpublish that has succeeded"
	return []guard{
		{Scenario: "attacher-path", Rule: rule, Edits: released, Expect: []string{"every stage of the path was seen"}},
		{Scenario: "attacher-handover", Rule: rule, Edits: released, Expect: []string{"the detach from"}},
		{Scenario: "attacher-handover-failing", Rule: rule, Edits: released, Expect: []string{"the detach", "two-nodes"}},
		{Scenario: "readd-stays", Rule: "the attacher is told that the volume is wanted where it is", Edits: []edit{{
			File: "internal/rules/planstay.go",
			Old:  "if !p.StayAttached || p.Cooperative || !p.exclusive || place == nil || !p.living(place) {",
			New:  "if true {",
		}}, Expect: []string{"pod db runs"}},
		{
			Scenario: "attacher-faults", Rule: "I9: an attach that has failed is no attach",
			Edits: []edit{{
				File: "controller/attacher/decide/done.go",
				Old:  "func (b *Book) published(r *record, s Step, result Result, now time.Time) {\n\tr.secret = false\n\tif !result.Failed.IsZero() {",
				New:  "func (b *Book) published(r *record, s Step, result Result, now time.Time) {\n\tr.secret = false\n\tif false {",
			}},
			Expect: []string{"every pod runs", "stage-before-publish"},
		},
		{
			Scenario: "attacher-reason", Rule: "I7: who waits is told what the driver says",
			Edits: []edit{{
				File: "controller/attacher/objects/reason.go",
				Old:  "r.Code = s.Code()",
				New:  "r.Code, _ = 0, s.Code()",
			}},
			Expect: []string{"the VolumeAttachment has the driver's words and code"},
		},
		{
			Scenario: "attacher-reason", Rule: "I7: who looks the volume up is told, too",
			Edits:  []edit{{File: "internal/rules/planhold.go", Old: "\tp.refused(was, &h)\n", New: ""}},
			Expect: []string{"the hold has the driver's words"},
		},
		{
			Scenario: "attacher-lies", Rule: "I9: what the driver says is compared with what it lists",
			Edits: []edit{{
				File: "controller/attacher/decide/attach.go",
				Old:  "if r.evidence == Published && r.sight != missing {",
				New:  "if r.evidence == Published {",
			}},
			Expect: []string{"the volume is where the driver said it was"},
		},
		{
			Scenario: "migration", Rule: "I1: a live migration's exception ends with its source",
			Edits: []edit{{
				File: "controller/attacher/decide/exclusive.go",
				Old:  "!source.Created.After(r.Created) && source.Transitions <= r.Transitions",
				New:  "true",
			}},
			Expect: []string{"it is attached", "two-nodes"},
		},
		{
			Scenario: "migration-fails", Rule: "a LiveMigration ticket has its volume at a second node, and no other type has",
			Edits: []edit{{
				File: "internal/ledger/tickettype.go",
				Old:  "{TypeLiveMigration, 800, keeps, second,",
				New:  "{TypeLiveMigration, 800, keeps, alone,",
			}},
			Expect: []string{"ticket rolled-back is satisfied"},
		},
		{Scenario: "swap", Rule: rule, Edits: released, Expect: []string{"an attach and a detach are under way", "the pods run"}},
	}
}
