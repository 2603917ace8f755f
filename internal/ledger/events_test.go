// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"time"
)

type source interface {
	below(n int) int
}

// stream makes events about few names. Versions rise; an object's events come in order, except repetitions.
type stream struct {
	source
	version int
	last    map[string]Event // the newest event about an existing object
	past    map[string]Event // an older one
	uids    int
}

func newStream(s source) *stream {
	return &stream{source: s, last: map[string]Event{}, past: map[string]Event{}}
}

func (s *stream) chance(n int) bool { return s.below(n) == 0 }

func (s *stream) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *stream) nodeName() NodeName { return NodeName("n" + strconv.Itoa(s.below(3))) }
func (s *stream) driver() string     { return []string{"d0", "d1", "kubernetes.io/iscsi"}[s.below(3)] }
func (s *stream) class() string      { return []string{"", "c0", "c1"}[s.below(3)] }
func (s *stream) access() Access     { return Access(s.below(6)) }
func (s *stream) claim() string      { return "k" + strconv.Itoa(s.below(4)) }
func (s *stream) pvName() string     { return "pv" + strconv.Itoa(s.below(4)) }
func (s *stream) podUID() string     { return "p" + strconv.Itoa(s.below(4)) }

func (s *stream) volume() VolumeID { return VolumeID{s.driver(), "h" + strconv.Itoa(s.below(3))} }

func (s *stream) volumes() []VolumeID {
	var list []VolumeID
	for range s.below(4) {
		list = append(list, s.volume())
	}
	return list
}

func (s *stream) keep(key string, e Event) Event {
	if old, ok := s.last[key]; ok {
		s.past[key] = old
	}
	s.last[key] = e
	return e
}

func (s *stream) gone(key string, e Event) Event {
	delete(s.last, key)
	delete(s.past, key)
	return e
}

func (s *stream) event() Event {
	switch s.below(18) {
	case 0, 1, 2:
		return s.pod()
	case 3, 4:
		return s.ticket()
	case 5:
		return s.claimEvent()
	case 6:
		return s.pvEvent()
	case 7, 8, 9:
		return s.attachment()
	case 10, 11:
		return s.node()
	case 12:
		return s.csinode()
	case 13, 14, 15:
		return s.proof()
	case 16:
		return s.repeat()
	}
	return s.rare()
}

func (s *stream) pod() Event {
	uid := s.podUID()
	key := "pod/" + uid
	old, known := s.last[key].(Pod)
	if known && s.chance(5) {
		return s.gone(key, PodGone{uid})
	}
	p := Pod{UID: uid, Version: s.next(), Namespace: "ns", Name: uid, Phase: PodPhase(s.below(3)), Node: old.Node, Volumes: old.Volumes}
	if p.Node == "" && s.chance(2) {
		p.Node = s.nodeName()
	}
	if !known {
		for i := range 1 + s.below(2) {
			v := PodVolume{Name: "v" + strconv.Itoa(i), Claim: s.claim(), Ephemeral: s.chance(4)}
			if s.chance(4) {
				v.Claim, v.Ephemeral, v.Inline, v.Access = "", false, s.volume(), s.access()
			}
			p.Volumes = append(p.Volumes, v)
		}
	}
	return s.keep(key, p)
}

func (s *stream) ticket() Event {
	id := TicketID{"ns", s.podUID()}
	t := Ticket{ID: id, Type: TypeBackup}
	if s.chance(3) {
		n := s.below(2)
		id = TicketID{"ns", "t" + strconv.Itoa(n)}
		t = Ticket{ID: id, Type: []TicketType{TypeManual, TypeSnapshot}[n]}
	}
	key := "ticket/" + id.Name
	if old, known := s.last[key].(Ticket); known {
		if s.chance(3) {
			if s.chance(3) {
				return TicketReleased{ID: id, UID: []string{"", old.UID, "another"}[s.below(3)]} // late events of it may come
			}
			return s.gone(key, TicketGone{ID: id})
		}
		t = old
		t.Version, t.Phase, t.Granted = s.next(), TicketPhase(s.below(3)%2), nil
		if t.Phase == TicketGranted && s.chance(2) {
			t.Granted = []VolumeID{s.volume()}
		}
		t.Reason = []string{"", "NotGranted", "NoFreeSlot", "Outranked"}[s.version%4]
		return s.keep(key, t)
	}
	t.Version, t.UID, t.Node, t.Phase = s.next(), s.uid(), s.nodeName(), TicketPhase(s.below(3)%2)
	for range 1 + s.below(2) {
		v := TicketVolume{Claim: s.claim()}
		switch s.below(4) {
		case 0, 1:
			v = TicketVolume{PersistentVolume: s.pvName()}
		case 2:
			if c, ok := s.last["claim/"+v.Claim].(Claim); ok {
				v.ClaimUID = c.UID
			}
		}
		t.Volumes = append(t.Volumes, v)
	}
	return s.keep(key, t)
}

