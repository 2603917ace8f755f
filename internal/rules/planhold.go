// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// maxListed bounds the requesters and PersistentVolumes in a VolumeHold.
const maxListed = 256

// holdPlan decides the holder of a volume, and the write or deletion of its VolumeHold.
type holdPlan struct{ planning }

// decideHold plans a necessary write, or the VolumeHold's deletion once the volume is at no node and the
// next attachment's note will say all.
func (p *holdPlan) decideHold() {
	if p.forgotten() {
		p.deleteHold()
		return
	}
	if !p.exclusive {
		p.decideShared(p.volume.Written())
		return
	}
	if p.onlyListed() {
		return
	}
	was := hold(p.volume)
	p.hold = p.nextHold(was)
	needed := p.volume.HoldUnanswered > 0 || p.needsHold(&p.hold)
	writes := p.mustWrite(was, &p.hold) || p.lacksBoot(was)
	switch {
	case !needed && (was.Version == "" || writes && !p.attachedAnywhere()):
		p.deleteHold()
	case writes:
		p.writeHold()
	}
}

// deleteHold only drops an unwritten hold (empty Version) from the ledger.
func (p *holdPlan) deleteHold() {
	if p.volume.HasHold() {
		p.add(Step{Kind: DeleteHold, Expect: p.volume.Hold.Version})
	}
}

// mustWrite is true after an unanswered write: the new version voids all unanswered writes.
func (p *holdPlan) mustWrite(was ledger.Hold, is *ledger.Hold) bool {
	if p.volume.HoldUnanswered > 0 {
		is.Grants = anotherVersion(is.Grants)
		return true
	}
	return !sameHold(was, *is) || p.volume.Hold != nil && was.Version == ""
}

// anotherVersion makes a hold differ: an API server makes no new version for a write without a change.
func anotherVersion(grants int64) int64 { return grants%ledger.MaxNumber + 1 }

// onlyListed: only kubelets' lists name the volume. A node may list any number of names.
func (p *holdPlan) onlyListed() bool {
	return p.volume.Hold == nil && len(p.volume.PVs()) == 0 &&
		!slices.ContainsFunc(p.volume.OnNodes, func(place ledger.VolumeOnNode) bool {
			return !Unexplained(p.snapshot, &place) || len(place.Users) > 0
		})
}

// lacksBoot: the report waits for a hold that names its node's boot. The kubelet may have reported it
// later, or an older release wrote the hold.
func (p *holdPlan) lacksBoot(was ledger.Hold) bool {
	place := p.volume.OnNode(p.hold.Node)
	if p.Cooperative || was.BootID != "" || p.hold.BootID == "" || p.snapshot.DropsHoldBoots() {
		return false
	}
	return place != nil && !place.Reported && p.wanted(place)
}

// hold is what the API says about the holder of a volume: see ledger.Volume.Record.
func hold(v *ledger.Volume) ledger.Hold { return v.Record() }

func (p *holdPlan) writeHold() {
	step := Step{Kind: WriteHold, Node: p.hold.Node, Hold: p.hold, Expect: p.hold.Version}
	if p.forgetsTicket(p.hold) {
		step.NodeUID, step.WhileReady = p.snapshot.Node(step.Node).UID, true
	}
	p.add(step)
}

// forgetsTicket: an ended ticket's holder may use the volume (mayBeUnlisted). The next leader learns of it
// only here.
func (p *holdPlan) forgetsTicket(is ledger.Hold) bool {
	place := p.volume.OnNode(is.Node)
	return place != nil && !is.NamesTicket() && ready(p.snapshot.Node(is.Node)) && mayBeUnlisted(p.volume, place)
}

// forgotten: the hold has no subject left, neither the volume nor a boot with a possible mount, where its
// disk may return under another PersistentVolume.
func (p *holdPlan) forgotten() bool {
	h := p.volume.Written()
	if h.Version == "" || len(p.volume.PVs()) > 0 || len(p.volume.OnNodes) > 0 {
		return false
	}
	return len(h.Fences) == 0 || len(p.fences(h, h)) == 0
}

