// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

var errRefused = errors.New("refused")

// do uses internal/protocol, like the product.
func (c *cluster) do(s rules.Step) error {
	c.judgeStep(s)
	if c.carry(protocol.Do(s)) == protocol.Finished {
		return nil
	}
	if c.flies(s.Volume) {
		return errUnanswered
	}
	return errRefused
}

// A step needs the attachment, its version, and the Node.
func (c *cluster) judgeStep(s rules.Step) {
	switch s.Kind {
	case rules.Report, rules.Unreport, rules.ProveAbsent, rules.ConfirmUnwanted, rules.DeleteAttachment, rules.MarkWanted, rules.RetryAttach:
	default:
		return
	}
	snap := c.snapshot()
	if va := snap.Volume(s.Volume).OnNode(s.Node).Own(); va != nil && (s.Attachment != va.Name || s.UID != va.UID || s.Version != va.Version) {
		c.Judge.Faults = append(c.Judge.Faults, fmt.Sprintf("%s at %s names attachment %q %q %q, and %q %q %q is there", s.Kind, s.Node, s.Attachment, s.UID, s.Version, va.Name, va.UID, va.Version))
	}
	n := snap.Node(s.Node)
	if named := s.Kind != rules.MarkWanted && s.Kind != rules.RetryAttach; named && n != nil && n.Exists && s.NodeUID != n.UID {
		c.Judge.Faults = append(c.Judge.Faults, fmt.Sprintf("%s at %s names Node %q, and it is %q", s.Kind, s.Node, s.NodeUID, n.UID))
	}
}

// A read after an unanswered creation gets no answer either.
func (c *cluster) carry(t protocol.Task) protocol.End {
	looked := int64(0) // the time of the read before a request without a precondition
	t, m := c.memory.Next(t, c.snapshot(), c.Now)
	for {
		for _, e := range m.Tell {
			c.ledger.Apply(c.Now, e)
		}
		switch {
		case m.End != protocol.Going:
			return m.End
		case !m.Wait.IsZero():
			return protocol.Going
		case m.Send == nil:
			t, m = c.memory.Next(t, c.snapshot(), c.Now)
			continue
		}
		var a protocol.Answer
		a, looked = c.send(t, *m.Send, looked)
		t, m = c.memory.Answer(t, a, c.snapshot(), c.Now)
	}
}

func (c *cluster) send(t protocol.Task, r protocol.Request, looked int64) (protocol.Answer, int64) {
	if c.refuses["decide-ticket"] && r.Kind == rules.DecideTicket || c.refuses[t.Step.Kind.String()] || c.refuses[t.Step.Kind.String()+" "+string(t.Step.Node)] {
		return protocol.Answer{Result: protocol.Refused}, 0
	}
	sent := world.Sent(r, c.Stamps)
	if r.Kind == rules.PatchNode {
		node, _ := c.Node(r.Node)
		patch, fits, _ := protocol.Compose(node, []protocol.Change{r.Change})
		if len(fits) == 0 {
			return protocol.Answer{Result: protocol.Unfit}, 0
		}
		sent = world.SentPatch(node, patch)
	}
	switch {
	case sent.Adds() && c.mutes():
		c.flying = append(c.flying, unanswered{t.Step, sent})
		return protocol.Answer{Result: protocol.Unknown}, 0
	case r.Kind == rules.GetObject && r.Object == protocol.Attachments && slices.ContainsFunc(c.flying, func(u unanswered) bool { return u.creates(r.Key) }):
		return protocol.Answer{Result: protocol.Unknown}, 0 // another result would prove too much
	}
	sent.Since = looked
	a := c.Serve(sent)
	if c.prompt && r.Kind == rules.AskNode {
		c.speak(c.machine(r.Node))
	}
	c.saw(a.Facts)
	c.sync()
	if a.Code == world.OK && r.Kind == rules.DeleteTicket {
		c.trace("ticket %s: ended", ticketName(*t.Ticket))
	}
	if a.Code == world.OK && r.Kind == rules.DecideTicket && !r.EpochOnly {
		asked := ""
		if r.YieldingSince != 0 {
			asked = fmt.Sprintf(", and asked to let go within %s", rules.Notice)
		}
		c.trace("ticket %s at %s: %s%s%s", ticketName(*t.Ticket), t.Ticket.Node, r.Phase, asked, because(r.Verdict))
	}
	answer := protocol.Answer{Result: a.Code.Result(), Facts: a.Facts}
	if !sent.Looks() {
		return answer, 0
	}
	return answer, a.At
}

