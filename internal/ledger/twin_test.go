// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// twin keeps the objects and computes the rest after each event, with its earlier results if history
// counts.
type twin struct {
	pods        map[string]Pod
	tickets     map[TicketID]Ticket
	claims      map[ClaimKey]Claim
	pvs         map[string]PersistentVolume
	classes     map[string]StorageClass
	drivers     map[string]Driver
	csi         map[string]bool
	attachments map[string]Attachment
	nodes       map[NodeName]*twinNode
	holds       map[VolumeID]Hold
	policies    map[string]Policy

	podAt    map[string][]VolumeID
	ticketAt map[TicketID][]VolumeID
	vaAt     map[string]VolumeID
	byName   map[string]bool // of vaAt: only the attachment's name says so
	access   map[VolumeID]Access
	named    map[VolumeID]bool // by a PersistentVolume, also by a deleted one
	places   map[twinKey]*twinPlace
	sent     map[twinKey]bool
	reports  map[twinKey]bool // volumes without attachments that may be in volumesAttached
	buried   map[TicketID]string
	refused  map[twinSlots]time.Time
}

type twinSlots struct {
	n      NodeName
	driver string
}

type twinKey struct {
	v VolumeID
	n NodeName
}

type twinPlace struct {
	node            NodeName
	users           []User
	attachments     []*Attachment
	reported, inUse bool
	unknown         []Boot
	lapsed          bool
	sent, left      bool
	reportSent      bool
	held            bool // the hold gives it a volume that needs no attachment
	onlyAsked       bool // by tickets that wait and keep no slot
	proof           ProofStage
	forced          bool
	idle            time.Time
	sawLeave        bool
}

type twinNode struct {
	state           NodeState
	exists, csinode bool
	csirev          string
	inUse, reported map[VolumeID]bool
	unknown         map[VolumeID][]Boot
	last            Boot // the last reported one
	drivers         map[string]NodeDriver
	notReady        time.Time
	sawFail         bool
	heard, tainted  time.Time
	shut            time.Time
	fencedAt        map[FencedCondition]FencedAt
	cutBefore       map[string]bool // storages that had cut off another machine of the Node
	renewed         int64
	renewedAt       time.Time
	leaseRead       time.Time
}

func newTwin() *twin {
	return &twin{
		pods: map[string]Pod{}, tickets: map[TicketID]Ticket{}, claims: map[ClaimKey]Claim{}, pvs: map[string]PersistentVolume{},
		classes: map[string]StorageClass{}, drivers: map[string]Driver{}, csi: map[string]bool{}, attachments: map[string]Attachment{},
		nodes: map[NodeName]*twinNode{}, holds: map[VolumeID]Hold{}, policies: map[string]Policy{},
		podAt: map[string][]VolumeID{}, ticketAt: map[TicketID][]VolumeID{}, vaAt: map[string]VolumeID{}, byName: map[string]bool{},
		access: map[VolumeID]Access{}, named: map[VolumeID]bool{}, places: map[twinKey]*twinPlace{},
		buried: map[TicketID]string{}, sent: map[twinKey]bool{}, reports: map[twinKey]bool{}, refused: map[twinSlots]time.Time{},
	}
}

func (w *twin) node(n NodeName) *twinNode {
	if w.nodes[n] == nil {
		w.nodes[n] = &twinNode{state: NodeState{Name: n}, inUse: map[VolumeID]bool{}, reported: map[VolumeID]bool{}, unknown: map[VolumeID][]Boot{}, drivers: map[string]NodeDriver{}}
	}
	return w.nodes[n]
}

func (n *twinNode) driver(name string) NodeDriver {
	if d, ok := n.drivers[name]; ok {
		return d
	}
	return NodeDriver{DriverOnNode: DriverOnNode{Name: name, Limit: NoLimit}}
}

