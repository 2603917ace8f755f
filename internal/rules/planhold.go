// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// maxListed bounds the requesters and the PersistentVolumes that a VolumeHold lists.
const maxListed = 256

// decideHold settles who holds an exclusive volume and who is next, and plans
// the write when the VolumeHold says otherwise.
func (p *planner) decideHold() {
	was := hold(p.volume)
	if p.forgotten() {
		p.deleteHold(was)
		return
	}
	if !p.exclusive {
		p.decideNote(was)
		return
	}
	if p.onlyListed() {
		return
	}
	p.hold = p.nextHold(was)
	if p.mustWrite(was, &p.hold) || p.lacksBoot(was) {
		p.writeHold()
	}
}

// deleteHold plans the deletion of a hold, unless it has been deleted, and a watch has yet to show that. One that is
// not written (Version is empty) is only the ledger's to forget.
func (p *planner) deleteHold(was ledger.Hold) {
	if was.Version == "" || was.Version != p.volume.Dropped() || p.volume.HoldUnanswered > 0 {
		p.add(Step{Do: DeleteHold, Hold: was, Expect: was.Version})
	}
}

// mustWrite says whether a hold is to be written. One of which a write got no answer is, whatever it says: it
// gets another version by that, and no write without an answer can be carried out any more.
func (p *planner) mustWrite(was ledger.Hold, is *ledger.Hold) bool {
	if p.volume.HoldUnanswered > 0 {
		is.Grants = anotherVersion(is.Grants)
		return true
	}
	return !sameHold(was, *is) || p.volume.Hold != nil && was.Version == ""
}

// anotherVersion is the number by which a hold differs from the one before that says the same: an API server makes
// no version of a write that changes nothing.
func anotherVersion(grants int64) int64 { return grants%ledger.MaxNumber + 1 }

// onlyListed says whether nothing is known of the volume but that kubelets list it in use:
// it has neither a hold nor a PersistentVolume. A hold would say no more than they do, and a
// node may list as many names as it likes.
func (p *planner) onlyListed() bool {
	return p.volume.Hold == nil && len(p.volume.PVs()) == 0 &&
		!slices.ContainsFunc(p.volume.NodeVolumes, func(place ledger.NodeVolume) bool {
			return !Unexplained(p.snapshot, &place) || len(place.Users) > 0
		})
}

// lacksBoot says whether the hold is to be written only to name the boot of the
// holder's node: the volume is to be put into volumesAttached there, and is not before
// that (report). The kubelet may have said its boot only after the hold was written, or
// the hold is of a release that did not write it.
func (p *planner) lacksBoot(was ledger.Hold) bool {
	place := p.volume.NodeVolume(p.hold.Node)
	if p.Cooperative || was.BootID != "" || p.hold.BootID == "" || p.snapshot.DropsHoldBoots() {
		return false
	}
	return place != nil && !place.Reported && p.wanted(place)
}

// hold is what the VolumeHold says; zero when there is none.
func hold(v *ledger.Volume) ledger.Hold {
	if v.Hold == nil {
		return ledger.Hold{}
	}
	return *v.Hold
}

func (p *planner) writeHold() {
	step := Step{Do: WriteHold, Node: p.hold.Node, Hold: p.hold, Expect: p.hold.Version}
	if p.forgetsTicket(p.hold) {
		step.NodeUID, step.WhileReady = p.snapshot.Node(step.Node).UID, true
	}
	p.add(step)
}

// forgetsTicket says whether a hold names no ticket at its node, though the holder of one that has ended may use the volume
// there (mayBeUnlisted): nothing else tells that the next leader.
func (p *planner) forgetsTicket(is ledger.Hold) bool {
	place := p.volume.NodeVolume(is.Node)
	return place != nil && !is.NamesTicket() && ready(p.snapshot.Node(is.Node)) && mayBeUnlisted(p.volume, place)
}

// forgotten says whether nothing is left that the hold could be about: neither the volume,
// nor a boot in which it may still be mounted, and finds it attached again when its disk
// comes back under another PersistentVolume.
func (p *planner) forgotten() bool {
	h := hold(p.volume)
	if h.Version == "" || len(p.volume.PVs()) > 0 || len(p.volume.NodeVolumes) > 0 {
		return false
	}
	return len(h.Fences) == 0 || len(p.fences(h, h)) == 0
}