func (c *cluster) decide(id ledger.TicketID) bool {
	s := c.snapshot()
	t := s.Ticket(id)
	switch {
	case t == nil:
		return false
	}
	if task, due := protocol.Due(c.arb, s, t, c.arb.Keeps(s, t, c.Now), c.Now); due {
		return c.carry(task) == protocol.Finished && (task.Commit.Kind != rules.DeleteTicket || c.snapshot().Ticket(id) == nil)
	}
	return t.Phase == ledger.TicketPending && t.Node != "" && c.rule(s, t)
}

func (c *cluster) rule(s ledger.Snapshot, t *ledger.Ticket) bool {
	d := protocol.Rule(c.arb, s, t, c.Now)
	if d.Ruling == protocol.Wait && t.Reason == string(d.Verdict.First().Code) {
		return false
	}
	decided := protocol.Decided{Ticket: t, Decision: d}
	c.announce([]protocol.Decided{decided})
	return c.carry(protocol.Decide(decided)) != protocol.Stale
}

// The ledger hears of grants before the next decision.
func (c *cluster) announce(list []protocol.Decided) {
	for _, e := range protocol.Announce(list) {
		c.ledger.Apply(c.Now, e)
	}
}

func ticketName(t ledger.Ticket) string {
	return t.ID.Name
}

func because(v rules.Verdict) string {
	var b strings.Builder
	for _, r := range v.Reasons {
		fmt.Fprintf(&b, "\n  %s: %s", r.Code, r.Message())
	}
	return b.String()
}

// settle says whether everything came to rest.
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
		if slices.ContainsFunc(c.flying, func(u unanswered) bool { return u.step.Volume == v && u.step.Kind == rules.Report }) {
			continue
		}
		for _, step := range c.arb.Plan(c.snapshot(), v, c.Now).Steps {
			c.trace("%s", c.stepText(step))
			if err := c.do(step); err != nil {
				c.trace("  %v", err)
			}
			did = true
		}
	}
	for _, name := range slices.Clone(c.Keys(world.Attachments)) {
		did = c.attacher(name) || did
	}
	did = c.stock.work() || did
	did = c.bindReserved() || did
	for _, id := range sortedKeys(c.Machines) {
		did = c.tick(c.Machines[id]) || did
		did = c.speak(c.Machines[id]) || did
	}
	return did
}

// Only answers to questions are traced.
func (c *cluster) speak(m *world.Machine) bool {
	did := c.Look(m) && c.Write(m)
	word, _ := c.Word(m.Node)
	if did {
		c.sync()
		if word.Looked > 0 {
			c.trace("moorage-node %s: looked %d, has %v", m.Node, word.Looked, volumeNames(c, word.Has))
		}
	}
	return did
}

func (c *cluster) bindReserved() bool {
	did := false
	for _, p := range list[ledger.Pod](c, world.Pods) {
		known := c.snapshot().Pod(p.UID)
		if c.refuses["bind"] || known == nil || !known.Reserved || p.Node != "" || p.Phase != ledger.PodLive {
			continue
		}
		c.trace("scheduler: bound %s to %s", p.Name, known.Node)
		c.ask(world.Request{Do: world.BindPod, UID: p.UID, Node: known.Node})
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
	slices.SortFunc(ids, ledger.VolumeID.Compare)
	return ids
}

func (c *cluster) stepText(s rules.Step) string {
	text := s.Kind.String() + " " + volumeName(c, s.Volume)
	if s.Node != "" {
		text += " " + string(s.Node)
	}
	switch s.Kind {
	case rules.WriteHold:
		text += holdText(s.Hold)
	case rules.CreateAttachment:
		text += fmt.Sprintf(" transitions=%d", s.Transitions)
		if s.Beside != "" {
			text += fmt.Sprintf(" beside=%s", s.Beside)
		}
	case rules.MarkWanted:
		text += " by " + s.Who
	case rules.RemovePod:
		text += " " + s.UID
	default: // volume and node are enough
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
	if h.Force != nil {
		text += fmt.Sprintf(" force=%s/%s", h.Force.Rule, h.Force.Elapsed)
	}
	for _, f := range h.Fences {
		text += fmt.Sprintf(" taken=%s/%s", f.Node, cmp.Or(f.Rule, "unknown"))
	}
	if h.Reason != "" {
		text += fmt.Sprintf("\n  %s: %s", h.Reason, h.Message)
	}
	return text
}