func (w *twin) apply(now time.Time, e Event) {
	var proof func()
	switch e := e.(type) {
	case Pod:
		if old, ok := w.pods[e.UID]; !ok || Newer(e.Version, old.Version) {
			if old.Node != e.Node || e.Phase == PodFinished {
				w.doubtIdle(now, old)
			}
			if old.Node != e.Node {
				delete(w.podAt, e.UID)
			}
			w.pods[e.UID] = e
		}
	case PodGone:
		w.doubtIdle(now, w.pods[e.UID])
		delete(w.pods, e.UID)
		delete(w.podAt, e.UID)
	case Ticket:
		w.ticket(e)
	case TicketGone:
		w.ticketGone(e.ID)
	case TicketReleased:
		if t, ok := w.tickets[e.ID]; ok && e.UID != "" && e.UID != t.UID {
			return // another one has the name
		} else if ok && t.UID != "" {
			w.buried[e.ID] = t.UID
		}
		delete(w.tickets, e.ID)
		delete(w.ticketAt, e.ID)
	case Claim:
		if old, ok := w.claims[e.Key]; !ok || Newer(e.Version, old.Version) {
			w.claims[e.Key] = e
		}
	case ClaimGone:
		delete(w.claims, e.Key)
	case PersistentVolume:
		if old, ok := w.pvs[e.Name]; !ok || Newer(e.Version, old.Version) {
			w.pvs[e.Name] = e
		}
	case PersistentVolumeGone:
		delete(w.pvs, e.Name)
	case StorageClass, StorageClassGone, Driver, DriverGone, Policy, PolicyGone, HoldSeen, HoldGone:
		w.applyRare(e)
	default:
		proof = w.applyNodes(now, e)
	}
	w.work(now)
	if proof != nil {
		proof()
		w.work(now)
	}
}

// events that are only kept
func (w *twin) applyRare(e Event) {
	switch e := e.(type) {
	case StorageClass:
		if old, ok := w.classes[e.Name]; !ok || Newer(e.Version, old.Version) {
			w.classes[e.Name] = e
		}
	case StorageClassGone:
		delete(w.classes, e.Name)
	case Driver:
		if old, ok := w.drivers[e.Name]; !ok || Newer(e.Version, old.Version) {
			w.drivers[e.Name], w.csi[e.Name] = e, true
		}
	case DriverGone:
		delete(w.drivers, e.Name)
	case Policy:
		if old, ok := w.policies[e.Name]; !ok || Newer(e.Version, old.Version) {
			w.policies[e.Name] = e
		}
	case PolicyGone:
		delete(w.policies, e.Name)
	case HoldSeen:
		if old, ok := w.holds[e.Volume]; !ok || Newer(e.Hold.Version, old.Version) {
			w.holds[e.Volume] = e.Hold
			w.heldElsewhere(e.Volume, old.Node, e.Hold.Node)
		}
	case HoldGone:
		h, known := w.holds[e.Volume]
		if !known {
			break
		}
		named := false
		for _, pv := range w.pvs {
			named = named || pv.Volume == e.Volume
		}
		needed := len(h.Fences) > 0 || (h.Stays || e.Volume.NoAttach()) && h.Node != ""
		if p := w.places[twinKey{e.Volume, h.Node}]; !named { // only the facts there show it
			needed = p != nil && (len(p.attachments) > 0 || p.sent || p.reported || p.inUse || len(p.unknown) > 0)
		}
		if was := h.Node; needed {
			h.Version = ""
			w.holds[e.Volume] = h
		} else {
			delete(w.holds, e.Volume)
			w.heldElsewhere(e.Volume, was, "")
		}
	}
}

func (w *twin) heldElsewhere(v VolumeID, was, is NodeName) {
	if v.NoAttach() && was != "" && was != is {
		w.trust(twinKey{v, was})
	}
}

