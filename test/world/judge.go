// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Judge watches the real objects, disks and mounts, and knows no component's beliefs. It shares no rule
// with internal/rules.
type Judge struct {
	// Faults are the broken rules, in order.
	Faults []string
	// Exact has grants judged by the present limits, if nothing lies between a decision and its write;
	// otherwise by the highest limits of the node since all controllers knew everything (AllKnown).
	Exact bool
	// ByTime are the machines that lived when time alone forced a volume from them: no fault, since a
	// policy says so, but all that it can break.
	ByTime []string
	// Overtaken are forced detaches by time alone that were right when sent, and carried out when their
	// nodes were Ready again: no fault, since a DELETE can't test the Node, but all that it can break.
	Overtaken []string
	// SameBoot are volumes that were detached from machines that had them mounted: their Nodes were deleted
	// before the leader began, and made again by the same boot, and no hold has named that boot to any
	// leader: for a shared volume none does, and for an exclusive volume it may name the boot before. No
	// fault, since nothing in the API tells that leader (residual/shared-same-boot,
	// residual/booted-between-leaders). And volumes that were detached from there again, after they were
	// taken from that mount by force, with the Node gone since: its end ends the memory of that
	// (residual/node-deleted-after-force).
	SameBoot []string
	// Began is when the leader had seen everything; 0: not told, and nothing is a SameBoot.
	Began int64
	// Leases has the judge count rules' times correctly: from the latest of the last user's end, the end of
	// Ready, and the last renewal of its Lease.
	Leases bool
	// Binds says that pods may be bound at any time, Shrinks that limits may shrink. No scheduler
	// tells the granter of tickets about a bind: it sees the bound pod.
	Binds, Shrinks bool
	// Alone says that one Moorage scheduler places all pods: it knows each bind.
	Alone bool

	left      map[At]time.Time             // when the last unfinished pod or ticket with the volume left the node
	notReady  map[ledger.NodeName]outage   // since when the node is not Ready
	named     map[ledger.NodeName]naming   // the machine that the Node names
	gone      map[ledger.NodeName]deletion // of Nodes that do not exist
	proofs    map[At]proof                 // taken out of volumesAttached by a rule of force that held
	ended     map[At]ended                 // proofs that ended as their nodes were Ready again
	doomed    map[string]bool              // VolumeAttachments, by UID, deleted while their volumes might be taken by force
	numbers   map[ledger.VolumeID]given    // by the volume's hold
	known     map[string][]ledger.VolumeID // the last known volumes of a pod
	limits    map[slots]int32              // the highest limit of a CSINode
	highest   map[slots]int32              // the highest limit ever: a scheduler may not have seen a lower one
	beside    map[At]bool                  // made for a live migration, while there are two
	over      map[ledger.VolumeID]bool     // volumes with an ended live migration
	bound     map[string]bool              // pods, by UID, that were bound since the world began
	placed    map[string]bool              // the pods that a scheduler of Moorage has bound
	shaken    map[string]bool              // the pods among them whose node has been out of service since, or had no Node
	shook     map[ledger.NodeName]int64    // the world's version when a node was last known to be in trouble: others may take its volumes
	taken     map[At]bool                  // slots that those take
	counts    map[At]int64                 // the slots known to the granter, and the world's version by then
	unlimited map[At]bool                  // wanted there by a pod that did not opt in, or has started, or by a granted ticket, now or before
	leavers   map[At]bool                  // volumes that have left nodes, perhaps unknown to the granter, while pods might be bound, or once shrank
	shrank    bool                         // a lower limit than before counts (AllKnown)
	been      map[At]bool                  // places of such pods' volumes, now or before: the granter may not know that they have left
	madeFor   map[string]ledger.VolumeID   // by VolumeAttachments, by UID: their PersistentVolumes may be made again for other disks
	lost      map[mount]loss               // mounts from before the deletion of their Nodes, while they last
	forced    map[mount]bool               // mounts under which volumes were detached by force, until a pod gets them again: whether their Nodes were gone then, or since
	unsure    map[At]bool                  // where a Node was deleted or made while the volume might be there (MayBeUnknown)
	told      map[string][]ledger.VolumeID // by satisfied tickets, by UID: their volumes when they were told that they have them
	unheard   map[At]bool                  // volumes that tickets have lost while their nodes were not Ready

	// Cooperative: kube-controller-manager also attaches and detaches, and is not judged. Moorage is judged
	// by docs/internals/invariants.md for that mode.
	Cooperative bool
	theirs      map[At]bool // detached by kube-controller-manager
}

