// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

var errGiveUp = errors.New("it gave up")

func (k *manager) send(op string, r world.Request, then func(world.Answer, error)) {
	r.Manager = true
	k.s.net.send(&k.caller, op, k.s.Now().Add(kubeletTimeout), r, then)
}

func (k *manager) start(at world.At, attach bool) *operation {
	o := &operation{at: at, attach: attach, running: true}
	if was := k.busy[k.key(at)]; was != nil && was.attach == attach {
		o.failed = was.failed
	}
	k.busy[k.key(at)] = o
	return o
}

// After a failure the volume's place is uncertain, and the next try waits: half a second, doubled up to
// about two minutes.
func (k *manager) done(o *operation, err error) {
	if err == nil {
		delete(k.busy, k.key(o.at))
		return
	}
	if k.actual[o.at] == nil {
		k.actual[o.at] = &attached{mounted: true, since: k.s.Now()}
	}
	k.actual[o.at].confirmed = false
	o.running, o.polls = false, false
	o.next = k.s.Now().Add(min(firstPoll<<min(o.failed, 10), 122*time.Second))
	o.failed++
}

func (k *manager) detach(at world.At) bool {
	a := k.actual[at]
	forced := k.forced(at, a)
	o := k.start(at, false)
	was := a.reported
	a.reported = false
	k.status(at.Node, func(err error) {
		if err != nil {
			a.reported = was
			k.dirty[at.Node] = k.dirty[at.Node] || was
			o.running = false
			delete(k.busy, k.key(at))
			return
		}
		if forced {
			k.drop(o)
			return
		}
		k.send("detach "+atArg(at), world.Request{Do: world.GetObject, Kind: world.Nodes, Key: string(at.Node)}, func(ans world.Answer, err error) {
			n, _ := firstFact(ans).(ledger.NodeState)
			if err != nil || slices.Contains(n.InUse, at.Volume) {
				k.done(o, errGiveUp)
				return
			}
			k.drop(o)
		})
	})
	return true
}

func firstFact(ans world.Answer) ledger.Event {
	if len(ans.Facts) == 0 {
		return nil
	}
	return ans.Facts[0]
}

func (k *manager) drop(o *operation) {
	r := world.Request{Do: world.DropAttachment, Key: ledger.AttachmentName(o.at.Volume, o.at.Node)}
	k.send("delete "+atArg(o.at), r, func(_ world.Answer, err error) {
		if err != nil {
			k.done(o, err)
			return
		}
		k.poll(o)
	})
}

func (k *manager) poll(o *operation) {
	o.polls, o.pause = true, firstPoll
	o.next, o.end = k.s.Now().Add(o.pause), k.s.Now().Add(pollTimeout)
}

func (k *manager) attach(at world.At) bool {
	o := k.start(at, true)
	name := ledger.AttachmentName(at.Volume, at.Node)
	if _, there := k.vas[name]; there {
		k.poll(o)
		return true
	}
	r := world.Request{Do: world.CreateAttachment, Fact: ledger.Attachment{
		Name: name, Driver: at.Volume.Driver, Node: at.Node, PersistentVolume: k.s.volumeOfPV(at.Volume),
	}}
	k.send("attach "+atArg(at), r, func(ans world.Answer, err error) {
		if err != nil || ans.Code != world.OK && ans.Code != world.Exists {
			k.done(o, errGiveUp)
			return
		}
		k.poll(o)
	})
	return true
}

func (s *Sim) volumeOfPV(v ledger.VolumeID) string {
	for _, key := range s.w.Keys(world.PersistentVolumes) {
		if pv, _ := s.w.Get(world.PersistentVolumes, key).(ledger.PersistentVolume); pv.Volume == v {
			return key
		}
	}
	return ""
}

func (k *manager) look(_ string, o *operation) bool {
	va, there := k.vas[ledger.AttachmentName(o.at.Volume, o.at.Node)]
	switch {
	case !o.attach && !there:
		delete(k.actual, o.at)
		k.done(o, nil)
	case o.attach && there && va.Attached && !va.Deleting: // with any old error (csi_attacher.go, verifyAttachmentStatus)
		k.actual[o.at] = &attached{confirmed: true, reported: true, mounted: true, since: k.s.Now()}
		k.dirty[o.at.Node] = true
		k.done(o, nil)
	case o.attach && there && (va.Deleting || !va.AttachError.IsZero()), !o.attach && !va.DetachError.IsZero(),
		!k.s.Now().Before(o.end):
		k.done(o, errGiveUp)
	default:
		o.pause = min(2*o.pause, longestPoll) // slower than the real poll: fewer steps
		o.next = k.s.Now().Add(o.pause)
	}
	return true
}

func (k *manager) writing(n ledger.NodeName) bool {
	return k.s.net.find(messageID(&k.caller, "status "+string(n))) != nil
}

func (k *manager) status(n ledger.NodeName, then func(error)) bool {
	r := world.Request{Do: world.WriteReported, Node: n}
	for _, at := range k.sorted() {
		if at.Node == n && k.actual[at].reported {
			r.InUse = append(r.InUse, at.Volume)
		}
	}
	delete(k.dirty, n)
	k.send("status "+string(n), r, func(_ world.Answer, err error) {
		if err != nil {
			k.dirty[n] = true
		}
		then(err)
	})
	return true
}

func (k *manager) stale() bool {
	for at, a := range k.actual {
		if _, there := k.vas[ledger.AttachmentName(at.Volume, at.Node)]; a.confirmed && !there {
			return true
		}
	}
	return false
}

func (k *manager) checkable() bool {
	return k.begun && !k.s.Now().Before(k.checked.Add(checkEvery)) && k.stale()
}

func (k *manager) check() bool {
	k.checked = k.s.Now()
	for _, at := range k.sorted() {
		name := ledger.AttachmentName(at.Volume, at.Node)
		if _, there := k.vas[name]; there || !k.actual[at].confirmed || k.busy[k.key(at)] != nil {
			continue
		}
		if _, exists := k.s.w.Attachment(name); !exists { // a live read
			delete(k.actual, at)
			k.dirty[at.Node] = true
		}
	}
	return true
}
