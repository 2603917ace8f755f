// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// errRefused says that the API server refused a write: a precondition failed.
var errRefused = errors.New("refused")

// do executes one step as internal/execute does: one write with its
// precondition against the API's newest objects, then what it proves.
func (c *cluster) do(s arbiter.Step) error {
	if c.refuses[s.Do.String()] || c.refuses[s.Do.String()+" "+string(s.Node)] {
		return errRefused
	}
	c.own = true
	defer func() { c.own = false }()
	switch s.Do {
	case arbiter.WriteHold, arbiter.DeleteHold:
		return c.doHold(s)
	case arbiter.CreateAttachment:
		return c.doCreate(s)
	case arbiter.FindAttachment:
		return c.doFind(s)
	case arbiter.Report:
		return c.doReport(s)
	case arbiter.Unreport:
		return c.doUnreport(s)
	case arbiter.MarkWanted:
		va, ok := c.attachments[s.Attachment]
		if !ok || va.UID != s.UID {
			return errRefused
		}
		va.Wanted = true
		c.putAttachment(va)
		return nil
	case arbiter.ProveAbsent:
		if slices.Contains(c.nodes[s.Node].Reported, s.Volume) {
			return errRefused
		}
		return c.doUnreport(s)
	case arbiter.ConfirmUnwanted:
		return c.doConfirm(s)
	case arbiter.DeleteAttachment:
		return c.doDelete(s)
	case arbiter.RemovePod:
		if p, ok := c.pods[s.UID]; !ok || p.Phase == ledger.PodLive {
			return errRefused
		}
		c.deletePod(s.UID)
		return nil
	}
	return fmt.Errorf("no such step: %v", s.Do)
}

func (c *cluster) doHold(s arbiter.Step) error {
	if c.holds[s.Volume].Version != s.Expect {
		return errRefused
	}
	if s.Do == arbiter.WriteHold {
		c.putHold(s.Volume, s.Hold)
		return nil
	}
	delete(c.holds, s.Volume)
	c.seen(ledger.HoldGone{Volume: s.Volume})
	return nil
}

func (c *cluster) doCreate(s arbiter.Step) error {
	c.ledger.Apply(c.now, ledger.AttachSent{Volume: s.Volume, Node: s.Node})
	if p := c.snapshot().Volume(s.Volume).Place(s.Node); p == nil || !p.Sent {
		return errRefused
	}
	if c.mutes() {
		c.flying = append(c.flying, s)
		return errUnanswered
	}
	if _, exists := c.attachments[s.Attachment]; !exists {
		c.putAttachment(c.created(s))
	}
	c.ledger.Apply(c.now, ledger.AttachSettled{Volume: s.Volume, Node: s.Node})
	return nil
}

func (c *cluster) doReport(s arbiter.Step) error {
	if s.Attachment != "" {
		a, ok := c.attachments[s.Attachment]
		if !ok || a.UID != s.UID || !a.Attached || a.Deleting {
			return errRefused
		}
		c.putAttachment(a) // the new annotation: a delete in flight now fails
	}
	node, ok := c.nodes[s.Node]
	if !ok || node.UID != s.NodeUID {
		return errRefused
	}
	if !slices.Contains(node.Reported, s.Volume) {
		node.Reported = append(slices.Clone(node.Reported), s.Volume)
		c.putNode(node)
	}
	return nil
}

func (c *cluster) doUnreport(s arbiter.Step) error {
	node, exists := c.nodes[s.Node]
	if !c.sameNode(s) || s.Rule == "" && slices.Contains(node.InUse, s.Volume) {
		return errRefused
	}
	if i := slices.Index(node.Reported, s.Volume); exists && i >= 0 {
		node.Reported = slices.Delete(slices.Clone(node.Reported), i, i+1)
		c.putNode(node)
	} else if exists {
		c.ledger.Apply(c.now, node) // the answer
	}
	c.ledger.Apply(c.now, ledger.Unreported{Volume: s.Volume, Node: s.Node, UID: s.UID, Version: s.Version, Forced: s.Rule != ""})
	return nil
}