// given is the node of a volume's hold, and its highest transitions.
type given struct {
	node        ledger.NodeName
	transitions int64
}

// outage is since when a node has not been Ready, and the world's version when that began.
type outage struct {
	since time.Time
	at    int64
}

// deletion is when a Node was deleted, and the world's version by then.
type deletion struct {
	since time.Time
	at    int64
}

// naming is the systemUUID that a Node names, and since when it has named no other.
type naming struct {
	machine string
	since   time.Time
}

// slots names a driver's slots at a node.
type slots struct {
	node   ledger.NodeName
	driver string
}

func newJudge() Judge {
	return Judge{
		left: map[At]time.Time{}, notReady: map[ledger.NodeName]outage{}, proofs: map[At]proof{}, ended: map[At]ended{},
		numbers: map[ledger.VolumeID]given{}, known: map[string][]ledger.VolumeID{},
		limits: map[slots]int32{}, beside: map[At]bool{}, over: map[ledger.VolumeID]bool{}, theirs: map[At]bool{},
	}
}

func (j *Judge) clone() Judge {
	c := *j // its maps are replaced, never changed
	c.Faults = slices.Clip(j.Faults)
	return c
}

func (j *Judge) fault(format string, args ...any) {
	j.Faults = append(j.Faults, fmt.Sprintf(format, args...))
}

// changed keeps the judge's memory of objects.
func (j *Judge) changed(w *World, was, is ledger.Event) {
	if before, after, both := nodeStates(was, is); both && before.Ready != ledger.ReadyTrue && after.Ready == ledger.ReadyTrue {
		j.readyAgain(w, before)
	}
	for _, e := range []ledger.Event{was, is} {
		switch e := e.(type) {
		case ledger.Pod:
			j.podChanged(w, e)
		case ledger.NodeState:
			j.nodeChanged(w, e.Name)
			j.shakes(w, e, is == nil)
		case ledger.NodeDrivers:
			j.limitsChanged(e)
		}
	}
	if before, was := was.(ledger.NodeState); was {
		after, _ := is.(ledger.NodeState)
		j.listsNoMore(w, before, after)
	}
	if n, made := is.(ledger.NodeState); made && was == nil {
		j.gone = without(j.gone, n.Name)
		j.registered(w, n.Name)
		j.nodeReplaced(w, n.Name)
	}
	if n, gone := was.(ledger.NodeState); gone && is == nil {
		j.losesNode(w, n)
		j.nodeReplaced(w, n.Name)
	}
	if a, was := was.(ledger.Attachment); was && is == nil {
		j.leftOver(w, At{j.madeFor[a.UID], a.Node})
		j.leftPast(w)
		v, _ := w.Attaches(a)
		j.migrated(v)
		j.detachedLast(w, At{j.madeFor[a.UID], a.Node})
		j.unheard = without(j.unheard, At{j.madeFor[a.UID], a.Node})
		j.madeFor = without(j.madeFor, a.UID)
	}
	if a, is := is.(ledger.Attachment); is && was == nil {
		v, _ := w.Attaches(a)
		j.madeFor = with(j.madeFor, a.UID, v)
		j.attachedPast(w, At{v, a.Node})
		if a.Ours {
			j.knowsPast(w, At{v, a.Node})
		}
	}
	if t, ok := is.(ledger.Ticket); ok {
		before, _ := was.(ledger.Ticket)
		j.ticketChanged(w, before, t)
		j.tellsDetached(w, before, t)
		for _, v := range w.TicketVolumes(t) {
			if t.Phase == ledger.TicketGranted {
				j.unlimited = with(j.unlimited, At{v, t.Node}, true)
			}
		}
	}
	if t, was := was.(ledger.Ticket); was && is == nil {
		j.ticketLoses(w, t)
	}
	if t, was := was.(ledger.Ticket); was && is == nil && t.Phase == ledger.TicketGranted {
		for _, v := range w.TicketVolumes(t) {
			j.leftOver(w, At{v, t.Node})
		}
	}
	if t, was := was.(ledger.Ticket); was && t.Type == ledger.TypeLiveMigration && t.Phase == ledger.TicketGranted {
		for _, v := range w.migrationVolumes(t) {
			j.over = with(j.over, v, true)
		}
	}
	if after, ok := is.(ledger.HoldSeen); ok {
		j.holdChanged(was, after)
	}
}

