// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// encoder writes what matters of a state. Versions and UIDs are written as
// their rank among those of the same object that the state still knows.
type encoder struct {
	out    []byte
	refs   []ref
	shifts []ref // transitions, which only count from the lowest of their volume
}

// ref is where a rank belongs, and of what: the object's number in the high
// bits, its version, or its UID's, in the low ones.
type ref struct {
	at    int
	value uint64
}

// object numbers what has versions and UIDs of its own.
type object uint64

// The objects, in the order of their kinds; each is followed by the others of
// its kind, and by its UIDs.
const (
	thePod        object = 0x10
	theTicket     object = 0x20
	theNode       object = 0x30
	theHold       object = 0x40
	theAttachment object = 0x80
	uidOf         object = 0x1000
)

func podObject(uid string) object            { return thePod + object(podIndex(uid)) }
func ticketObject(id ledger.TicketID) object { return theTicket + object(podIndex(id.Name)) }
func nodeObject(n ledger.NodeName) object    { return theNode + object(nodeIndex(n)) }
func holdObject(v ledger.VolumeID) object    { return theHold + object(podIndex(v.Handle)) }
func attachmentObject(name string) object {
	for v, list := range attachmentNames() {
		for n, known := range list {
			if known == name {
				return theAttachment + object(16*v+n)
			}
		}
	}
	return theAttachment
}

// volumeAt is the number of an attachment's volume.
func volumeAt(attachment object) int { return int(attachment-theAttachment) / 16 }

// key is a state's canonical form, hashed to 64 bits. That two of n states have
// the same key has a probability of about n²/2⁶⁵: of 10 million, 3 in a million.
func (s *state) key() uint64 { return s.keyWith(&scratch{}) }

// scratch is room for encoding that is used again and again.
type scratch struct{ whole, part encoder }

// keyWith is key, in room that nobody else uses meanwhile.
func (s *state) keyWith(room *scratch) uint64 {
	e := &room.whole
	e.reset()
	e.api(s)
	e.truth(s)
	if s.leader != nil {
		e.byte(1)
		e.known(s, &room.part)
	}
	e.requests(s.orphans)
	e.rank()
	e.shift()
	return max(maphash.Bytes(seed(), e.out), 1) // 0 is no key
}

// seed is drawn once: two runs have not the same collisions.
var seed = sync.OnceValue(maphash.MakeSeed)

func (e *encoder) byte(b ...byte) { e.out = append(e.out, b...) }

func (e *encoder) bool(flags ...bool) {
	for _, f := range flags {
		if f {
			e.byte(1)
		} else {
			e.byte(0)
		}
	}
}

func (e *encoder) text(s string) {
	e.out = binary.AppendUvarint(e.out, uint64(len(s)))
	e.out = append(e.out, s...)
}

// version and uid leave room for a rank.
func (e *encoder) version(o object, v string) {
	n := uint64(0)
	for _, c := range []byte(v) {
		n = 10*n + uint64(c-'0')
	}
	e.ref(o, n)
}

// uid takes the last digits of a UID, which count up.
func (e *encoder) uid(o object, uid string) {
	n := uint64(0)
	for _, c := range []byte(uid[max(0, len(uid)-6):]) {
		n = 16*n + uint64(c&0xf) + 9*uint64(c>>6)
	}
	e.ref(o|uidOf, n)
}

func (e *encoder) ref(o object, value uint64) {
	if value != 0 {
		e.refs = append(e.refs, ref{len(e.out), uint64(o)<<32 | value})
	}
	e.byte(0)
}

// rank fills the ranks in.
func (e *encoder) rank() {
	slices.SortFunc(e.refs, func(a, b ref) int { return cmp.Compare(a.value, b.value) })
	n := byte(0)
	for i, r := range e.refs {
		switch {
		case i == 0 || r.value>>32 != e.refs[i-1].value>>32:
			n = 1
		case r.value != e.refs[i-1].value:
			n++
		}
		e.out[r.at] = n
	}
}