func (p *holdPlan) nextHold(was ledger.Hold) ledger.Hold {
	h := p.assignment(was)
	h.Fences = p.fences(was, h)
	place := p.volume.OnNode(h.Node)
	p.keepClock(was, &h, place)
	if place.OnlyLeft() {
		place = nil
	}
	return p.unwritten(h, was, place)
}

// assignment is nextHold without fences, also if only the last user left recently.
func (p *holdPlan) assignment(was ledger.Hold) ledger.Hold {
	h := ledger.Hold{Version: was.Version, Transitions: was.Transitions, Grants: was.Grants, PVs: p.names()}
	h.Node = p.holder(was)
	if h.Node != "" && h.Node != was.Node {
		h.Transitions = min(max(p.transitions(was), p.snapshot.Token())+1, ledger.MaxTransitions)
	}
	if h.Node == "" {
		if h.Transitions > 0 {
			h.State = ledger.HoldFree
		}
		return h
	}
	place := p.volume.OnNode(h.Node)
	if place.OnlyLeft() {
		place = nil // the hold is the only source for it
	}
	h.Requesters = p.requesters(was, p.volume.OnNode(h.Node))
	h.NodeUID, h.BootID, h.SystemUUID = p.holderNode(was, h.Node, p.volume.OnNode(h.Node))
	if !p.living(place) {
		h.Next = p.promiseNext(was, h.Node)
	}
	h.Waiting = p.waiting(h.Node, h.Next.To)
	p.describe(was, &h, place)
	p.revoke(&h)
	p.refused(was, &h)
	if h.Stays = p.stays(was, h, place); h.Stays {
		p.unknown(&h)
	}
	p.clock(was, &h, place)
	return h
}

func (p *holdPlan) names() []string {
	names := p.volume.PVs()
	return slices.Clip(names[:min(len(names), maxListed)])
}

// holderNode is of the volume's grant, or its successors once their word on the volume is credible.
func (p *holdPlan) holderNode(was ledger.Hold, name ledger.NodeName, place *ledger.VolumeOnNode) (uid, boot, machine string) {
	n := p.snapshot.Node(name)
	switch {
	case was.Node == name && p.grantedAnew(place):
		return n.UID, n.BootID, n.SystemUUID
	case was.Node == name && (n == nil || !n.Exists || was.LeftAtAnother(n) || place != nil && p.isUnknown(place) && !p.emptied(place)):
		return was.NodeUID, was.BootID, was.SystemUUID
	case n == nil:
		return "", "", ""
	case n.BootID == "" && was.Node == name && was.NodeUID == n.UID:
		return n.UID, was.BootID, was.SystemUUID // it has reported before
	}
	return n.UID, n.BootID, n.SystemUUID
}

// grantedAnew says whether a volume without attachments is taken from an earlier machine of a node's name by
// force, for the present machine: the hold then names that one.
func (p *holdPlan) grantedAnew(place *ledger.VolumeOnNode) bool {
	return place != nil && p.volume.ID.NoAttach() && bars(p.snapshot, p.volume, place) && former(p.snapshot, p.volume, place, p.now).over()
}

// unwritten returns the old hold if the only news is the recent departure of the last user.
func (p *holdPlan) unwritten(h, was ledger.Hold, place *ledger.VolumeOnNode) ledger.Hold {
	stale := h
	stale.Requesters = was.Requesters
	if len(h.Requesters) == 0 && len(was.Requesters) > 0 && sameHold(was, stale) && !p.keptAfterTicket(was, h, place) && p.lingers(place) {
		return stale
	}
	return h
}

// keptAfterTicket: a hold drops an ended ticket while the volume stays (detachDelay). Otherwise, if the
// node fell silent, its holder would count as a possible user (mayBeUnlisted).
func (p *holdPlan) keptAfterTicket(was, h ledger.Hold, place *ledger.VolumeOnNode) bool {
	return place != nil && was.NamesTicket() && p.delayed(h, p.snapshot.Node(place.Node), place) > 0
}