// limitsChanged: a grant may have been decided before a limit shrank.
func (j *Judge) limitsChanged(n ledger.NodeDrivers) {
	for _, d := range n.Drivers {
		limit, at := limitOf(d), slots{n.Node, d.Name}
		if was, noted := j.highest[at]; !noted || was < limit {
			j.highest = with(j.highest, at, limit)
		}
		if !j.Exact {
			limit = max(limit, j.limits[at])
		}
		j.limits = with(j.limits, at, limit)
	}
}

func limitOf(d ledger.DriverOnNode) int32 {
	if d.Limit == ledger.NoLimit {
		return math.MaxInt32
	}
	return d.Limit
}

// UsedBy lists a pod's volumes that need an attachment; a known volume is remembered after its claim or
// PersistentVolume is gone.
func (j *Judge) UsedBy(w *World, p ledger.Pod) []ledger.VolumeID {
	if list, complete := w.VolumesOf(p); (complete || len(list) > len(j.known[p.UID])) && !slices.Equal(list, j.known[p.UID]) {
		j.known = maps.Clone(j.known)
		j.known[p.UID] = list
	}
	return j.known[p.UID]
}

func (j *Judge) podChanged(w *World, p ledger.Pod) {
	used := j.UsedBy(w, p) // also of a pod that is not bound yet: its claims may be lost by then
	if p.Node == "" {
		return
	}
	defer j.podPast(w, p)
	for _, v := range used {
		at := At{v, p.Node}
		if p.OptedOut || p.Started {
			j.unlimited = with(j.unlimited, at, true)
		}
		if j.used(w, at) {
			j.left = without(j.left, at)
		} else if _, noted := j.left[at]; !noted {
			j.left = with(j.left, at, w.Now)
		}
	}
}

// used says whether an unfinished pod at a node uses a volume.
func (j *Judge) used(w *World, at At) bool {
	for _, p := range w.PodsAt(at.Node) {
		if p.Phase != ledger.PodFinished && slices.Contains(j.UsedBy(w, p), at.Volume) {
			return true
		}
	}
	return false
}

// nodeStates are a Node's states before and after a change; false: it is made or deleted.
func nodeStates(was, is ledger.Event) (before, after ledger.NodeState, both bool) {
	before, existed := was.(ledger.NodeState)
	after, exists := is.(ledger.NodeState)
	return before, after, existed && exists
}

func (j *Judge) nodeChanged(w *World, name ledger.NodeName) {
	n, exists := w.Node(name)
	if n.SystemUUID != "" && n.SystemUUID != j.named[name].machine {
		j.named = with(j.named, name, naming{n.SystemUUID, w.Now})
	}
	switch {
	case exists && n.Ready == ledger.ReadyTrue:
		j.notReady = without(j.notReady, name)
		j.unheard = withoutNode(j.unheard, name)
		j.void(w, name)
	default:
		if _, noted := j.notReady[name]; !noted {
			j.notReady = with(j.notReady, name, outage{w.Now, w.version})
		}
	}
}

// holdChanged: transitions never falls, and rises when the volume changes its node. A hold that a user
// deleted may be made again unchanged. A new hold without a node has no number.
func (j *Judge) holdChanged(was ledger.Event, after ledger.HoldSeen) {
	before, existed := was.(ledger.HoldSeen)
	v, last, now := after.Volume, j.numbers[after.Volume], after.Hold
	node := before.Hold.Node
	if !existed {
		node = last.node
	}
	switch {
	case now.Node == "" && now.Transitions == 0:
		return
	case now.Transitions < last.transitions:
		j.fault("transitions of %s falls from %d to %d", v, last.transitions, now.Transitions)
	case now.Node != "" && now.Node != node && now.Transitions <= last.transitions:
		j.fault("%s is given to %s with transitions %d, which %d were before", v, now.Node, now.Transitions, last.transitions)
	}
	j.numbers = with(j.numbers, v, given{now.Node, max(last.transitions, now.Transitions)})
}

// Begins notes that a leader with complete facts leads from now on, and sees all changes.
func (j *Judge) Begins(w *World) {
	j.Began = w.Version()
	for at, lost := range j.lost {
		h, _ := w.Hold(at.volume)
		lost.told = lost.told || tells(h, at)
		j.lost = with(j.lost, at, lost)
	}
}

