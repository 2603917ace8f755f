// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// path is how far a pod has come, with the time at which each stage was first seen; zero
// where it was not.
type path struct {
	namespace, name, uid string
	node                 ledger.NodeName
	created              time.Time
	reserved             time.Time // its ticket was made
	granted              time.Time
	bound                time.Time
	late                 bool // it had a node already when it was first seen
	looked               bool // its volumes have been looked at
	volumes              []volumePath
}

// volumePath is the same of one of its volumes.
type volumePath struct {
	name, driver     string
	from             ledger.NodeName // where it was before
	leaving, left    time.Time
	asked, attached  time.Time
	reported         time.Time
	there            bool // it was there when the pod was first seen
	persistentVolume string
}

// newPath begins to follow a pod that is seen now.
func newPath(namespace, name, uid string, created int64, placed bool, now time.Time) *path {
	return &path{namespace: namespace, name: name, uid: uid, created: estimate(created, now), late: placed}
}

// estimate is when something happened that an object says to the second, and that was seen
// now: when it was seen, if that is within that second; else when the object says.
func estimate(seconds int64, now time.Time) time.Time {
	at := time.Unix(seconds, 0)
	if since := now.Sub(at); since >= 0 && since < time.Second {
		return now
	}
	return at
}

// look notes the stages that have been reached by now.
func (p *path) look(s ledger.Snapshot, pod *ledger.Pod, now time.Time) {
	p.node = pod.Node
	if t := s.Ticket(ledger.TicketID{Namespace: pod.Namespace, Name: pod.UID}); t != nil && t.Phase != ledger.TicketRefused {
		if p.node == "" {
			p.node = t.Node
		}
		if at := estimate(t.Created, now); at.After(p.created) {
			once(&p.reserved, at)
		}
		once(&p.reserved, p.created) // in the second in which the pod was made
		if t.Phase == ledger.TicketGranted {
			once(&p.granted, now)
		}
	}
	if pod.Node != "" {
		once(&p.bound, now)
		if !p.reserved.IsZero() && (p.granted.IsZero() || p.granted.After(p.bound)) {
			p.granted = p.bound // no later: it is seen, or its ticket is gone, by the time that this is looked at
		}
	}
	for _, v := range pod.Volumes {
		id, link := s.ResolvePod(pod, v)
		if link.NeedsNone() || !id.IsReal() || !s.AttachRequired(id.Driver) {
			continue
		}
		name := v.Claim
		if name == "" {
			name = v.Name
		}
		p.volume(name, id.Driver).look(s.Volume(id), p.node, now)
	}
	for i := range p.volumes {
		p.volumes[i].there = p.volumes[i].there || !p.looked && !p.volumes[i].reported.IsZero()
	}
	p.looked = true
}

func once(at *time.Time, now time.Time) {
	if at.IsZero() {
		*at = now
	}
}

// volume finds a volume of the pod by name, or begins to follow it.
func (p *path) volume(name, driver string) *volumePath {
	for i := range p.volumes {
		if p.volumes[i].name == name {
			return &p.volumes[i]
		}
	}
	p.volumes = append(p.volumes, volumePath{name: name, driver: driver})
	return &p.volumes[len(p.volumes)-1]
}

// look notes how far a volume is on its way to a node.
func (p *volumePath) look(v *ledger.Volume, node ledger.NodeName, now time.Time) {
	if v == nil {
		return
	}
	if names := v.PVs(); len(names) > 0 {
		p.persistentVolume = names[0]
	}
	p.leave(v, node, now)
	at := v.NodeVolume(node)
	if va := at.Own(); va != nil && !va.Deleting {
		once(&p.asked, now)
		if va.Attached {
			once(&p.attached, now)
		}
	}
	if at != nil && at.Reported && (!p.attached.IsZero() || v.ID.NoAttach()) {
		once(&p.reported, now)
	}
}

// leave notes an exclusive volume's way out of another node, which it has to leave first.
func (p *volumePath) leave(v *ledger.Volume, node ledger.NodeName, now time.Time) {
	if v.Access == ledger.AccessMany || !p.left.IsZero() {
		return
	}
	for i := range v.NodeVolumes {
		if other := &v.NodeVolumes[i]; other.Node != node && other.HasAttachments() {
			p.from = other.Node
			once(&p.leaving, now)
			return
		}
	}
	if !p.leaving.IsZero() {
		p.left = now
	}
}

// mountable is when the last volume could be mounted at the pod's node; zero where that is
// not known.
func (p *path) mountable() time.Time {
	last := p.bound
	for i := range p.volumes {
		if p.volumes[i].reported.IsZero() {
			return time.Time{}
		}
		if p.volumes[i].reported.After(last) {
			last = p.volumes[i].reported
		}
	}
	return last
}