// sameNode says whether the Node is the one that was meant, and under a rule
// of force as it was when the rule was found to hold.
func (c *cluster) sameNode(s arbiter.Step) bool {
	node, exists := c.nodes[s.Node]
	if s.NodeUID == "" {
		return !exists
	}
	return exists && node.UID == s.NodeUID && (s.Rule == "" || node.Version == s.NodeVersion)
}

func (c *cluster) doConfirm(s arbiter.Step) error {
	for _, p := range c.podsAt(s.Node) {
		c.ledger.Apply(c.now, p)
		if p.Phase != ledger.PodFinished && slices.Contains(c.podVolumes(p), s.Volume) {
			return errRefused
		}
	}
	c.ledger.Apply(c.now, ledger.Unwanted{Volume: s.Volume, Node: s.Node, UID: s.UID, Version: s.Version})
	return nil
}

func (c *cluster) doDelete(s arbiter.Step) error {
	if s.Within > 0 {
		if err := c.doConfirm(s); err != nil {
			return err
		}
	}
	a, ok := c.attachments[s.Attachment]
	if !ok || a.UID != s.UID || a.Version != s.Version || s.Rule != "" && !c.sameNode(s) {
		return errRefused
	}
	if a.Deleting {
		return nil
	}
	c.judge.deletes(s.Volume, s.Node)
	a.Deleting, a.DeletedAt = true, c.now.Unix()
	c.putAttachment(a)
	return nil
}

// decide lets the controller decide on one ticket, and says whether that
// changed anything.
func (c *cluster) decide(id ledger.TicketID) bool {
	s := c.snapshot()
	t := s.Ticket(id)
	if t == nil {
		return false
	}
	if t.Type == ledger.TypePod && c.settleReservation(s, t) {
		return true
	}
	switch t.Phase {
	case ledger.TicketPending:
		return c.grant(s, t)
	case ledger.TicketGranted:
		if v := c.arb.Keeps(s, t, c.now); !v.Allowed() {
			return c.sentence(t, ledger.TicketRefused, v)
		}
	}
	return false
}

// settleReservation ends a reservation whose pod counts by itself or is gone,
// and a ghost after a look at the pod.
func (c *cluster) settleReservation(s ledger.Snapshot, t *ledger.Ticket) bool {
	if t.Ghost {
		if p, ok := c.pods[t.Pod]; ok && p.Node != "" {
			c.ledger.Apply(c.now, p)
		}
		c.ledger.Apply(c.now, ledger.TicketReleased{ID: t.ID})
		c.trace("ticket %s: its ghost is released", t.PodName)
		return true
	}
	covered, gone := c.arb.Covered(s, t)
	if !covered && !gone {
		return false
	}
	if _, exists := c.pods[t.Pod]; gone && exists {
		return false // the list is behind
	}
	c.trace("ticket %s: ended", t.PodName)
	c.deleteTicket(t.ID)
	c.ledger.Apply(c.now, ledger.TicketReleased{ID: t.ID})
	return true
}

func (c *cluster) grant(s ledger.Snapshot, t *ledger.Ticket) bool {
	v, steps := c.arb.Grant(s, t, c.now)
	switch v.Outcome {
	case arbiter.Deny:
		return c.sentence(t, ledger.TicketRefused, v)
	case arbiter.Wait:
		return false
	}
	for _, step := range steps {
		c.trace("%s", c.stepText(step))
		if err := c.do(step); err != nil {
			return true
		}
	}
	return c.sentence(t, ledger.TicketGranted, v)
}

// sentence writes a ticket's condition Granted.
func (c *cluster) sentence(t *ledger.Ticket, phase ledger.TicketPhase, v arbiter.Verdict) bool {
	now, ok := c.tickets[t.ID]
	if !ok || now.Version != t.Version {
		return false
	}
	if phase == ledger.TicketGranted {
		c.judge.grants(now)
	}
	now.Phase, now.Reason = phase, string(v.First().Code)
	c.trace("ticket %s at %s: %s%s", ticketName(now), now.Node, phase, because(v))
	c.own = true
	c.putTicket(now)
	c.own = false
	return true
}