// policy is the policy of a volume; the worlds have none for classes.
func (w *World) policy(v ledger.VolumeID) ledger.Policy {
	for _, key := range w.Keys(Policies) {
		if p, _ := typed[ledger.Policy](&w.Objects, Policies, key); p.Driver == v.Driver && p.Class == "" {
			return p
		}
	}
	return ledger.Policy{}
}

// reports judges a write of volumesAttached: no volume in use leaves it, unless a rule of force holds (I3,
// I4); no unattached volume enters it (I5).
func (j *Judge) reports(w *World, n ledger.NodeState, was []ledger.VolumeID, changes []protocol.Change) {
	if j.Cooperative {
		j.fault("volumesAttached of %s is written, which is kube-controller-manager's", n.Name)
	}
	for _, v := range was {
		if !lacks(n.Reported, v) {
			continue
		}
		at, rule := At{v, n.Name}, ""
		if v.NoAttach() {
			j.deletesUnder(w, at, "", 0)
			j.unheard = without(j.unheard, at)
			j.migrated(v)
		}
		for _, s := range changes {
			if s.Volume == v {
				rule = s.Rule
			}
		}
		switch {
		case rule != "" && j.prove(w, at):
		case rule != "" && j.onlyAsked(w, at, n):
		case rule == rules.AfterPodGone && v.NoAttach() && j.Began > 0 && !w.hasPV(v, w.version): // listed: residual/vanished-pod
		case rule != "":
			j.fault("%s is taken out of volumesAttached of %s by force (%s), and that rule does not hold", v, n.Name, rule)
		case !lacks(n.InUse, v):
			j.fault("%s is taken out of volumesAttached of %s, which reports it in use", v, n.Name)
		}
	}
	for _, v := range n.Reported {
		if !lacks(was, v) {
			continue
		}
		j.forget(At{v, n.Name})
		a, exists := w.Attachment(ledger.AttachmentName(v, n.Name))
		if v.NoAttach() {
			j.attachesByReport(w, At{v, n.Name})
		} else if !exists || !a.Attached || a.Deleting {
			j.fault("%s is put into volumesAttached of %s, and its VolumeAttachment is not attached", v, n.Name)
		}
	}
}

// forcesUnnamed notes that a rule holds for a volume without VolumeAttachments that is taken by force from
// a Node that omits it: the same boot made the Node again, and the volume may be mounted there.
func (j *Judge) forcesUnnamed(w *World, n ledger.NodeName, was []ledger.VolumeID, changes []protocol.Change) {
	for _, c := range changes {
		if c.Rule != "" && c.Volume.NoAttach() && lacks(was, c.Volume) {
			j.prove(w, At{c.Volume, n})
		}
	}
}

// attachesByReport: an exclusive volume without VolumeAttachments does not enter a node's volumesAttached
// while another's names it; in a live migration, while more than one other's does. A deleted or recreated
// Node names nothing, though the volume is mounted there: a live migration permits that.
func (j *Judge) attachesByReport(w *World, at At) {
	for _, m := range w.machinesOf(at.Node) {
		j.keepsDetached(w, at.Volume, m.ID, "attached to")
	}
	if !w.Exclusive(at.Volume) {
		return
	}
	var others []ledger.NodeName
	for _, key := range w.Keys(Nodes) {
		if n, _ := w.Node(ledger.NodeName(key)); n.Name != at.Node && !lacks(n.Reported, at.Volume) {
			others = append(others, n.Name)
		}
	}
	mounted := func(m *Machine) bool { return m.Node != at.Node && m.Uses(at.Volume) }
	if w.migrates(at.Volume) && slices.ContainsFunc(slices.Collect(maps.Values(w.Machines)), mounted) {
		j.beside = with(j.beside, at, true)
	}
	for _, n := range j.inTheWay(w, at, others) {
		j.fault("%s is put into volumesAttached of %s while that of %s names it", at.Volume, at.Node, n)
	}
}

// inTheWay are the other nodes with an exclusive volume that forbid another attach: not nodes from which it
// may be taken by force, and not the node that a live migration permits.
func (j *Judge) inTheWay(w *World, at At, others []ledger.NodeName) []ledger.NodeName {
	var list []ledger.NodeName
	living := 0
	for _, n := range others {
		migrates := living == 0 && w.migrates(at.Volume)
		if migrates { // the other node may be back before this one has the volume
			j.beside = with(j.beside, at, true)
		}
		if j.mayTakeFrom(w, At{at.Volume, n}) {
			continue
		}
		if living++; !migrates {
			list = append(list, n)
		}
	}
	return list
}

