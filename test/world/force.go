// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// proof permits a forced detach of a volume from a node: a rule held when the volume left volumesAttached
// of this Node, with this VolumeAttachment. It is void once the node is Ready again, or the volume is
// attached there again.
type proof struct {
	attachment string // UID
	ground     ground
	made       int64 // the world's version right before
}

// ground is the basis of a rule of force.
type ground uint8

const (
	// noGround: no rule holds.
	noGround ground = iota
	// byWord: a report says that the machine is dead.
	byWord
	// byStorage: the storage has cut the machine off.
	byStorage
	// byUnpublish: unpublishing the volume takes the machine's access away. The volume may leave a living
	// machine, and be elsewhere only after that.
	byUnpublish
	// byTime: a policy's time alone.
	byTime
)

// ended is a proof that ended at a version of the world, when the node was Ready again, or
// its Node was made again.
type ended struct {
	proof
	at    int64
	again int64 // when the Node was made again meanwhile; 0: it existed all the time
	// first and last are when an earlier proof of the same attachment was made, and ended.
	first, last int64
}

// permits says whether a deletion was sent on a read of the node, served at since, while this proof or the
// one before stood.
func (e ended) permits(uid string, since int64) bool {
	return e.proof.permits(uid, since) && since < e.at || e.ground >= byStorage && e.attachment == uid && e.first < since && since < e.last
}

func (j *Judge) end(at At, e ended) {
	switch old := j.ended[at]; {
	case old.attachment != e.attachment:
	case old.made == e.made:
		e.first, e.last = old.first, old.last
	default:
		e.first, e.last = old.made, old.at
	}
	j.ended = with(j.ended, at, e)
}

// prove notes that a rule holds for a volume that leaves volumesAttached.
func (j *Judge) prove(w *World, at At) bool {
	ground := j.rule(w, at)
	if ground == byWord && w.cutOff(at) {
		ground = byStorage // the report is true, and the machine lives
	}
	if ground != noGround {
		a, _ := w.Attachment(ledger.AttachmentName(at.Volume, at.Node))
		j.proofs = with(j.proofs, at, proof{a.UID, ground, w.version})
		j.ended = without(j.ended, at)
	}
	return ground != noGround
}

// void ends the proofs that a node is no longer used: it is Ready again.
func (j *Judge) void(w *World, n ledger.NodeName) {
	for at, p := range j.proofs {
		if at.Node == n {
			j.proofs = without(j.proofs, at)
			j.end(at, ended{proof: p, at: w.version})
		}
	}
}

// registered notes which rules of time held for a deleted Node that is made again: they end then. None held
// before the node ceased to be Ready.
func (j *Judge) registered(w *World, n ledger.NodeName) {
	for _, key := range w.Keys(Attachments) {
		a, _ := w.Attachment(key)
		v, known := w.Source(a)
		if at := (At{v, n}); known && a.Node == n {
			if ground := j.rule(w, at); ground >= byUnpublish {
				j.end(at, ended{proof: proof{a.UID, ground, j.notReady[n].at - 1}, at: w.version, again: w.version})
			}
		}
	}
	for _, m := range w.machinesOf(n) {
		for _, v := range m.Staged {
			if at := (At{v, n}); v.NoAttach() && j.rule(w, at) == byTime {
				j.end(at, ended{proof: proof{ground: byTime}, at: w.version, again: w.version})
			}
		}
	}
}

// wordGone notes the volumes that a dead machine still has mounted after its Node was deleted, if a report
// said so until then: its reader may delete their VolumeAttachments.
func (j *Judge) wordGone(w *World, n ledger.NodeState) {
	for _, key := range w.Keys(Attachments) {
		a, _ := w.Attachment(key)
		v, known := w.Source(a)
		if at := (At{v, n.Name}); known && a.Node == n.Name && j.ruleOf(w, at, n, true) == byWord && w.cutOff(at) {
			j.end(at, ended{proof: proof{a.UID, byStorage, j.notReady[n.Name].at - 1}, at: w.version})
		}
	}
}

// readyAgain notes which rules of time held for a node until it was Ready, for volumes missing in its
// volumesAttached: these need not leave it, as after the Node was made again, and no proof was noted.
func (j *Judge) readyAgain(w *World, was ledger.NodeState) {
	for _, key := range w.Keys(Attachments) {
		a, _ := w.Attachment(key)
		v, known := w.Source(a)
		if at := (At{v, was.Name}); known && a.Node == was.Name {
			if p, holds := j.unlisted(w, at, a.UID, was); holds {
				j.end(at, ended{proof: p, at: w.version, again: j.ended[at].again})
			}
		}
	}
}