func (s *stream) uid() string {
	s.uids++
	if s.uids%7 == 0 {
		return "u" + strconv.Itoa(s.uids)
	}
	return fmt.Sprintf("00000000-0000-0000-0000-%012x", s.uids)
}

func (s *stream) claimEvent() Event {
	name := s.claim()
	key, k := "claim/"+name, ClaimKey{"ns", name}
	old, known := s.last[key].(Claim)
	if known && s.chance(4) {
		return s.gone(key, ClaimGone{k})
	}
	c := Claim{Key: k, UID: old.UID, Version: s.next(), Class: s.class(), Access: s.access(), OwnerPod: []string{"", "p0", "p1"}[s.below(3)]}
	if !known {
		c.UID = s.uid()
	}
	if s.chance(2) {
		c.Bound, c.PersistentVolume = true, s.pvName()
	}
	c.Lost = s.chance(8)
	return s.keep(key, c)
}

func (s *stream) pvEvent() Event {
	name := s.pvName()
	key := "pv/" + name
	if _, known := s.last[key]; known && s.chance(4) {
		return s.gone(key, PersistentVolumeGone{name})
	}
	pv := PersistentVolume{Name: name, Version: s.next(), Access: s.access(), Deleting: s.chance(5)}
	if !s.chance(6) {
		pv.Volume = s.volume()
	}
	return s.keep(key, pv)
}

// The name fixes the whole spec.
func (s *stream) attachment() Event {
	i := s.below(8)
	n := NodeName("n" + strconv.Itoa(i%3))
	a := Attachment{Driver: "d0", Node: n, PersistentVolume: "pv" + strconv.Itoa(i%4)}
	switch {
	case i < 3:
		a.Name = AttachmentName(VolumeID{"d0", "h0"}, n)
	case i < 6:
		a.Name = fmt.Sprintf("foreign-%d", i)
	default:
		a.PersistentVolume, a.Inline = "", VolumeID{"d1", "h1"}
		a.Driver, a.Name = "d1", AttachmentName(a.Inline, n)
	}
	key := "va/" + a.Name
	old, known := s.last[key].(Attachment)
	if known && s.chance(4) {
		return s.gone(key, AttachmentGone{a.Name})
	}
	a.UID, a.Version = old.UID, s.next()
	if !known || s.chance(10) { // deleted and made again, with the deletion missed
		a.UID = s.uid()
	}
	a.Attached, a.Deleting = s.chance(2), s.chance(4)
	if s.chance(4) {
		a.AttachError = CallError{Code: ResourceExhausted, Message: "full"}
	}
	return s.keep(key, a)
}