func ticketName(t ledger.Ticket) string {
	if t.PodName != "" {
		return t.PodName
	}
	return t.ID.Name
}

func because(v arbiter.Verdict) string {
	var b strings.Builder
	for _, r := range v.Reasons {
		fmt.Fprintf(&b, "\n  %s: %s", r.Code, r.Message())
	}
	return b.String()
}

// rounds runs controller, attacher, kubelets and the scheduler's binds until
// nothing moves any more, and says whether that came about.
func (c *cluster) settle() bool {
	for range 200 {
		if !c.round() {
			return true
		}
	}
	return false
}

func (c *cluster) round() bool {
	did := false
	for _, id := range c.ticketOrder() {
		did = c.decide(id) || did
	}
	for _, v := range c.volumes() {
		for _, step := range c.arb.Plan(c.snapshot(), v, c.now).Steps {
			c.trace("%s", c.stepText(step))
			if err := c.do(step); err != nil {
				c.trace("  %v", err)
			}
			did = true
		}
	}
	for _, name := range sortedKeys(c.attachments) {
		did = c.attacher(name) || did
	}
	did = c.stock.work() || did
	did = c.bindGranted() || did
	for _, n := range sortedKeys(c.kubelets) {
		did = c.tick(n) || did
	}
	return did
}

// bindGranted binds the pods whose reservations are granted.
func (c *cluster) bindGranted() bool {
	did := false
	for _, id := range c.ticketOrder() {
		t, ok := c.tickets[id]
		p, exists := c.pods[t.Pod]
		if c.refuses["bind"] || !ok || !exists || t.Phase != ledger.TicketGranted || p.Node != "" || p.Phase != ledger.PodLive {
			continue
		}
		p.Node = t.Node
		c.trace("scheduler: bound %s to %s", p.Name, t.Node)
		c.putPod(p)
		did = true
	}
	return did
}

func (c *cluster) ticketOrder() []ledger.TicketID {
	var ids []ledger.TicketID
	for t := range c.snapshot().Tickets() {
		ids = append(ids, t.ID)
	}
	slices.SortFunc(ids, func(a, b ledger.TicketID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}

func (c *cluster) volumes() []ledger.VolumeID {
	var ids []ledger.VolumeID
	for v := range c.snapshot().Volumes() {
		ids = append(ids, v.ID)
	}
	slices.SortFunc(ids, compareVolumes)
	return ids
}

// stepText words a step for transcripts.
func (c *cluster) stepText(s arbiter.Step) string {
	text := s.Do.String() + " " + volumeName(c, s.Volume)
	if s.Node != "" {
		text += " " + string(s.Node)
	}
	switch s.Do {
	case arbiter.WriteHold:
		text += holdText(s.Hold)
	case arbiter.CreateAttachment:
		text += fmt.Sprintf(" transitions=%d", s.Transitions)
		if s.Beside != "" {
			text += fmt.Sprintf(" beside=%s", s.Beside)
		}
	case arbiter.MarkWanted:
		text += " by " + s.Who
	case arbiter.RemovePod:
		text += " " + s.UID
	}
	if s.Rule != "" {
		text += " rule=" + s.Rule
	}
	return text
}

func holdText(h ledger.Hold) string {
	text := fmt.Sprintf(" %s transitions=%d", h.State, h.Transitions)
	if len(h.Requesters) > 0 {
		text += fmt.Sprintf(" for %v", h.Requesters)
	}
	if h.Next.Node != "" {
		text += fmt.Sprintf(" next=%s (%v)", h.Next.Node, h.Next.To)
	}
	if len(h.Waiting) > 0 {
		text += fmt.Sprintf(" waiting=%v", h.Waiting)
	}
	if h.Force.Rule != "" {
		text += fmt.Sprintf(" force=%s/%s", h.Force.Rule, h.Force.Elapsed)
	}
	if h.Reason != "" {
		text += fmt.Sprintf("\n  %s: %s", h.Reason, h.Message)
	}
	return text
}