// The returned function runs after the computation.
func (w *twin) applyNodes(now time.Time, e Event) func() {
	switch e := e.(type) {
	case Attachment:
		return w.attachment(now, e)
	case AttachmentGone:
		old, ok := w.attachments[e.Name]
		delete(w.attachments, e.Name)
		delete(w.vaAt, e.Name)
		delete(w.byName, e.Name)
		return func() {
			if ok && old.Attached {
				w.exhausted(old.Node, old.Driver, false)
			}
		}
	case NodeState:
		w.nodeState(now, e)
	case NodeGone:
		if n := w.nodes[e.Name]; n != nil && n.exists {
			if n.notReady.IsZero() {
				n.notReady, n.sawFail = now, n.state.Ready == ReadyTrue
			}
			if n.state.OutOfService && n.state.Ready == ReadyUnknown && !n.heard.After(n.tainted) {
				for v := range n.inUse {
					if p := w.places[twinKey{v, e.Name}]; len(p.attachments) == 0 && v.IsReal() && !v.NoAttach() {
						delete(n.inUse, v)
						delete(n.unknown, v)
					}
				}
			}
			n.tainted, n.shut, n.fencedAt = time.Time{}, time.Time{}, nil
			n.exists, n.state.Ready, n.state.Reporting = false, ReadyUnknown, false
			for v := range n.reported {
				if v.NoAttach() {
					w.reports[twinKey{v, e.Name}] = true
				}
			}
			w.abandon(e.Name, n)
			n.reported = map[VolumeID]bool{}
		}
	case NodeLease:
		if n := w.nodes[e.Node]; n != nil {
			if !n.leaseRead.IsZero() && n.renewed != e.Renewed && n.state.Ready != ReadyTrue {
				n.heard = now
				w.voidForced(e.Node)
				for c, at := range n.fencedAt {
					at.Void = true
					n.fencedAt[c] = at
				}
			}
			if n.leaseRead.IsZero() || n.renewed != e.Renewed {
				n.renewed, n.renewedAt = e.Renewed, now
			}
			n.leaseRead = now
		}
	case NodeDrivers:
		w.csinode(e)
	case NodeDriversGone:
		if n := w.nodes[e.Node]; n != nil && n.csinode {
			n.csinode, n.csirev = false, ""
			w.register(n, nil)
		}
	case AttachSent:
		k := twinKey{e.Volume, e.Node}
		if p := w.places[k]; p != nil && (p.left || w.occupied(p)) {
			w.sent[k] = true
		}
	case AttachResolved:
		delete(w.sent, twinKey{e.Volume, e.Node})
	case RefusalsOver:
		w.lapse(e.Until)
	case Unreported:
		return func() { w.unreported(now, e) }
	case Unwanted:
		return func() {
			p := w.places[twinKey{e.Volume, e.Node}]
			if uid, version := ownVA(p); p != nil && p.proof != ProofNone && uid == e.UID && version == e.Version {
				p.proof = ProofUnwanted
			}
		}
	}
	return nil
}

func (w *twin) ticket(e Ticket) {
	old, ok := w.tickets[e.ID]
	if uid, dead := w.buried[e.ID]; dead && uid == e.UID || ok && !Newer(e.Version, old.Version) {
		return
	}
	delete(w.buried, e.ID)
	if old.UID != e.UID || old.Node != e.Node || !slices.Equal(old.Volumes, e.Volumes) {
		delete(w.ticketAt, e.ID)
	}
	w.tickets[e.ID] = e
}

func (w *twin) ticketGone(id TicketID) {
	_, known := w.buried[id]
	delete(w.buried, id)
	_, ok := w.tickets[id]
	if known || !ok {
		return
	}
	delete(w.tickets, id)
	delete(w.ticketAt, id)
}

func (w *twin) attachment(now time.Time, e Attachment) func() {
	old, ok := w.attachments[e.Name]
	if ok && !Newer(e.Version, old.Version) {
		return nil
	}
	if old.UID != e.UID {
		if v := w.vaAt[e.Name]; v.IsReal() && AttachmentName(v, e.Node) == e.Name {
			w.byName[e.Name] = true // another one of its name
		} else {
			delete(w.vaAt, e.Name)
		}
	}
	w.attachments[e.Name] = e
	return func() {
		switch {
		case e.AttachError.Code == ResourceExhausted && !e.Attached && !e.Deleting:
			w.exhausted(e.Node, e.Driver, true)
			w.refused[twinSlots{e.Node, e.Driver}] = now
		case e.Attached && !old.Attached:
			w.exhausted(e.Node, e.Driver, false)
		}
	}
}