// transitions leaves room for a number of transitions of a volume, by its number.
// Rules compare them, and add one to the highest: what they are does not matter,
// only by how much they differ, and whether there are any.
func (e *encoder) transitions(volume int, n int64) {
	if n != 0 {
		e.shifts = append(e.shifts, ref{len(e.out), uint64(volume)<<32 | uint64(n)})
	}
	e.byte(0)
}

// shift fills the transitions in.
func (e *encoder) shift() {
	var lowest [len(volumes)]uint64
	for _, r := range e.shifts {
		if l := &lowest[r.value>>32]; *l == 0 || r.value < *l {
			*l = r.value
		}
	}
	for _, r := range e.shifts {
		e.out[r.at] = byte(r.value - lowest[r.value>>32] + 1)
	}
}

func (e *encoder) reset() { e.out, e.refs, e.shifts = e.out[:0], e.refs[:0], e.shifts[:0] }

func (e *encoder) volumes(list []ledger.VolumeID) {
	e.byte(byte(len(list)))
	for _, v := range list {
		e.byte(v.Handle[1])
	}
}

// api writes the objects that change.
func (e *encoder) api(s *state) {
	for i := range s.config.Pods {
		p, exists := s.w.Pod(pod(i + 1))
		e.bool(exists)
		if exists {
			e.pod(p)
		}
		t, exists := s.w.Ticket(ticketID(pod(i + 1)))
		e.bool(exists)
		if exists {
			e.ticket(t)
		}
	}
	for n := 1; n <= nodes; n++ {
		now, _ := s.w.Node(node(n))
		e.node(now)
		for i := range s.config.Access {
			a, exists := s.w.Attachment(attachmentName(i+1, n))
			e.bool(exists)
			if exists {
				e.attachment(s, a)
			}
		}
	}
	for i := range s.config.Access {
		h, exists := s.w.Hold(volume(i + 1))
		e.bool(exists)
		if exists {
			e.hold(volume(i+1), h)
		}
	}
}

func (e *encoder) pod(p ledger.Pod) {
	e.byte(byte(p.Phase))
	e.text(string(p.Node))
	e.version(podObject(p.UID), p.Version)
}

func (e *encoder) ticket(t ledger.Ticket) {
	e.byte(byte(t.Phase))
	e.bool(t.Ghost)
	e.text(string(t.Node))
	e.text(t.Reason)
	e.version(ticketObject(t.ID), t.Version)
	e.uid(ticketObject(t.ID), t.UID)
}

func (e *encoder) node(n ledger.NodeState) {
	e.byte(byte(n.Ready))
	e.bool(n.OutOfService, n.Reporting)
	e.volumes(n.InUse)
	e.volumes(n.Reported)
	if n.Name != "" {
		e.version(nodeObject(n.Name), n.Version)
	}
}

func (e *encoder) attachment(s *state, a ledger.Attachment) {
	e.bool(a.Attached, a.Deleting, a.AttachError.IsZero(), a.DetachError.IsZero())
	e.bool(s.leader != nil && slices.Contains(s.leader.confirmed, a.UID))
	o := attachmentObject(a.Name)
	e.transitions(volumeAt(o), a.Transitions)
	e.version(o, a.Version)
	e.uid(o, a.UID)
}

func (e *encoder) hold(v ledger.VolumeID, h ledger.Hold) {
	e.text(string(h.Node))
	e.text(string(h.Next.Node))
	e.text(h.Next.To.UID)
	e.transitions(podIndex(v.Handle), h.Transitions)
	e.text(string(h.State))
	e.text(string(h.Reason))
	e.text(h.Message)
	e.requesters(h.Requesters)
	e.requesters(h.Waiting)
	e.version(holdObject(v), h.Version)
}

func (e *encoder) requesters(list []ledger.Requester) {
	e.byte(byte(len(list)))
	for _, r := range list {
		e.text(r.UID)
	}
}