func (w *World) uses(at At) bool {
	for _, m := range w.Machines {
		if m.Node == at.Node && m.Uses(at.Volume) {
			return true
		}
	}
	return false
}

// onlyAsked says whether the only objection to a rule of force may be a pod that came after the leader's
// read, and that has not got the volume. The following list of the node's pods finds it; a volume without
// attachments is put into volumesAttached again for it.
func (j *Judge) onlyAsked(w *World, at At, n ledger.NodeState) bool {
	if n.Ready == ledger.ReadyTrue {
		return j.former(w, at, n, false) != noGround
	}
	return !w.uses(at)
}

// creates: no VolumeAttachment of an exclusive volume while it has another; a
// live migration may have one more.
func (j *Judge) creates(w *World, a ledger.Attachment) {
	v, _ := w.Attaches(a)
	ok := !v.IsZero()
	j.theirs = without(j.theirs, At{v, a.Node})
	j.forget(At{v, a.Node})
	if ok && a.Ours {
		j.attachesPast(w, At{v, a.Node})
	}
	if !ok || !w.Exclusive(v) {
		return
	}
	var others []ledger.NodeName
	for _, other := range w.all[Attachments] {
		b := other.(ledger.Attachment)
		if j.madeFor[b.UID] == v && b.Node != a.Node && (!j.Cooperative || b.Ours) {
			others = append(others, b.Node)
		}
	}
	for _, n := range j.inTheWay(w, At{v, a.Node}, others) {
		j.fault("a VolumeAttachment of %s at %s is created while it has one at %s", v, a.Node, n)
	}
}

// migrated ends a live migration of a volume with the first of its two attachments.
func (j *Judge) migrated(v ledger.VolumeID) {
	for at := range j.beside {
		if at.Volume == v {
			j.beside = without(j.beside, at)
		}
	}
}

// pair says whether two nodes share a volume because of a live migration, or by
// kube-controller-manager, which does not ask.
func (j *Judge) pair(w *World, v ledger.VolumeID, a, b ledger.NodeName) bool {
	return j.beside[At{v, a}] || j.beside[At{v, b}] || j.foreign(w, At{v, a}) || j.foreign(w, At{v, b})
}

// foreign says whether kube-controller-manager caused a volume's presence or absence at a node.
func (j *Judge) foreign(w *World, at At) bool {
	a, exists := w.Attachment(ledger.AttachmentName(at.Volume, at.Node))
	return j.Cooperative && (j.theirs[at] || exists && !a.Ours)
}

// deletes: no VolumeAttachment is deleted while its volume is mounted, except by force, or while
// volumesAttached names it; nor a foreign one. An entry in volumesInUse is harmless by now: a kubelet that
// began to use the volume after it left volumesAttached has not got it, and will not. since is when the
// node was read for a forced deletion.
func (j *Judge) deletes(w *World, a ledger.Attachment, since int64) {
	v, _ := w.Attaches(a)
	ok := !v.IsZero()
	if !ok {
		return
	}
	if a.Name != ledger.AttachmentName(v, a.Node) || j.Cooperative && !a.Ours {
		j.fault("VolumeAttachment %s at %s is deleted, which is somebody else's", a.Name, a.Node)
	}
	j.deletesUnder(w, At{v, a.Node}, a.UID, since)
	// A volume that kube-controller-manager reports for no pod is not mounted: the kubelet looks for
	// the VolumeAttachment first.
	n, exists := w.Node(a.Node)
	if exists && !lacks(n.Reported, v) && (!j.Cooperative || j.used(w, At{v, a.Node})) {
		j.fault("the VolumeAttachment of %s at %s is deleted while volumesAttached names it", v, a.Node)
	}
	for _, m := range w.machinesOf(a.Node) {
		switch {
		case !m.Uses(v):
			// A kubelet that has checked the VolumeAttachment before may still mount the volume.
			if j.ground(w, At{v, a.Node}) >= byUnpublish || j.Overtakes(w, At{v, a.Node}, a.UID, since) {
				j.doomed = with(j.doomed, a.UID, true)
			}
		case j.mayTake(w, m, v), j.overtaken(At{v, a.Node}, a.UID, since):
			// The sender may have read that the Node does not exist.
			gone := !exists || since > 0 && since < j.ended[At{v, a.Node}].again
			j.forced = with(j.forced, mount{m.ID, m.Boots, v}, gone)
			j.doomed = with(j.doomed, a.UID, true)
		case j.sameBoot(w, m, v):
			j.doomed = with(j.doomed, a.UID, true)
		default:
			j.fault("the VolumeAttachment of %s at %s is deleted while it is mounted there", v, a.Node)
		}
	}
}