func (s *stream) node() Event {
	name := s.nodeName()
	key := "node/" + string(name)
	old, known := s.last[key].(NodeState)
	if known && s.chance(6) {
		return s.gone(key, NodeGone{name})
	}
	if s.chance(4) {
		return NodeLease{name, int64(s.below(3))}
	}
	n := NodeState{
		Name: name, UID: old.UID, Version: s.next(), Ready: Readiness(s.below(3)), OutOfService: s.chance(5), Shutdown: s.version%5 == 0, Managed: !s.chance(6),
		Reporting: s.chance(2), InUse: s.volumes(), Reported: s.volumes(), ReadySince: int64(s.below(2)),
	}
	if s.version%3 > 0 {
		n.Labels = map[string]string{"topology.kubernetes.io/zone": []string{"a", "b"}[s.version%2]}
	}
	if s.version%7 < 4 {
		n.Fenced = []FencedCondition{{Type: "fenced.moorage.dev/a", Since: int64(s.version % 7 / 2)}}
	}
	if s.version%11 < 4 {
		n.CutOff = []string{fmt.Sprint("d", s.version%11/2)}
	}
	n.SystemUUID, n.BootID = []string{"", "first at " + string(name), "second at " + string(name)}[s.below(3)], []string{"", "boot1", "boot2"}[s.below(3)]
	if known && !s.chance(4) {
		n.SystemUUID, n.BootID, n.ProviderID = old.SystemUUID, old.BootID, old.ProviderID
	} else if s.chance(3) {
		n.ProviderID = []string{"cloud://1", "cloud://2"}[s.below(2)]
	}
	if !known || s.chance(8) {
		n.UID = s.uid()
	}
	return s.keep(key, n)
}

func (s *stream) csinode() Event {
	name := s.nodeName()
	key := "csinode/" + string(name)
	if _, known := s.last[key]; known && s.chance(4) {
		return s.gone(key, NodeDriversGone{name})
	}
	d := NodeDrivers{Node: name, Version: s.next()}
	for _, driver := range []string{"d0", "d1"} {
		if !s.chance(3) {
			d.Drivers = append(d.Drivers, DriverOnNode{Name: driver, Limit: int32(s.below(5)) - 1})
		}
	}
	return s.keep(key, d)
}

func (s *stream) proof() Event {
	n := s.nodeName()
	v := VolumeID{"d0", "h0"}
	if s.chance(2) {
		v = VolumeID{"d1", "h1"} // attached inline, so that its place is always right
	}
	a, _ := s.last["va/"+AttachmentName(v, n)].(Attachment)
	if s.chance(4) {
		a.Version = "1"
	}
	switch s.below(7) {
	case 0:
		return AttachSent{Volume: v, Node: n}
	case 1:
		return AttachResolved{Volume: v, Node: n}
	case 2:
		return RefusalsOver{start.Add(time.Duration(s.below(s.version+1)) * time.Second)} // at the speed of the tests
	}
	if s.chance(2) {
		return Unreported{Volume: v, Node: n, UID: a.UID, Version: a.Version, Forced: s.chance(3), Unknown: s.chance(3)}
	}
	return Unwanted{Volume: v, Node: n, UID: a.UID, Version: a.Version}
}

func (s *stream) repeat() Event {
	all := s.last
	if s.chance(2) {
		all = s.past
	}
	if len(all) == 0 {
		return s.rare()
	}
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	return all[sorted(keys)[s.below(len(keys))]]
}

func (s *stream) rare() Event {
	switch s.below(8) {
	case 0, 1:
		c := StorageClass{Name: "c" + strconv.Itoa(s.below(2)), Version: s.next(), Driver: s.driver(), WaitForFirst: s.chance(2)}
		if s.chance(4) {
			return s.gone("class/"+c.Name, StorageClassGone{c.Name})
		}
		return s.keep("class/"+c.Name, c)
	case 2:
		return s.keep("driver/d0", Driver{Name: "d0", Version: s.next(), AttachRequired: s.chance(2)})
	case 3:
		return s.gone("driver/d0", DriverGone{"d0"})
	case 4:
		return s.keep("policy/a", Policy{Name: "a", Version: s.next(), Driver: s.driver(), Class: s.class()})
	case 5:
		return s.gone("policy/a", PolicyGone{"a"})
	case 6:
		v := s.volume()
		return s.gone("hold/"+v.String(), HoldGone{Volume: v})
	}
	v := s.volume()
	h := Hold{Version: s.next(), Node: s.nodeName(), Stays: s.chance(3)}
	if s.chance(2) {
		uid := s.podUID()
		h.Requesters = []Requester{{Namespace: "ns", Name: uid, UID: uid}}
	}
	if s.chance(3) {
		uid := s.podUID()
		h.Waiting = []Requester{{Namespace: "ns", Name: uid, UID: uid}}
	}
	return s.keep("hold/"+v.String(), HoldSeen{v, h})
}