func (w *twin) nodeState(now time.Time, e NodeState) {
	n := w.node(e.Name)
	same := n.exists && n.state.UID == e.UID
	if same && !Newer(e.Version, n.state.Version) {
		return
	}
	e.Reporting = e.Reporting || same && n.state.Reporting
	if !e.OutOfService {
		n.tainted = time.Time{}
	} else if !same || n.tainted.IsZero() {
		n.tainted = now
	}
	if !e.Shutdown {
		n.shut = time.Time{}
	} else if !same || n.shut.IsZero() {
		n.shut = now
	}
	letIn := slices.ContainsFunc(n.state.CutOff, func(driver string) bool { return !slices.Contains(e.CutOff, driver) })
	n.cutOff(e, same)
	if w.fenced(now, n, e, same) || letIn {
		w.voidForced(e.Name)
	}
	if !same || e.Ready == ReadyTrue && n.state.Ready != ReadyTrue || n.state.OutOfService && !e.OutOfService || n.state.Shutdown && !e.Shutdown {
		w.voidForced(e.Name)
	}
	switch {
	case e.Ready == ReadyTrue, n.notReady.IsZero(), !same, n.state.Ready == e.Ready && n.state.ReadySince != e.ReadySince:
		n.heard, n.renewed, n.renewedAt, n.leaseRead = time.Time{}, 0, time.Time{}, time.Time{}
	case n.state.Ready == ReadyUnknown && e.Ready == ReadyFalse,
		n.state.Ready == ReadyFalse && e.Ready == ReadyUnknown && now.Sub(n.leaseRead) > leaseGap:
		n.heard = now
		w.voidForced(e.Name)
	case n.state.Ready == ReadyFalse && e.Ready == ReadyUnknown && n.renewedAt.After(n.notReady) && n.renewedAt.After(n.heard):
		n.heard = n.renewedAt
	}
	switch {
	case e.Ready == ReadyTrue:
		n.notReady, n.sawFail = time.Time{}, false
	case n.notReady.IsZero(), !same, n.state.Ready == e.Ready && n.state.ReadySince != e.ReadySince:
		n.notReady, n.sawFail = now, n.exists && n.state.Ready == ReadyTrue
	}
	w.seeBoot(n, e)
	for k, p := range w.places {
		if same && k.n == e.Name && n.reported[k.v] && !slices.Contains(e.Reported, k.v) &&
			(n.inUse[k.v] || slices.Contains(e.InUse, k.v)) && (hasOwn(p) || p.left || k.v.NoAttach()) {
			w.makeUnknown(k, n.last)
		}
	}
	n.reported = map[VolumeID]bool{}
	for _, v := range e.Reported {
		n.reported[v] = true
	}
	if e.Reporting {
		n.inUse = map[VolumeID]bool{}
	}
	for _, v := range e.InUse {
		n.inUse[v] = true
	}
	e.InUse, e.Reported = nil, nil
	n.state, n.exists = e, true
}

// A kubelet's write, another boot or machine, and Ready end a condition. ended: a counting condition ended.
func (w *twin) fenced(now time.Time, n *twinNode, e NodeState, same bool) (ended bool) {
	ran := n.state.BootID != e.BootID || n.state.SystemUUID != e.SystemUUID || n.state.Ready == ReadyUnknown && e.Ready == ReadyFalse
	is := map[FencedCondition]FencedAt{}
	for _, c := range e.Fenced {
		at, void := now, false
		if was, had := n.fencedAt[c]; had && same {
			at, void = was.At, was.Void || ran
		}
		is[c] = FencedAt{c, at, void || e.Ready == ReadyTrue}
	}
	for c, was := range n.fencedAt {
		ended = ended || !was.Void && is[c] != was
	}
	n.fencedAt = is
	return ended
}

func (n *twinNode) cutOff(e NodeState, same bool) {
	was := n.state
	another := was.SystemUUID != e.SystemUUID || was.ProviderID != "" && e.ProviderID != "" && was.ProviderID != e.ProviderID
	before := map[string]bool{}
	for _, d := range e.CutOff {
		if same && (n.cutBefore[d] || another && slices.Contains(was.CutOff, d)) {
			before[d] = true
		}
	}
	n.cutBefore = before
}