// mount is a volume staged in a machine's boot.
type mount struct {
	machine string
	boot    int
	volume  ledger.VolumeID
}

// loss says that a Node was deleted with a volume mounted in a boot of its machine, or that the volume was
// mounted while the Node was gone, since the kubelet had checked it before: the world's version at the last
// deletion of the Node with the volume in volumesAttached, else at the first; and whether the volume's hold
// named that boot, or another boot of the node, at any such time.
type loss struct {
	at             int64
	named, another bool
	told           bool // the hold said that the mount may be there when a leader began
}

// losesNode notes the staged volumes at a deleted Node's machines. For volumes in its volumesAttached no
// detach had begun: a leader that sees that end of the Node has no earlier deletion in flight.
func (j *Judge) losesNode(w *World, n ledger.NodeState) {
	j.gone = with(j.gone, n.Name, deletion{w.Now, w.Version()})
	j.wordGone(w, n)
	for _, m := range w.machinesOf(n.Name) {
		for _, v := range m.Staged {
			j.loses(w, m, v, !lacks(n.Reported, v))
			at := mount{m.ID, m.Boots, v}
			if _, taken := j.forced[at]; taken {
				j.forced = with(j.forced, at, true)
			}
		}
	}
}

// loses notes a mount without a Node, and whether volumesAttached named it.
func (j *Judge) loses(w *World, m *Machine, v ledger.VolumeID, reported bool) {
	at := mount{m.ID, m.Boots, v}
	lost, noted := j.lost[at]
	if !noted || reported {
		lost.at = j.gone[m.Node].at
	}
	h, _ := w.Hold(v)
	if h.Node == m.Node && h.BootID != "" {
		lost.named, lost.another = lost.named || h.BootID == m.BootID(), h.BootID != m.BootID()
	}
	lost.told = lost.told || tells(h, at)
	j.lost = with(j.lost, at, lost)
}

// tells says whether a hold names a mount's boot as one that may have the volume in use.
func tells(h ledger.Hold, at mount) bool {
	return slices.ContainsFunc(h.Fences, func(f ledger.Fence) bool { return f.InUse && f.BootID == bootID(at.machine, at.boot) })
}

// sameBoot says whether the leader can't know that a volume is mounted at a machine: its Node was deleted
// with the volume mounted, and a leader that saw that has not written it down. Either that was before the
// leader had complete facts, and no hold named the boot, since the volume may be shared, or since there was
// no leader after the machine's boot; or the volume was taken from that mount by force, and the Node was
// gone then, or has been since. It is listed.
func (j *Judge) sameBoot(w *World, m *Machine, v ledger.VolumeID) bool {
	at := mount{m.ID, m.Boots, v}
	lost, noted := j.lost[at]
	h, _ := w.Hold(v)
	f, written := h.Fence(m.Node)
	untold := j.untold(lost) && (lost.another || !w.Exclusive(v))
	if !noted || j.Began == 0 || written && f.BootID == m.BootID() || !untold && !j.forced[at] {
		return false
	}
	j.SameBoot = append(slices.Clip(j.SameBoot), fmt.Sprintf("%s at %s", v, m.ID))
	return true
}

// untold says whether the leader has neither seen that a Node was deleted with a volume mounted, nor
// found it in the hold when it began.
func (j *Judge) untold(lost loss) bool { return lost.at <= j.Began && !lost.named && !lost.told }

// publishes: an exclusive volume is at one machine at a time, unless the other machine's node is fenced, or
// was this machine's before.
func (j *Judge) publishes(w *World, v ledger.VolumeID, machine string) {
	if !j.foreign(w, At{v, w.Machines[machine].Node}) {
		j.keepsDetached(w, v, machine, "attached to")
	}
	if !w.Exclusive(v) || w.Disks.Lied[v] {
		return
	}
	for _, id := range w.Disks.At[v] {
		m, n := w.Machines[id], w.Machines[machine].Node
		if n != m.Node && !j.pair(w, v, n, m.Node) && !m.Replaced && !j.mayBeBeside(w, m, v) {
			j.fault("%s is attached to %s while it is attached to %s", v, n, m.Node)
		}
	}
}