// unlisted is the proof by a rule of time for a volume that need not leave volumesAttached first, since a
// state of its Node, which is not Ready, omits it there.
func (j *Judge) unlisted(w *World, at At, attachment string, n ledger.NodeState) (proof, bool) {
	if _, proved := j.proofs[at]; proved || !lacks(n.Reported, at.Volume) {
		return proof{}, false
	}
	ground := j.ruleOf(w, at, n, true)
	return proof{attachment, ground, j.notReady[n.Name].at - 1}, ground >= byUnpublish
}

// forget ends the proofs about a volume that is attached again.
func (j *Judge) forget(at At) {
	j.proofs, j.ended = without(j.proofs, at), without(j.ended, at)
}

// overtaken says whether the deletion of a VolumeAttachment, proved by time, was sent on a read of the node
// while the proof stood, and the node was Ready again before it was carried out. No precondition of a
// DELETE excludes that. It is listed.
func (j *Judge) overtaken(at At, uid string, since int64) bool {
	p, noted := j.ended[at]
	if !noted || !p.permits(uid, since) {
		return false
	}
	j.Overtaken = append(slices.Clip(j.Overtaken), fmt.Sprintf("%s at %s", at.Volume, at.Node))
	return true
}

// permits says whether a deletion that was sent on a read of the node, served at since, relied on the
// proof, and not on a report that the machine is dead.
func (p proof) permits(uid string, since int64) bool {
	return p.ground >= byStorage && p.attachment == uid && since > p.made
}

// Overtakes says whether a deletion in flight is no fault when it is carried out after
// the node is Ready again.
func (j *Judge) Overtakes(w *World, at At, uid string, since int64) bool {
	p, stands := j.proofs[at]
	if n, exists := w.Node(at.Node); !stands && exists && n.Ready != ledger.ReadyTrue {
		p, stands = j.unlisted(w, at, uid, n)
	}
	if p, noted := j.ended[at]; noted && !stands {
		return p.permits(uid, since)
	}
	return stands && p.permits(uid, since)
}

// rule is the ground of a rule of force that holds for a volume at a node now.
func (j *Judge) rule(w *World, at At) ground {
	n, exists := w.Node(at.Node)
	return j.ruleOf(w, at, n, exists)
}

func (j *Judge) ruleOf(w *World, at At, n ledger.NodeState, exists bool) ground {
	policy := w.policy(at.Volume)
	unpublish := policy.UnpublishFences && !at.Volume.NoAttach() && w.toUnpublish(at)
	switch {
	case exists && n.Ready == ledger.ReadyTrue:
		return j.former(w, at, n, j.used(w, at))
	case exists && (n.OutOfService || w.fenced(n, policy.FencedCondition)):
		return byWord
	case exists && policy.NetworkFence.Class != "" && w.cutOff(at):
		return byStorage
	case exists && n.Shutdown && unpublish:
		return byUnpublish
	}
	silent, noted := j.notReady[at.Node]
	since := silent.since
	if d := policy.AfterUnreachable; d != nil && *d >= 0 && noted && j.lasts(w, at.Node, since, *d) {
		if unpublish {
			return byUnpublish
		}
		return byTime
	}
	after := rules.DefaultAfterPodGone
	if policy.AfterPodGone != nil {
		after = *policy.AfterPodGone
	}
	left := j.left[at] // zero: never used here
	if j.Leases {
		left = later(left, since)
	}
	if after >= 0 && !j.used(w, at) && len(j.holders(w, at)) == 0 && (!j.Leases || noted) && j.lasts(w, at.Node, left, after) {
		return byTime
	}
	return noGround
}

// Fence sets a condition of a Node that says that the machine writes no more, or removes all such
// conditions. It says whether there is such a Node.
func (w *World) Fence(name ledger.NodeName, condition string) bool {
	n, exists := w.Node(name)
	if !exists {
		return false
	}
	n.Fenced = nil
	if condition != "" {
		n.Fenced = []ledger.FencedCondition{{Type: condition, Since: w.Now.Unix()}}
	}
	w.Put(n)
	return true
}

// CutOff has a driver's storage cut off all machines of a node, and then the Node say so. It says whether
// the Node exists.
func (w *World) CutOff(name ledger.NodeName, driver string) bool {
	n, exists := w.Node(name)
	if !exists {
		return false
	}
	for _, m := range w.machinesOf(name) {
		m.Cut = true
	}
	n.CutOff = []string{driver}
	w.Put(n)
	return true
}