// lingering is how long a hold may name departed users: usually a detach causes the write.
const lingering = 30 * time.Second

// lingers says whether it is too early to write a hold only for the departure of the last user.
func (p *holdPlan) lingers(place *ledger.VolumeOnNode) bool {
	if place == nil {
		return false
	}
	since, _ := p.snapshot.Idle(place)
	left := lingering - p.now.Sub(since)
	if left <= 0 {
		return false
	}
	p.recheck(left)
	return true
}

// transitions is the highest number in the hold and all attachments: a deleted hold does not start anew.
func (p *holdPlan) transitions(was ledger.Hold) int64 {
	most := was.Transitions
	for i := range p.volume.OnNodes {
		most = max(most, p.volume.OnNodes[i].Transitions())
	}
	return most
}

// holder is the old node while the volume may be there or a user there claims it; then the promised node;
// then the first user's in rank.
func (p *holdPlan) holder(was ledger.Hold) ledger.NodeName {
	at := was.Node
	if was.Stays && at != "" && !p.lost(at) {
		return at
	}
	if at == "" {
		at = p.found()
	}
	if place := p.volume.OnNode(at); place != nil && (p.mayBeAttached(place) || p.hasRight(place, true)) {
		if first := p.givesWay(place); first != "" {
			return first
		}
		return at
	}
	if p.onlyHeld {
		return "" // the cause of its exclusivity is gone
	}
	if next := was.Next.Node; next != "" && p.hasRight(p.volume.OnNode(next), true) {
		return next
	}
	// No user gets it while it may be anywhere else.
	if at = p.found(); at != "" {
		return at
	}
	_, node := p.best("")
	return node
}

// found is a node with the volume but without a hold, preferably with a living user.
func (p *holdPlan) found() ledger.NodeName {
	var best *ledger.VolumeOnNode
	score := -1
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		if !p.mayBeAttached(place) {
			continue
		}
		points := 0
		if p.living(place) {
			points += 2
		}
		if place.Attached() {
			points++
		}
		if points > score {
			best, score = place, points
		}
	}
	if best == nil {
		return ""
	}
	return best.Node
}

// promiseNext keeps a promise while its user is there, else promises to the first user in rank.
func (p *holdPlan) promiseNext(was ledger.Hold, holder ledger.NodeName) ledger.Promise {
	if next := was.Next; next.Node != "" && next.Node != holder && p.required {
		lost := fenced(p.snapshot, p.volume, next.Node, p.now)
		if place := p.volume.OnNode(next.Node); place != nil {
			for _, u := range place.Users {
				st := claimStateOf(p.snapshot, u)
				if st == active && (p.outranked(u, next.Node) || p.goesAfter(u, holder)) {
					continue // it yields, and still has to be told
				}
				if (st == active && !lost || p.isGrantee(u)) && requester(p.snapshot, u).UID == next.To.UID {
					return next
				}
			}
		}
	}
	u, node := p.best(holder)
	if node == "" {
		return ledger.Promise{}
	}
	return ledger.Promise{Node: node, To: requester(p.snapshot, u)}
}

// requesters include ended tickets while their holders may use the volume.
func (p *holdPlan) requesters(was ledger.Hold, place *ledger.VolumeOnNode) []ledger.Requester {
	var list []ledger.Requester
	if place != nil {
		if was.Node == place.Node && !ready(p.snapshot.Node(place.Node)) && mayBeUnlisted(p.volume, place) {
			list = slices.DeleteFunc(slices.Clone(was.Requesters), func(r ledger.Requester) bool { return !r.Ticket })
		}
		for _, u := range place.Users {
			if claimStateOf(p.snapshot, u) >= terminating {
				list = append(list, requester(p.snapshot, u))
			}
		}
		if by := place.UnlistedBy(); by != nil && !ready(p.snapshot.Node(place.Node)) && !(&ledger.Hold{Requesters: list}).NamesTicket() {
			list = append(list, *by) // an earlier hold omitted it, or is gone
		}
	}
	return listed(list, p.migrations(place)...)
}

