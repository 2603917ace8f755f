// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type encoder struct {
	out    []byte
	refs   []ref
	shifts []ref // transitions: only their order counts
}

// Refs sort by their owner: its number is in the high bits, the place in the lowest placeBits.
type ref uint64

const placeBits = 19

func newRef(at int, value uint64) ref { return ref(value<<placeBits | uint64(at)) }
func (r ref) at() int                 { return int(r & (1<<placeBits - 1)) }
func (r ref) value() uint64           { return uint64(r >> placeBits) }

type object uint64

// Each object is followed by the others of its kind, and by its UIDs.
const (
	thePod        object = 0x10
	theTicket     object = 0x20
	theNode       object = 0x30
	theHold       object = 0x40
	theLease      object = 0x50
	theWord       object = 0x60
	theLook       object = 0x70
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

func volumeAt(attachment object) int { return int(attachment-theAttachment) / 16 }

// key is a state's canonical form as a 64-bit hash. Two of n states collide with a probability of about
// n²/2⁶⁵: of 10 million, 3 in a million.
func (s *state) key() uint64 { return s.keyIn(&scratch{}) }

type scratch struct {
	whole, part encoder
	left        map[uint64][2]queue
}

func (s *state) keyIn(room *scratch) uint64 {
	e := &room.whole
	e.reset()
	e.api(s)
	e.truth(s)
	if s.leader != nil {
		e.byte(1)
		e.known(s.leader)
		for _, o := range s.leader.waiting {
			e.bool(o.late != nil && slices.Contains(s.orphans, o.late))
		}
	}
	e.requests(s.orphans)
	return e.hash()
}

func (e *encoder) hash() uint64 {
	e.rank()
	e.shift()
	return max(maphash.Bytes(seed(), e.out), 1) // 0 is no key
}

// seed is drawn once: two runs have different collisions.
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

func (e *encoder) version(o object, v string) {
	n := uint64(0)
	for _, c := range []byte(v) {
		n = 10*n + uint64(c-'0')
	}
	e.ref(o, n)
}

func (e *encoder) uid(o object, uid string) {
	n := uint64(0)
	for _, c := range []byte(uid[max(0, len(uid)-6):]) {
		n = 16*n + uint64(c&0xf) + 9*uint64(c>>6)
	}
	e.ref(o|uidOf, n)
}

// renewed 0: none known.
func (e *encoder) lease(n ledger.NodeName, renewed int64) {
	e.ref(theLease+object(nodeIndex(n)), uint64(uint32(renewed)))
}

func (e *encoder) ref(o object, value uint64) {
	if value != 0 {
		e.refs = append(e.refs, newRef(len(e.out), uint64(o)<<32|value))
	}
	e.byte(0)
}

func (e *encoder) rank() {
	slices.Sort(e.refs)
	n, last := byte(0), uint64(0)
	for _, r := range e.refs {
		switch value := r.value(); {
		case value>>32 != last>>32:
			n, last = 1, value
		case value != last:
			n++
			last = value
		}
		e.out[r.at()] = n
	}
}

func (e *encoder) transitions(volume int, n int64) {
	if n != 0 {
		e.shifts = append(e.shifts, newRef(len(e.out), uint64(volume)<<32|uint64(n)))
	}
	e.byte(0)
}

func (e *encoder) shift() {
	slices.SortFunc(e.shifts, func(a, b ref) int { return cmp.Compare(a.value(), b.value()) })
	rank, last := byte(0), uint64(0)
	for _, r := range e.shifts {
		switch {
		case r.value()>>32 != last>>32:
			rank = 1
		case r.value() != last:
			rank++
		}
		last = r.value()
		e.out[r.at()] = rank
	}
}

func (e *encoder) reset() { e.out, e.refs, e.shifts = e.out[:0], e.refs[:0], e.shifts[:0] }

func (e *encoder) volumes(list []ledger.VolumeID) {
	e.byte(byte(len(list)))
	for _, v := range list {
		e.byte((v.Handle + "\x00\x00")[1])
	}
}