func (w *twin) seeBoot(n *twinNode, e NodeState) {
	again := n.state.UID != e.UID && n.state.UID != ""
	p := n.state.ProviderID
	clone := p != "" && e.ProviderID != "" && p != e.ProviderID && (n.state.SystemUUID == "" || e.SystemUUID == "" || n.state.SystemUUID == e.SystemUUID)
	if clone {
		n.last.SystemUUID = "?"
	}
	ended := func(b Boot) bool { // no two nodes have one systemUUID here
		return b.BootID != "" && e.BootID != "" && b.BootID != e.BootID && (b.SystemUUID == "" || b.SystemUUID == e.SystemUUID)
	}
	over := ended(n.last)
	another := n.last.SystemUUID != "" && e.SystemUUID != "" && n.last.SystemUUID != e.SystemUUID &&
		(again || clone || n.state.SystemUUID != e.SystemUUID)
	if !over && (again || another) {
		w.abandon(e.Name, n)
	}
	for v, boots := range n.unknown {
		for i := range boots {
			if clone && (boots[i].SystemUUID == e.SystemUUID || boots[i].SystemUUID == n.state.SystemUUID) {
				boots[i].SystemUUID = "?"
			}
		}
		if boots = slices.DeleteFunc(boots, func(b Boot) bool {
			return ended(b) || over && b.BootID == "" && (b.SystemUUID == "" || b.SystemUUID == n.last.SystemUUID)
		}); len(boots) == 0 {
			delete(n.unknown, v)
		} else {
			n.unknown[v] = boots
		}
	}
	for k, p := range w.places { // the boot's uses are over, and no write to the former volumesAttached succeeds
		if k.n == e.Name && (over && again || another) {
			delete(n.inUse, k.v)
			p.inUse = false
		}
		if over && again && k.n == e.Name && len(n.unknown[k.v]) == 0 {
			delete(w.reports, k)
		}
	}
	if e.BootID != "" {
		n.last = Boot{e.SystemUUID, e.BootID}
	}
}

func (w *twin) abandon(name NodeName, n *twinNode) {
	for k, p := range w.places {
		sent := p.reportSent || w.reports[k]
		there := len(p.attachments) > 0 || p.left || p.held || sent
		if k.n == name && n.last.BootID != "" && there && !outlived(p) && (p.reported || sent || p.inUse && len(n.unknown[k.v]) == 0) {
			w.makeUnknown(k, n.last)
		}
	}
}

func (w *twin) makeUnknown(k twinKey, b Boot) {
	n := w.node(k.n)
	if slices.Contains(n.unknown[k.v], b) {
		return
	}
	n.unknown[k.v] = append(n.unknown[k.v], b)
	if p := w.places[k]; p != nil && !p.inUse {
		p.proof, p.forced = ProofNone, false
	}
}

func outlived(p *twinPlace) bool {
	return p.lapsed && len(p.attachments) == 0 && !p.left && !p.held && !p.reportSent
}

func (w *twin) voidForced(name NodeName) {
	for k, p := range w.places {
		if k.n == name && p.forced {
			p.proof, p.forced = ProofNone, false
		}
	}
}

func (w *twin) trust(k twinKey) {
	if !w.mayBeLeft(k) {
		delete(w.node(k.n).unknown, k.v)
	}
}

// The hold says that the volume may have been left there.
func (w *twin) mayBeLeft(k twinKey) bool {
	h := w.holds[k.v]
	return h.Stays && h.Node == k.n
}

func (w *twin) csinode(e NodeDrivers) {
	n := w.node(e.Node)
	if n.csinode && !Newer(e.Version, n.csirev) {
		return
	}
	n.csinode, n.csirev = true, e.Version
	w.register(n, e.Drivers)
}

func (w *twin) register(n *twinNode, drivers []DriverOnNode) {
	for name, d := range n.drivers {
		d.Registered = false
		n.drivers[name] = d
	}
	for _, d := range drivers {
		w.csi[d.Name] = true
		n.drivers[d.Name] = NodeDriver{DriverOnNode: d, Registered: true}
	}
}