// nextHold is the hold as it should be.
func (p *planner) nextHold(was ledger.Hold) ledger.Hold {
	h := p.assignment(was)
	h.Fences = p.fences(was, h)
	place := p.volume.NodeVolume(h.Node)
	p.keepClock(was, &h, place)
	if place.OnlyLeft() {
		place = nil
	}
	return p.unwritten(h, was, place)
}

// assignment is the hold as it should be, but for what is taken by force, and though
// all that is new may be that the last user has left lately.
func (p *planner) assignment(was ledger.Hold) ledger.Hold {
	h := ledger.Hold{Version: was.Version, Transitions: was.Transitions, Grants: was.Grants, PVs: p.names()}
	h.Node = p.holder(was)
	if h.Node != "" && h.Node != was.Node {
		h.Transitions = min(p.transitions(was)+1, ledger.MaxTransitions)
	}
	if h.Node == "" {
		if h.Transitions > 0 {
			h.State = ledger.HoldFree
		}
		return h
	}
	place := p.volume.NodeVolume(h.Node)
	if place.OnlyLeft() {
		place = nil // what the hold says is all that is known of it
	}
	h.Requesters = p.requesters(was, p.volume.NodeVolume(h.Node))
	h.NodeUID, h.BootID, h.SystemUUID = p.holderNode(was, h.Node, p.volume.NodeVolume(h.Node))
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

// names are the PersistentVolumes that a hold of the volume lists.
func (p *planner) names() []string {
	names := p.volume.PVs()
	return slices.Clip(names[:min(len(names), maxListed)])
}

// holderNode tells the holder's Node, its boot and its machine: those for which the volume was
// granted, or what has come since, as soon as its word on the volume can be believed.
func (p *planner) holderNode(was ledger.Hold, name ledger.NodeName, place *ledger.NodeVolume) (uid, boot, machine string) {
	n := p.snapshot.Node(name)
	switch {
	case was.Node == name && place != nil && p.volume.ID.NoAttach() && bars(p.snapshot, p.volume, place) && former(p.snapshot, p.volume, place, p.now).over():
		return n.UID, n.BootID, n.SystemUUID
	case was.Node == name && (n == nil || !n.Exists || was.LeftAtAnother(n) || place != nil && Doubted(p.snapshot, p.volume, place) && !p.emptied(place)):
		return was.NodeUID, was.BootID, was.SystemUUID
	case n == nil:
		return "", "", ""
	case n.BootID == "" && was.Node == name && was.NodeUID == n.UID:
		return n.UID, was.BootID, was.SystemUUID // it has said before
	}
	return n.UID, n.BootID, n.SystemUUID
}

// unwritten is the hold as it was, when all that is new is that the last user
// has left lately.
func (p *planner) unwritten(h, was ledger.Hold, place *ledger.NodeVolume) ledger.Hold {
	stale := h
	stale.Requesters = was.Requesters
	if len(h.Requesters) == 0 && len(was.Requesters) > 0 && sameHold(was, stale) && !p.keptAfterTicket(was, h, place) && p.lingers(place) {
		return stale
	}
	return h
}

// keptAfterTicket says whether a volume is kept at its node for a while after its last user has left (detachDelay), and its
// hold names a ticket. It does not go on to do so: should the node fall silent meanwhile, the ticket's holder would count as one
// who may use the volume there (mayBeUnlisted).
func (p *planner) keptAfterTicket(was, h ledger.Hold, place *ledger.NodeVolume) bool {
	return place != nil && was.NamesTicket() && p.delayed(h, p.snapshot.Node(place.Node), place) > 0
}

// lingering is for how long a hold may go on naming those who have left: as a
// rule the volume has left its node, too, by then, and the hold is written anyway.
const lingering = 30 * time.Second

// lingers says whether it is too early to write a hold for no other reason than
// that the last user has left.
func (p *planner) lingers(place *ledger.NodeVolume) bool {
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

// transitions is the highest number that the hold or any attachment has had:
// a hold that somebody deleted does not start anew.
func (p *planner) transitions(was ledger.Hold) int64 {
	most := was.Transitions
	for i := range p.volume.NodeVolumes {
		most = max(most, p.volume.NodeVolumes[i].Transitions())
	}
	return most
}

// holder is the node that has the volume: the one that had it, as long as it
// may still be there or somebody there claims it; then whoever it is promised
// to; then whoever ranks first.
func (p *planner) holder(was ledger.Hold) ledger.NodeName {
	at := was.Node
	if was.Stays && at != "" && !p.lost(at) {
		return at
	}
	if at == "" {
		at = p.found()
	}
	if place := p.volume.NodeVolume(at); place != nil && (p.mayBeAttached(place) || p.hasRight(place, true)) {
		if first := p.givesWay(place); first != "" {
			return first
		}
		return at
	}
	if p.onlyHeld {
		return "" // it is over with what made the volume exclusive
	}
	if next := was.Next.Node; next != "" && p.hasRight(p.volume.NodeVolume(next), true) {
		return next
	}
	// Nobody gets it while it may be anywhere else.
	if at = p.found(); at != "" {
		return at
	}
	_, node := p.best("")
	return node
}

// found is a node where the volume is, though no hold says so: one with
// somebody living there first, then one where it is attached.
func (p *planner) found() ledger.NodeName {
	var best *ledger.NodeVolume
	score := -1
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
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

// living says whether anybody at a node claims the volume and will stay.
func (p *planner) living(place *ledger.NodeVolume) bool {
	if place == nil || !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
		return false
	}
	for _, u := range place.Users {
		if claimStateOf(p.snapshot, u) == active && !p.outranked(u, place.Node) {
			return true
		}
	}
	return false
}

// best is who of those living ranks first, at a node other than not.
func (p *planner) best(not ledger.NodeName) (ledger.User, ledger.NodeName) {
	var who ledger.User
	var at ledger.NodeName
	var first Request
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		if place.Node == not || !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
			continue
		}
		for _, u := range place.Users {
			if claimStateOf(p.snapshot, u) != active {
				continue
			}
			if r := requestOf(p.snapshot, u); at == "" || p.compareClaims(claim{u, place.Node, r}, claim{who, at, first}) < 0 {
				who, at, first = u, place.Node, r
			}
		}
	}
	return who, at
}

