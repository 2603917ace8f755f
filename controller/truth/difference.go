// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Codes of differences, see docs/truth-check.md.
const (
	// AttachedTwice: an exclusive volume has attachments at two nodes.
	AttachedTwice = "AttachedTwice"
	// ReportedTooEarly: volumesAttached names a volume that was never attached.
	ReportedTooEarly = "ReportedTooEarly"
	// BooksDiffer: a node has not as many slots as volumes.
	BooksDiffer = "BooksDiffer"
	// StepOverdue: a step that would correct an attachment, report or hold is not done.
	StepOverdue = "StepOverdue"
	// TicketOverdue: a ticket is undecided, or has a lost grant.
	TicketOverdue = "TicketOverdue"
	// StatusDiffers: a pod's annotation calls an unsafe volume safe, or the reverse.
	StatusDiffers = "StatusDiffers"
	// OtherController: a foreign controller makes VolumeAttachments in Standalone mode.
	OtherController = "OtherController"
	// Unaccounted: moorage-attacher has told of a published volume without a VolumeAttachment.
	Unaccounted = "Unaccounted"
)

// Codes lists the codes.
func Codes() []string {
	return []string{AttachedTwice, ReportedTooEarly, BooksDiffer, StepOverdue, TicketOverdue, StatusDiffers, OtherController, Unaccounted}
}

// Difference is one fault.
type Difference struct {
	Code    string
	Message string
	Volume  ledger.VolumeID // for the stage's next check; zero: none
	Pod     string          // UID of the pod to write again
	Ticket  ledger.TicketID // the ticket to decide
	At      report.Object   // what the event is about
}

// key identifies differences from round to round.
func (d Difference) key() string {
	return fmt.Sprintf("%s %s %s %s %+v %s", d.Code, d.Volume, d.Pod, d.Ticket, d.At, d.Message)
}

// AtOnce lists a volume's faults that are wrong at any instant.
func AtOnce(a rules.Arbiter, s ledger.Snapshot, id ledger.VolumeID, now time.Time) []Difference {
	var list []Difference
	for _, v := range a.AuditVolume(s, id, now) {
		code := ReportedTooEarly
		if v.Invariant == "I1" {
			code = AttachedTwice
		}
		list = append(list, Difference{Code: code, Volume: id, Message: v.String(), At: report.OfVolume(id)})
	}
	v := s.Volume(id)
	if v == nil {
		return list
	}
	for _, name := range v.PVs() {
		if pv := s.PersistentVolume(name); pv != nil && pv.Strays != "" {
			list = append(list, Difference{
				Code: Unaccounted, Volume: id, At: report.OfVolume(id),
				Message: fmt.Sprintf("the driver lists %s as published at %s, and no VolumeAttachment accounts for it", id, pv.Strays),
			})
		}
	}
	return list
}

// Overdue lists faults if they last: undone steps, undecided tickets, unwritten pods.
func Overdue(a rules.Arbiter, s ledger.Snapshot, now time.Time) []Difference {
	var list []Difference
	for _, v := range a.AuditAtRest(s, now) {
		d := Difference{Code: StepOverdue, Volume: v.Volume, Message: v.String(), At: report.OfVolume(v.Volume)}
		if t := s.Ticket(v.Ticket); t != nil {
			d.Code, d.Ticket, d.At = TicketOverdue, t.ID, report.OfTicket(t)
		}
		list = append(list, d)
	}
	for _, v := range a.AuditCounts(s) {
		list = append(list, Difference{Code: BooksDiffer, Message: v.String(), At: report.OfNode(v.Node)})
	}
	return list
}

// Told compares a pod's annotation with the facts.
func Told(s ledger.Snapshot, a rules.Arbiter, p *ledger.Pod, says func(volume string) (safe, stamped bool)) []Difference {
	if p.Node == "" || p.Phase != ledger.PodLive {
		return nil
	}
	var list []Difference
	for _, v := range p.Volumes {
		id, link := s.ResolvePod(p, v)
		safe, stamped := says(v.Name)
		if !stamped || link != ledger.LinkVolume {
			continue
		}
		if is := a.SafeToMount(s, id, p.Node); is != safe {
			list = append(list, Difference{
				Code: StatusDiffers, Pod: p.UID, At: report.OfPod(p),
				Message: fmt.Sprintf("the pod is told safeToMount=%t of volume %s, and it is %t", safe, v.Name, is),
			})
		}
	}
	return list
}