// migrations lists the live migrations to other nodes than the holder's.
func (p *holdPlan) migrations(holder *ledger.VolumeOnNode) []ledger.Requester {
	var list []ledger.Requester
	for i := range p.volume.OnNodes {
		if place := &p.volume.OnNodes[i]; place != holder {
			for _, u := range place.Users {
				if migrating(p.snapshot, p.volume, u) {
					list = append(list, requester(p.snapshot, u))
				}
			}
		}
	}
	return list
}

// waiting lists the claimants of the volume at other nodes, except the next one.
func (p *holdPlan) waiting(holder ledger.NodeName, next ledger.Requester) []ledger.Requester {
	var list []ledger.Requester
	for i := range p.volume.OnNodes {
		if place := &p.volume.OnNodes[i]; place.Node != holder && !p.migratesTo(place) {
			for _, u := range place.Users {
				if who := requester(p.snapshot, u); claimStateOf(p.snapshot, u) == active && who.UID != next.UID {
					list = append(list, who)
				}
			}
		}
	}
	return listed(list)
}

// listed sorts requesters, drops duplicates (a pod and its reservation), and bounds the list. The must
// entries stay.
func listed(list []ledger.Requester, must ...ledger.Requester) []ledger.Requester {
	sorted := func(list []ledger.Requester) []ledger.Requester {
		slices.SortFunc(list, compareRequesters)
		return slices.CompactFunc(list, func(a, b ledger.Requester) bool { return a.UID == b.UID })
	}
	all := sorted(append(list, must...))
	if len(all) <= maxListed {
		return all
	}
	for _, r := range all {
		if r.Ticket {
			must = append(must, r)
		}
	}
	must = sorted(must)
	must = must[:min(len(must), maxListed)]
	all = slices.DeleteFunc(all, func(r ledger.Requester) bool { return slices.Contains(must, r) })
	return sorted(append(must, all[:maxListed-len(must)]...))
}

func compareRequesters(a, b ledger.Requester) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// describe writes into the hold what keeps the volume where it should not be.
func (p *holdPlan) describe(was ledger.Hold, h *ledger.Hold, place *ledger.VolumeOnNode) {
	h.State = ledger.HoldHeld
	if reason, astray := p.astray(h, place); astray {
		h.State, h.Reason, h.Message = ledger.HoldUnknown, reason.Code, reason.Message()
		return
	}
	if place == nil || p.living(place) && h.Next.Node == "" && !place.Detaching() {
		return
	}
	stuck := p.stuck(place)
	switch stuck.Code {
	case Detaching:
		p.keep(was, h, place)
		return
	case InUse, HeldElsewhere, StaysDetached, AttachFailed:
		return // as it should be, or refused reports it
	case ForeignAttachment:
		h.State = ledger.HoldUnknown
	default:
		h.State = ledger.HoldDetachPending
	}
	h.Reason, h.Message = stuck.Code, stuck.Message()
}

// astray is the reason for a volume at other nodes beside the holder's; false: none. The next node does not
// block itself.
func (p *holdPlan) astray(h *ledger.Hold, place *ledger.VolumeOnNode) (Reason, bool) {
	if p.shared {
		return Reason{}, false // it leaves the nodes that have shared it
	}
	others := slices.DeleteFunc(p.elsewhere(h.Node, h.Node), func(r Reason) bool { return r.Code == StaysDetached })
	for _, reason := range others {
		if reason.Node != h.Next.Node {
			return reason, true
		}
	}
	switch {
	case len(others) == 0:
		return Reason{}, false
	case place == nil:
		return others[0], true
	}
	return p.stuck(place), true
}