// promiseNext keeps the promise that was made while whoever has it is there, and
// else makes one to who ranks first.
func (p *planner) promiseNext(was ledger.Hold, holder ledger.NodeName) ledger.Promise {
	if next := was.Next; next.Node != "" && next.Node != holder && p.required {
		lost := fenced(p.snapshot, p.volume, next.Node, p.now)
		if place := p.volume.NodeVolume(next.Node); place != nil {
			for _, u := range place.Users {
				st := claimStateOf(p.snapshot, u)
				if st == active && (p.outranked(u, next.Node) || p.goesAfter(u, holder)) {
					continue // it has yet to be told
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

// requesters lists for whom the node has the volume; and the tickets for which it had it, while their holders may
// use it there: so the next leader knows of them.
func (p *planner) requesters(was ledger.Hold, place *ledger.NodeVolume) []ledger.Requester {
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
			list = append(list, *by) // a hold before did not say so, or is not there any more
		}
	}
	return listed(list, p.migrations(place)...)
}

// migrations lists the live migrations to other nodes than the holder's.
func (p *planner) migrations(holder *ledger.NodeVolume) []ledger.Requester {
	var list []ledger.Requester
	for i := range p.volume.NodeVolumes {
		if place := &p.volume.NodeVolumes[i]; place != holder {
			for _, u := range place.Users {
				if migrating(p.snapshot, p.volume, u) {
					list = append(list, requester(p.snapshot, u))
				}
			}
		}
	}
	return list
}

// waiting lists who claims the volume at other nodes, but for the next one.
func (p *planner) waiting(holder ledger.NodeName, next ledger.Requester) []ledger.Requester {
	var list []ledger.Requester
	for i := range p.volume.NodeVolumes {
		if place := &p.volume.NodeVolumes[i]; place.Node != holder && !p.migratesTo(place) {
			for _, u := range place.Users {
				if who := requester(p.snapshot, u); claimStateOf(p.snapshot, u) == active && who.UID != next.UID {
					list = append(list, who)
				}
			}
		}
	}
	return listed(list)
}

// listed sorts requesters, drops doubles (a pod and its reservation), and bounds them: where
// there is no room for all, those that must be listed are.
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

// describe says in the hold what keeps the volume where it should not be.
func (p *planner) describe(was ledger.Hold, h *ledger.Hold, place *ledger.NodeVolume) {
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
		return // as it should be: under way, or who yields has not been told yet; or refused says it
	case ForeignAttachment:
		h.State = ledger.HoldUnknown
	default:
		h.State = ledger.HoldDetachPending
	}
	h.Reason, h.Message = stuck.Code, stuck.Message()
}

// astray is what a hold says of a volume that may be at other nodes than the holder's, too;
// false where it is at none. The node that is to have it next is not in its own way: of that one
// the hold says what keeps the volume at the holder's node.
func (p *planner) astray(h *ledger.Hold, place *ledger.NodeVolume) (Reason, bool) {
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

// revoke says in the hold that a ticket at a fenced node has to be told that it
// gives way before the volume goes elsewhere; that has it looked at, too, where
// only time has fenced the node.
func (p *planner) revoke(h *ledger.Hold) {
	for _, n := range []ledger.NodeName{h.Node, h.Next.Node} {
		if place := p.volume.NodeVolume(n); place != nil && p.hasGrantee(place) && fenced(p.snapshot, p.volume, n, p.now) {
			reason := Reason{Code: NodeFenced, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: n}
			h.Reason, h.Message = reason.Code, reason.Message()
		}
	}
}

// clock keeps in the hold how far a rule of force has come for its place, so
// that another controller goes on from there: when the volume waits for it, and
// for a node that does not answer also while somebody there still claims it. What the
// hold says of that already stays while this process can't tell whether it goes on.
func (p *planner) clock(was ledger.Hold, h *ledger.Hold, place *ledger.NodeVolume) {
	if place == nil {
		return
	}
	n, f := p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now)
	if f.Former != "" {
		p.awaits(f) // the next leader can't tell whether that machine was seen in between
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

// awaits has the volume looked at again when a rule of force has come a step further, or
// its time is over: what is told of it changes then. Where it stands still until the node's Lease is
// read again, the next step may be a moment away for as long.
func (p *planner) awaits(f forcing) {
	if f.Left > 0 {
		p.recheck(min(f.Left, max(f.Step-f.Elapsed%f.Step, minWait)))
	}
}

// keepClock keeps in the hold that a rule's time is over which was kept there while it
// ran, until something is taken by it: there may be nothing that Moorage may take.
func (p *planner) keepClock(was ledger.Hold, h *ledger.Hold, place *ledger.NodeVolume) {
	if place == nil || was.Force == nil || was.Force.Node != place.Node {
		return
	}
	n, f := p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now)
	if _, taken := h.Fence(place.Node); taken || !f.over() || f.Former != "" || f.Rule != was.Force.Rule || f.Limit == 0 {
		return
	}
	h.Force = outage(p.volume, place, n, f)
}

// same says whether two pointers lead to the same, or to nothing.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// sameHold says whether two holds say the same. A hold of before that names no boot, or no
// machine, is not written only to name it, but see lacksBoot.
func sameHold(a, b ledger.Hold) bool {
	return a.Node == b.Node && a.NodeUID == b.NodeUID && (a.BootID == b.BootID || a.BootID == "") && (a.SystemUUID == b.SystemUUID || a.SystemUUID == "") && a.Next == b.Next &&
		a.Transitions == b.Transitions && a.State == b.State && a.Stays == b.Stays && a.Reason == b.Reason &&
		a.Message == b.Message && same(a.Force, b.Force) && slices.Equal(a.Fences, b.Fences) &&
		slices.Equal(a.Requesters, b.Requesters) && slices.Equal(a.Waiting, b.Waiting) &&
		(slices.Equal(a.PVs, b.PVs) || b.Node == "")
}