func (j *Judge) unpublishes(w *World, v ledger.VolumeID, machine string) {
	m := w.Machines[machine]
	a, _ := w.Attachment(ledger.AttachmentName(v, m.Node))
	if m.Uses(v) && !j.foreign(w, At{v, m.Node}) && !j.mayTake(w, m, v) && !j.takenByTime(m, v) && !j.doomed[a.UID] {
		j.fault("%s is detached from %s while it is mounted there", v, m.Node)
	}
}

// mounts: a volume is mounted only where it is attached, and an exclusive volume at one machine at a time.
// It is false for a mount that fails, because the volume was taken away by force, or is attached to another
// machine of that name.
func (j *Judge) mounts(w *World, m *Machine, v ledger.VolumeID) bool {
	j.forced = without(j.forced, mount{m.ID, m.Boots, v})
	if !m.Uses(v) { // a mount without a deleted Node
		j.lost = without(j.lost, mount{m.ID, m.Boots, v})
		if _, gone := j.gone[m.Node]; gone {
			j.loses(w, m, v, false)
		}
	}
	if w.Disks.Lied[v] {
		return true
	}
	if !v.NoAttach() && !slices.Contains(w.Disks.At[v], m.ID) {
		a, _ := w.Attachment(ledger.AttachmentName(v, m.Node))
		if at := (At{v, m.Node}); a.NodeID != m.ID || j.doomed[a.UID] || w.AtReplaced(m, v) || j.foreign(w, at) || j.mayTake(w, m, v) {
			return false
		}
		j.fault("%s is mounted at %s, where it is not attached", v, m.Node)
	}
	j.keepsDetached(w, v, m.ID, "mounted at")
	if !w.Exclusive(v) || m.Uses(v) && j.takenByTime(m, v) { // the latter keeps its mount for one more pod
		return true
	}
	for _, id := range slices.Sorted(maps.Keys(w.Machines)) {
		other := w.Machines[id]
		if id == m.ID || !w.writes(other, v) || j.pair(w, v, m.Node, other.Node) || j.mayBeBeside(w, other, v) || j.takenByTime(other, v) {
			continue
		}
		if v.NoAttach() && j.sameBoot(w, other, v) { // no deletion of a VolumeAttachment was judged
			continue
		}
		j.fault("%s is mounted at %s while it is mounted at %s", v, m.Node, other.Node)
	}
	return true
}

// AtReplaced says whether a volume is attached to an earlier machine of this one's node name. A late
// attacher that called for that machine marks an attachment that another has stamped for this one
// meanwhile.
func (w *World) AtReplaced(m *Machine, v ledger.VolumeID) bool {
	return slices.ContainsFunc(w.Disks.At[v], func(id string) bool {
		before := w.Machines[id]
		return id != m.ID && before != nil && before.Replaced && before.Node == m.Node
	})
}

// writes says whether a machine may write to a volume: after a detach each access fails, unless the detach
// takes nothing away.
func (w *World) writes(m *Machine, v ledger.VolumeID) bool {
	return m.Uses(v) && !m.Cut && (v.NoAttach() || w.Mapped || slices.Contains(w.Disks.At[v], m.ID))
}

// migrates says whether a live migration is granted, or has ended, perhaps unknown to the attacher: it
// permits a volume at two nodes.
func (w *World) migrates(v ledger.VolumeID) bool {
	if !w.policy(v).LiveMigration || w.onePod(v) {
		return false
	}
	if w.Judge.over[v] {
		return true
	}
	for _, e := range w.all[Tickets] {
		if t := e.(ledger.Ticket); t.Type == ledger.TypeLiveMigration && t.Phase == ledger.TicketGranted && slices.Contains(w.migrationVolumes(t), v) {
			return true
		}
	}
	return false
}

// migrationVolumes are the volumes of a live migration's ticket, and its claims' volumes from before their
// PersistentVolumes vanished: grants for them may be in flight.
func (w *World) migrationVolumes(t ledger.Ticket) []ledger.VolumeID {
	list := w.TicketVolumes(t)
	for _, tv := range t.Volumes {
		if v, lost := w.LostBy(ledger.ClaimKey{Namespace: t.ID.Namespace, Name: tv.Claim}); lost {
			list = append(list, v)
		}
	}
	return list
}