// revoke says that a ticket at a fenced node must be told to yield first. This write also has the ticket
// checked if only time has fenced the node.
func (p *holdPlan) revoke(h *ledger.Hold) {
	for _, n := range []ledger.NodeName{h.Node, h.Next.Node} {
		if place := p.volume.OnNode(n); place != nil && p.hasGrantee(place) && fenced(p.snapshot, p.volume, n, p.now) {
			reason := Reason{Code: NodeFenced, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: n}
			h.Reason, h.Message = reason.Code, reason.Message()
		}
	}
}

// clock keeps a rule's progress in the hold, for another controller. It stays while this process can't tell
// whether it continues.
func (p *holdPlan) clock(was ledger.Hold, h *ledger.Hold, place *ledger.VolumeOnNode) {
	if place == nil {
		return
	}
	n, f := p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now)
	if f.Former {
		p.awaits(f) // the next leader can't tell whether that machine was seen meanwhile
		return
	}
	p.sayBrake(h, place, f)
	if f.Left <= 0 || h.Reason != NodeUnreachable && f.Rule != AfterUnreachable && f.Rule != UnpublishFences {
		return
	}
	h.Force = outage(p.volume, place, n, f)
	if mayContinue(was.Force, n) && was.Force.Elapsed > h.Force.Elapsed {
		h.Force = was.Force
	}
	p.awaits(f)
}

// keepClock keeps the end of a rule's time until the rule takes something, if Moorage may.
func (p *holdPlan) keepClock(was ledger.Hold, h *ledger.Hold, place *ledger.VolumeOnNode) {
	if place == nil || was.Force == nil || was.Force.Node != place.Node {
		return
	}
	n, f := p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now)
	if _, taken := h.Fence(place.Node); taken || !f.over() || f.Former || f.Rule != was.Force.Rule || f.Limit == 0 {
		return
	}
	h.Force = outage(p.volume, place, n, f)
}

// same says whether two pointers have equal values, or are both nil.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// sameHold: a hold is not written only to add a boot or a machine, except by lacksBoot.
func sameHold(a, b ledger.Hold) bool {
	return a.Node == b.Node && a.NodeUID == b.NodeUID && (a.BootID == b.BootID || a.BootID == "") && (a.SystemUUID == b.SystemUUID || a.SystemUUID == "") && a.Next == b.Next &&
		a.Transitions == b.Transitions && a.State == b.State && a.Stays == b.Stays && a.Reason == b.Reason &&
		a.Message == b.Message && same(a.Force, b.Force) && slices.Equal(a.Fences, b.Fences) &&
		slices.Equal(a.Requesters, b.Requesters) && slices.Equal(a.Waiting, b.Waiting) &&
		(slices.Equal(a.PVs, b.PVs) || b.Node == "")
}

// needsHold says whether a planned hold must be a VolumeHold. Most exclusive volumes need none: the note in
// the VolumeAttachment, or in the next one, says for which Node, machine and boot it was made, and this is all
// that a new leader must know. A VolumeHold is needed for:
//   - a volume without VolumeAttachments (iSCSI, FC);
//   - a VolumeAttachment without a note, or with a note of another Node or boot than now holds;
//   - a volume that may be at a second node, or at a node without a VolumeAttachment;
//   - a ticket, a forced detach and its time, a volume left at its node, and a report to people.
func (p *holdPlan) needsHold(h *ledger.Hold) bool {
	if h.Node != "" && (p.volume.ID.NoAttach() || !p.required || p.onlyHeld || p.shared || h.Node == ledger.Detached) {
		return true
	}
	if h.Stays || h.Force != nil || len(h.Fences) > 0 || h.NamesTicket() || h.Next.To.Ticket || slices.ContainsFunc(h.Waiting, isTicket) {
		return true
	}
	if h.State != "" && h.State != ledger.HoldHeld && h.State != ledger.HoldFree || h.Reason != "" && h.Reason != DetachDelayed {
		return true
	}
	for i := range p.volume.OnNodes {
		if place := &p.volume.OnNodes[i]; place.Node != h.Node && p.mayBeAttached(place) {
			return true
		}
	}
	return p.unnoted(h, p.volume.OnNode(h.Node))
}