// CutsOff says whether the storage has cut off the machine of a node that has a systemUUID.
func (w *World) CutsOff(name ledger.NodeName, systemUUID string) bool {
	return slices.ContainsFunc(w.machinesOf(name), func(m *Machine) bool { return m.Cut && m.SystemUUID() == systemUUID })
}

// LetIn removes the report from the Node that its storage has cut it off, and then the storage lets its
// machines in again.
func (w *World) LetIn(name ledger.NodeName) {
	if n, exists := w.Node(name); exists {
		n.CutOff = nil
		w.Put(n)
	}
	for _, m := range w.machinesOf(name) {
		m.Cut = false
		w.Judge.letsIn(w, m)
	}
}

// letsIn: no machine reaches a volume again that another one writes to by now.
func (j *Judge) letsIn(w *World, m *Machine) {
	for _, v := range m.Staged {
		for _, other := range w.Machines {
			if other != m && w.Exclusive(v) && w.writes(m, v) && w.writes(other, v) && !j.pair(w, v, m.Node, other.Node) {
				j.fault("the storage lets %s in, which has %s mounted as %s has", m.Node, v, other.Node)
			}
		}
	}
}

// cutOff says whether no machine of a node that has a volume reaches its storage.
func (w *World) cutOff(at At) bool {
	cut := false
	for _, m := range w.machinesOf(at.Node) {
		if m.Cut {
			cut = true
		} else if m.Uses(at.Volume) || slices.Contains(w.Disks.At[at.Volume], m.ID) {
			return false
		}
	}
	return cut
}

// fenced says whether a Node has a condition that was set after its kubelet renewed its
// Lease last.
func (w *World) fenced(n ledger.NodeState, condition string) bool {
	return condition != "" && slices.ContainsFunc(n.Fenced, func(c ledger.FencedCondition) bool {
		return c.Type == condition && time.Unix(c.Since, 0).After(w.renewed(n.Name))
	})
}

// former is the ground of a rule about machines that had a Ready node's name before: the policy's times,
// from when the Node ceased to name them. The present machine must not use the volume, nor any pod there
// (used) unless it waits for volumesAttached.
func (j *Judge) former(w *World, at At, n ledger.NodeState, used bool) ground {
	policy, since := w.policy(at.Volume), j.named[at.Node]
	others := false
	for _, m := range w.machinesOf(at.Node) {
		if m.SystemUUID() != since.machine {
			others = true
		} else if m.Uses(at.Volume) {
			return noGround
		}
	}
	waits := lacks(n.Reported, at.Volume)
	if !others || since.machine == "" || n.SystemUUID != since.machine || used && !waits {
		return noGround
	}
	left := j.left[at]
	if waits {
		left = since.since
	}
	after := rules.DefaultAfterPodGone
	if policy.AfterPodGone != nil {
		after = *policy.AfterPodGone
	}
	lasts := func(since time.Time, long *time.Duration) bool {
		return long != nil && *long >= 0 && w.Now.Sub(since) >= *long
	}
	if lasts(since.since, policy.AfterUnreachable) || lasts(later(since.since, left), &after) {
		return byTime
	}
	return noGround
}

// toUnpublish says whether a volume has a VolumeAttachment at a node that permits its unpublish there, or
// is attached to no machine of it.
func (w *World) toUnpublish(at At) bool {
	if _, exists := w.Attachment(ledger.AttachmentName(at.Volume, at.Node)); exists {
		return true
	}
	return !slices.ContainsFunc(w.machinesOf(at.Node), func(m *Machine) bool { return slices.Contains(w.Disks.At[at.Volume], m.ID) })
}

// lasts says whether a state has lasted for long enough, counted from the last renewal of the node's Lease
// if that came later.
func (j *Judge) lasts(w *World, n ledger.NodeName, since time.Time, long time.Duration) bool {
	if j.Leases {
		since = later(since, w.heard(n))
	}
	return w.Now.Sub(since) >= long
}