func (w *twin) unreported(now time.Time, e Unreported) {
	p := w.places[twinKey{e.Volume, e.Node}]
	if uid, version := ownVA(p); p == nil || uid != e.UID || version != e.Version {
		return
	}
	p.proof, p.forced = ProofUnreported, e.Forced
	n := w.node(e.Node)
	unknown := len(n.unknown[e.Volume]) > 0
	delete(n.reported, e.Volume)
	if !e.Unknown {
		delete(w.reports, twinKey{e.Volume, e.Node})
	}
	switch {
	case !n.exists:
		delete(n.inUse, e.Volume)
	case e.Forced && n.inUse[e.Volume] && !unknown:
		n.unknown[e.Volume] = []Boot{{n.state.SystemUUID, n.state.BootID}}
	case !e.Forced && !e.Unknown:
		delete(n.inUse, e.Volume)
		delete(n.unknown, e.Volume)
	}
	if !hasOwn(p) && !p.left && !p.held && !w.reports[twinKey{e.Volume, e.Node}] {
		delete(n.unknown, e.Volume)
	}
}

func hasOwn(p *twinPlace) bool {
	return p != nil && slices.ContainsFunc(p.attachments, func(a *Attachment) bool { return a.own })
}

func ownUID(p *twinPlace) string {
	uid, _ := ownVA(p)
	return uid
}

func ownVA(p *twinPlace) (uid, version string) {
	if p != nil {
		for _, a := range p.attachments {
			if a.own {
				return a.UID, a.Version
			}
		}
	}
	return "", ""
}