// truth writes what is so, whoever knows.
func (e *encoder) truth(s *state) {
	may := s.budget()
	fragile := may.dead > 0 || s.dead > 0 // else no rule of force ever counts
	for n, k := range s.kubelets {
		m := s.machine(n + 1)
		if e.bool(m.Powered); m.Powered {
			e.byte(k.told, k.attached, k.ended&s.alive())
		}
		for i := range s.config.Access {
			v := volume(i + 1)
			at := world.At{Volume: v, Node: m.Node}
			e.bool(slices.Contains(s.w.Disks.At[v], m.ID), s.w.Judge.Forced(at), fragile && s.w.Judge.Left(at))
			for _, uid := range m.Mounts[v] {
				e.text(uid)
			}
			e.byte(0)
		}
	}
	e.byte(byte(may.leaders), byte(may.lost), byte(may.failed), byte(may.restarts), byte(may.dead))
}

// alive are the pods that exist, or are mounted somewhere: whether others have
// ended does not matter any more.
func (s *state) alive() uint8 {
	var set uint8
	for i := range s.config.Pods {
		if _, exists := s.w.Pod(pod(i + 1)); exists {
			set |= bit(i + 1)
		}
	}
	for n := 1; n <= nodes; n++ {
		for _, list := range s.machine(n).Mounts {
			for _, uid := range list {
				set |= bit(podIndex(uid))
			}
		}
	}
	return set
}

// known writes what leader does, from what was written when it changed last.
func (e *encoder) known(s *state, room *encoder) {
	l := s.leader
	if l.code == nil {
		room.reset()
		room.leader(s, l)
		l.code = &encoder{out: bytes.Clone(room.out), refs: slices.Clone(room.refs), shifts: slices.Clone(room.shifts)}
	}
	for _, r := range l.code.refs {
		e.refs = append(e.refs, ref{r.at + len(e.out), r.value})
	}
	for _, r := range l.code.shifts {
		e.shifts = append(e.shifts, ref{r.at + len(e.out), r.value})
	}
	e.out = append(e.out, l.code.out...)
}

// leader writes what the leader knows, and what it is at.
func (e *encoder) leader(s *state, l *leader) {
	snapshot := l.ledger.Snapshot()
	for i := range s.config.Pods {
		id := ticketID(pod(i + 1))
		p, t := snapshot.Pod(pod(i+1)), snapshot.Ticket(id)
		e.bool(p != nil, t != nil)
		if p != nil {
			e.pod(*p)
		}
		if t != nil {
			e.ticket(*t)
		}
		e.uid(ticketObject(id), l.tickets[id])
	}
	for i := range l.nodes {
		e.node(l.nodes[i])
		if n := snapshot.Node(node(i + 1)); n != nil {
			e.version(nodeObject(n.Name), n.Version)
			e.bool(n.Ready == ledger.ReadyTrue, n.OutOfService, n.SawFail, n.Driver(driver).Exhausted)
		}
	}
	for i := range s.config.Access {
		e.volume(s, snapshot.Volume(volume(i+1)))
	}
	e.byte(l.queue.volumes, l.queue.nodes, l.queue.tickets, l.retry.volumes, l.retry.nodes, l.retry.tickets)
	e.ops(l.ops)
}

func (e *encoder) volume(s *state, v *ledger.Volume) {
	e.bool(v != nil)
	if v == nil {
		return
	}
	e.bool(v.Hold != nil)
	if v.Hold != nil {
		e.hold(v.ID, *v.Hold)
	}
	for i := range v.Places {
		p := &v.Places[i]
		e.text(string(p.Node))
		e.bool(p.Reported, p.InUse, p.Lapsed, p.SawLeave, p.Sent)
		e.byte(byte(p.Proof.Stage), byte(len(p.Users)))
		e.users(p.Users)
		a := p.Own()
		e.bool(a != nil)
		if a != nil {
			e.attachment(s, *a)
		}
	}
}