// heard is the last renewal of a node's Lease that a reader of Leases must know of. The Lease of a
// deleted Node is not read.
func (w *World) heard(n ledger.NodeName) time.Time {
	var t time.Time
	until := w.Now
	if end, gone := w.Judge.gone[n]; gone {
		until = end.since
	}
	for _, m := range w.machinesOf(n) {
		if until.Sub(m.Streak) < told {
			t = later(t, m.Before)
		} else {
			t = later(t, m.Renewed)
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// mayTake says whether a volume may be taken from a machine, mounted or not: the machine reaches no disk,
// and a rule of force holds or has held; or the detach takes its access away; or time alone has forced it,
// which is listed, since the machine lives.
func (j *Judge) mayTake(w *World, m *Machine, v ledger.VolumeID) bool {
	return j.mayBeBeside(w, m, v) || j.ground(w, At{v, m.Node}) == byUnpublish
}

// ground is the ground of a rule of force for a volume at a node that holds, or has held and was not voided
// since: the weaker of the two. A volume taken because an unpublish cuts the machine off may be elsewhere
// only after that.
func (j *Judge) ground(w *World, at At) ground {
	is := j.rule(w, at)
	switch p, proved := j.proofs[at]; {
	case !proved:
		return is
	case p.ground == byUnpublish:
		return byUnpublish
	default:
		return max(is, p.ground)
	}
}

// mayBeBeside says whether a volume may be elsewhere while it is attached to a machine: as mayTake, but
// not before a detach that takes the machine's access away.
func (j *Judge) mayBeBeside(w *World, m *Machine, v ledger.VolumeID) bool {
	switch ground := j.ground(w, At{v, m.Node}); {
	case ground == noGround:
		return false
	case m.Dead():
		return true
	case ground != byTime:
		return false
	}
	j.listByTime(m, v)
	return true
}

// takenByTime says whether a volume was taken from a machine by time alone, and detached, before its node
// was Ready again. If a detach takes nothing away, the machine still writes to it then.
func (j *Judge) takenByTime(m *Machine, v ledger.VolumeID) bool {
	p, noted := j.ended[At{v, m.Node}]
	if !noted || p.ground != byTime || !v.NoAttach() && !j.doomed[p.attachment] {
		return false
	}
	j.listByTime(m, v)
	return true
}

func (j *Judge) listByTime(m *Machine, v ledger.VolumeID) {
	if text := fmt.Sprintf("%s at %s", v, m.ID); !slices.Contains(j.ByTime, text) {
		j.ByTime = append(slices.Clip(j.ByTime), text)
	}
}

// mayTakeFrom is mayBeBeside for all machines of a node that use a volume, or have it attached.
func (j *Judge) mayTakeFrom(w *World, at At) bool {
	for _, m := range w.machinesOf(at.Node) {
		if (m.Uses(at.Volume) || slices.Contains(w.Disks.At[at.Volume], m.ID)) && !j.mayBeBeside(w, m, at.Volume) {
			return false
		}
	}
	return j.ground(w, at) != noGround
}

// machinesOf lists the machines that have, or had, a node's name, by ID.
func (w *World) machinesOf(n ledger.NodeName) []*Machine {
	var list []*Machine
	for _, m := range w.Machines {
		if m.Node == n {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *Machine) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Proved says whether a volume was taken from a node by a rule of force that held, and the proof still
// stands: a number for its ground, and the UID of its VolumeAttachment.
func (j *Judge) Proved(at At) (ground byte, attachment string) {
	p := j.proofs[at]
	return byte(p.ground), p.attachment
}

// Given is the node of a volume's hold, now or last, and its highest number of transitions.
func (j *Judge) Given(v ledger.VolumeID) (ledger.NodeName, int64) {
	return j.numbers[v].node, j.numbers[v].transitions
}

// Led says whether a pod's volumes were ever known.
func (j *Judge) Led(pod string) bool { return len(j.known[pod]) > 0 }

// Lost says why a detach under a mount at a machine is listed (Judge.SameBoot): its Node was deleted with
// the volume mounted; the leader does not know that; the volume was taken from that mount by force; and the
// Node was gone then, or has been since.
func (j *Judge) Lost(m *Machine, v ledger.VolumeID) (noted, untold, taken, gone bool) {
	at := mount{m.ID, m.Boots, v}
	lost, noted := j.lost[at]
	gone, taken = j.forced[at]
	return noted, j.untold(lost), taken, gone
}

// GoneBefore says whether a missing Node was deleted before the present leader had seen everything.
func (j *Judge) GoneBefore(n ledger.NodeName) bool {
	end, gone := j.gone[n]
	return gone && end.at <= j.Began
}

// Doomed says whether a VolumeAttachment was deleted while its volume might be taken by force from its
// mount: the outcome is no fault.
func (j *Judge) Doomed(uid string) bool { return j.doomed[uid] }

// Left says whether the last unfinished pod with a volume is known to have left a node, from when a rule of
// force counts.
func (j *Judge) Left(at At) bool {
	_, noted := j.left[at]
	return noted
}