func (w *twin) describe() string {
	var lines []string
	volumes := map[VolumeID]*Volume{}
	at := func(v VolumeID) *Volume {
		if volumes[v] == nil {
			volumes[v] = &Volume{ID: v, Access: w.access[v]}
		}
		return volumes[v]
	}
	for _, pv := range w.pvs {
		if !pv.Volume.IsZero() {
			v := at(pv.Volume)
			v.setPVs(slices.Sorted(slices.Values(append(v.PVs(), pv.Name))))
		}
	}
	for k, p := range w.places {
		at(k.v)
		lines = append(lines, p.describe(k.v))
		slices.SortFunc(p.attachments, func(a, b *Attachment) int { // as Canonical has them
			return cmp.Or(count(b.own)-count(a.own), cmp.Compare(a.Name, b.Name))
		})
		if len(p.attachments) > 0 && beingCalled(p.attachments[0]) {
			lines = append(lines, fmt.Sprintf("under way: %s at %s", k.v, p.node))
		}
	}
	for id, h := range w.holds {
		at(id).Hold = &h
	}
	for _, v := range volumes {
		lines = append(lines, describeVolume(v))
	}
	underWay := map[string]int{}
	for name, a := range w.attachments {
		if beingCalled(&a) {
			underWay[cmp.Or(w.vaAt[name].Driver, a.Driver)]++
		}
	}
	for driver, n := range underWay {
		lines = append(lines, fmt.Sprintf("under way %s: %d", driver, n))
	}
	for name, n := range w.nodes {
		lines = append(lines, w.describeNode(name, n)...)
	}
	for uid := range w.pods {
		lines = append(lines, fmt.Sprintf("pod %s at %v", uid, w.podAt[uid]))
	}
	for id, t := range w.tickets {
		lines = append(lines, fmt.Sprintf("ticket %s %s at %v", id, t.Phase, w.ticketAt[id]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (w *twin) describeNode(name NodeName, n *twinNode) []string {
	node := Node{NodeState: n.state, Exists: n.exists, CSINode: n.csinode, NotReady: n.notReady, SawFail: n.sawFail,
		Heard: n.heard, OutOfServiceAt: n.tainted, ShutdownAt: n.shut, Renewed: n.renewed, RenewedAt: n.renewedAt, LeaseRead: n.leaseRead}
	for _, f := range n.fencedAt {
		node.FencedAt = append(node.FencedAt, f)
	}
	node.CutBefore = slices.Sorted(maps.Keys(n.cutBefore))
	used, onlyAsked := map[string]int32{}, map[string]int32{}
	var at []VolumeID
	for k := range w.places {
		if k.n == name {
			at = append(at, k.v)
			used[k.v.Driver]++
			onlyAsked[k.v.Driver] += int32(count(w.places[k].onlyAsked))
		}
	}
	for id, t := range w.tickets {
		if t.Node == name && t.Phase == TicketPending {
			node.Tickets = append(node.Tickets, id)
		}
	}
	for driver := range used {
		n.drivers[driver] = n.driver(driver)
	}
	for driver, d := range n.drivers {
		d.Used, d.OnlyAsked = used[driver], onlyAsked[driver]
		if d.Used == 0 && !d.Registered && !d.Exhausted && d.Limit == NoLimit {
			continue // it says nothing
		}
		node.Drivers = append(node.Drivers, d)
	}
	return describeNode(&node, at)
}

func beingCalled(a *Attachment) bool {
	if a.Deleting {
		return a.DetachError.IsZero()
	}
	return !a.Attached && a.AttachError.IsZero()
}

func describeSnapshot(s Snapshot) string {
	var lines []string
	for v := range s.Volumes() {
		lines = append(lines, describeVolume(v))
		for i := range v.OnNodes {
			lines = append(lines, open(s, &v.OnNodes[i]).describe(v.ID))
		}
	}
	for n := range s.Nodes() {
		lines = append(lines, describeNode(n, n.At())...)
	}
	for p := range s.Pods() {
		lines = append(lines, fmt.Sprintf("pod %s at %v", p.UID, s.PodAt(p.UID)))
	}
	for v, p := range s.UnderWay() {
		lines = append(lines, fmt.Sprintf("under way: %s at %s", v, p.Node))
	}
	for driver, n := range s.UnderWayOf() {
		lines = append(lines, fmt.Sprintf("under way %s: %d", driver, n))
	}
	for t := range s.Tickets() {
		lines = append(lines, fmt.Sprintf("ticket %s %s at %v", t.ID, t.Phase, s.TicketAt(t.ID)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func open(s Snapshot, p *VolumeOnNode) *twinPlace {
	idle, _ := s.Idle(p)
	return &twinPlace{p.Node, p.Users, p.Attachments(), p.Reported, p.InUse, p.SawUnknown(), p.Lapsed, p.Sent, p.Left, p.ReportSent, p.Held, p.OnlyAsked, p.Proof.Stage, p.Proof.Forced, idle, p.SawLeave}
}

func describeVolume(v *Volume) string {
	return fmt.Sprintf("volume %q pvs=%v access=%s hold=%t", v.ID, v.PVs(), v.Access, v.Hold != nil)
}

func (p *twinPlace) describe(v VolumeID) string {
	var users, attachments []string
	for _, u := range p.users {
		users = append(users, fmt.Sprint(u))
	}
	slices.Sort(users)
	for _, a := range p.attachments {
		attachments = append(attachments, fmt.Sprintf("%+v", *a))
	}
	slices.Sort(attachments)
	return fmt.Sprintf("place %q %s users=%v attachments=%v reported=%t inUse=%t proof=%v %t lapsed=%t sent=%t left=%t reportSent=%t held=%t onlyAsked=%t idle=%v saw=%t unknown=%q", v, p.node,
		users, attachments, p.reported, p.inUse, p.proof, p.forced, p.lapsed, p.sent, p.left, p.reportSent, p.held, p.onlyAsked, seconds(p.idle), p.sawLeave, p.unknown)
}

func describeNode(n *Node, volumes []VolumeID) []string {
	at := slices.SortedFunc(slices.Values(volumes), VolumeID.Compare)
	tickets := slices.SortedFunc(slices.Values(n.Tickets), func(a, b TicketID) int { return cmp.Compare(a.String(), b.String()) })
	var fenced []string
	for _, f := range n.FencedAt {
		fenced = append(fenced, fmt.Sprint(f.FencedCondition, seconds(f.At), f.Void))
	}
	lines := []string{fmt.Sprintf("node %s %v exists=%t csi=%t at=%q tickets=%v notready=%v saw=%t heard=%v tainted=%v shut=%v fenced=%v cutBefore=%q lease=%d %v %v", n.Name, n.NodeState, n.Exists, n.CSINode, at, tickets,
		seconds(n.NotReady), n.SawFail, seconds(n.Heard), seconds(n.OutOfServiceAt), seconds(n.ShutdownAt), fenced, n.CutBefore, n.Renewed, seconds(n.RenewedAt), seconds(n.LeaseRead))}
	for _, d := range n.Drivers {
		lines = append(lines, fmt.Sprintf("slots %s %v registered=%t exhausted=%t used=%d taken=%d", n.Name, d.DriverOnNode, d.Registered, d.Exhausted, d.Used, d.Taken()))
	}
	return lines
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return t.Unix()
}