func (e *encoder) users(list []ledger.User) {
	names := make([]string, 0, len(list))
	for _, u := range list {
		names = append(names, u.Pod+"/"+u.Ticket.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.text(name)
	}
}

// ops writes what a leader is at.
func (e *encoder) ops(list []op) {
	e.byte(byte(len(list)))
	for _, o := range list {
		e.text(o.key)
		e.bool(o.waits, o.commit != nil, o.drops != nil)
		e.step(o.step)
		e.request(o.request)
		for _, step := range o.then {
			e.step(step)
		}
		if o.commit != nil {
			e.request(*o.commit)
		}
		if o.drops != nil {
			e.ticket(*o.drops)
		}
	}
}

func (e *encoder) step(s arbiter.Step) {
	e.byte(byte(s.Do))
	if s.Do == 0 {
		return
	}
	e.text(s.Volume.Handle)
	e.text(string(s.Node))
	e.text(s.Rule)
	e.text(s.UID[:min(2, len(s.UID))]) // a pod's, else a UID's beginning, which is always the same
	if s.Attachment != "" {
		e.uid(attachmentObject(s.Attachment), s.UID)
		e.version(attachmentObject(s.Attachment), s.Version)
	}
	if s.Rule != "" {
		e.version(nodeObject(s.Node), s.NodeVersion)
	}
	if s.Do == arbiter.WriteHold {
		e.version(holdObject(s.Volume), s.Expect)
		e.hold(s.Volume, ledger.Hold{Node: s.Hold.Node, Next: s.Hold.Next, Transitions: s.Hold.Transitions, State: s.Hold.State,
			Reason: s.Hold.Reason, Message: s.Hold.Message, Requesters: s.Hold.Requesters, Waiting: s.Hold.Waiting})
	}
}

func (e *encoder) requests(list []world.Request) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b world.Request) int { return strings.Compare(requestName(a), requestName(b)) })
	e.byte(byte(len(sorted)))
	for _, r := range sorted {
		e.request(r)
	}
}

// request writes what a request will do, and what it needs to succeed.
func (e *encoder) request(r world.Request) {
	e.byte(byte(r.Do))
	switch r.Do {
	case world.PutHold, world.DropHold:
		e.version(holdObject(r.Volume), r.Version)
		if h, ok := r.Fact.(ledger.HoldSeen); ok {
			h.Hold.Version = ""
			e.hold(r.Volume, h.Hold)
		}
	case world.CreateAttachment:
		a, _ := r.Fact.(ledger.Attachment)
		e.transitions(volumeAt(e.named(a.Name)), a.Transitions)
	case world.ConfirmAttachment:
		e.uid(e.named(r.Key), r.UID)
	case world.DropAttachment:
		o := e.named(r.Key)
		if p := r.Options.Preconditions; p != nil && p.UID != nil {
			e.uid(o, string(*p.UID))
		}
		if p := r.Options.Preconditions; p != nil && p.ResourceVersion != nil {
			e.version(o, *p.ResourceVersion)
		}
	case world.PatchNode:
		e.patch(r)
	case world.DecideTicket, world.DropTicket:
		o := ticketObject(world.TicketKey(r.Key))
		e.byte(byte(o), byte(r.Phase))
		e.text(r.Reason)
		e.version(o, r.Version)
		e.uid(o, r.UID)
	default:
		e.text(r.Key)
		e.text(r.UID)
		e.text(string(r.Node))
	}
}

// named writes which attachment a request is about.
func (e *encoder) named(attachment string) object {
	o := attachmentObject(attachment)
	e.byte(byte(o))
	return o
}

// patch writes what a patch of a Node tests, and what it changes.
func (e *encoder) patch(r world.Request) {
	e.text(string(r.Node))
	e.volumes(r.Read.Reported)
	for _, s := range r.Steps {
		e.byte(byte(s.Do))
		e.text(s.Volume.Handle)
		e.text(s.Rule)
		switch {
		case s.Do != arbiter.Unreport:
		case s.Rule == "":
			e.volumes(r.Read.InUse)
		default:
			e.version(nodeObject(r.Node), r.Read.Version)
		}
	}
}