func isTicket(r ledger.Requester) bool { return r.Ticket }

// unnoted: no attachment's note has the hold's facts for a volume that may be at its holder's node.
func (p *holdPlan) unnoted(h *ledger.Hold, place *ledger.VolumeOnNode) bool {
	switch {
	case place == nil:
		return false
	case place.UnlistedBy() != nil && !ready(p.snapshot.Node(place.Node)):
		return true // an ended ticket's holder may use it
	case !place.HasAttachments():
		return !place.Sent && p.mayBeAttached(place)
	}
	note := place.Note()
	return note.NodeUID != h.NodeUID || note.Boot != h.Boot() && h.BootID != "" || len(place.Attachments()) > 1
}

// attachedAnywhere says whether the API shows the volume as attached to any node.
func (p *holdPlan) attachedAnywhere() bool {
	return slices.ContainsFunc(p.volume.OnNodes, func(place ledger.VolumeOnNode) bool { return attachedAt(&place) || place.Left })
}

// asHeld is the recorded hold, else the planned one if no VolumeHold is needed.
func (p *holdPlan) asHeld() ledger.Hold {
	was := hold(p.volume)
	if !p.exclusive || was.Node != "" || was.Version != "" {
		return was
	}
	if h := p.nextHold(was); !p.needsHold(&h) {
		return h
	}
	return was
}

// The hold reports an attach that the driver refuses, with the driver's text and code, from its first
// answer until the attach succeeds or the VolumeAttachment is gone. A normal attach writes nothing:
//
//	Invariant: Hold.State = AttachFailed ⇒ Hold.Reason = AttachFailed

// refused reports the driver's refusal of an attach in a hold without a worse reason.
func (p *holdPlan) refused(was ledger.Hold, h *ledger.Hold) {
	if h.State != ledger.HoldHeld || h.Reason != "" {
		return
	}
	reason, found := p.attachError(was, p.volume.OnNode(h.Node))
	for i := range p.volume.OnNodes {
		if found {
			break
		}
		if place := &p.volume.OnNodes[i]; p.migratesTo(place) {
			reason, found = p.attachError(was, place)
		}
	}
	if found {
		h.State, h.Reason, h.Message = ledger.HoldAttachFailed, reason.Code, reason.Message()
	}
}

// attachError: a deletion does not end the report. The next state is written once the VolumeAttachment is
// gone.
func (p *planning) attachError(was ledger.Hold, place *ledger.VolumeOnNode) (Reason, bool) {
	if !place.AttachFailed() {
		return Reason{}, false
	}
	va := p.own(place)
	if va.Deleting && was.State != ledger.HoldAttachFailed {
		return Reason{}, false
	}
	return failedAttach(p.snapshot, p.volume, va), true
}

func failedAttach(s ledger.Snapshot, v *ledger.Volume, va *ledger.Attachment) Reason {
	return Reason{
		Code: AttachFailed, Volume: v.ID, Claim: claimOf(s, v), Node: va.Node,
		Detail: va.AttachError.Message, GRPC: va.AttachError.Code,
	}
}

// keep costs no write of its own: it comes with its last user's end (lingers), and stays until the detach
// or the next use.
func (p *holdPlan) keep(was ledger.Hold, h *ledger.Hold, place *ledger.VolumeOnNode) {
	if p.Cooperative || len(h.Requesters) > 0 || was.Reason != DetachDelayed && !p.keptAfterTicket(was, *h, place) && p.lingers(place) {
		return
	}
	if p.delayed(*h, p.snapshot.Node(place.Node), place) > 0 {
		since, _ := p.snapshot.Idle(place)
		reason := Reason{
			Code: DetachDelayed, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node,
			Until: since.Add(policyOf(p.snapshot, p.volume).DetachDelay).Unix(),
		}
		h.Reason, h.Message = reason.Code, reason.Message()
	} else if was.Reason == DetachDelayed && was.Node == h.Node {
		h.Reason, h.Message = was.Reason, was.Message
	}
}
