// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// do executes a step as internal/execute does, one request after the other,
// and tells what came of it when its effect is known to the ledger.
func (c *controller) do(step arbiter.Step, then func(error)) {
	switch step.Do {
	case arbiter.WriteHold:
		c.doHold(step, then)
	case arbiter.DeleteHold:
		switch {
		case step.Hold.Transitions == 0:
			c.doHold(step, then)
		case len(step.Hold.PVs) == 0:
			c.proveNone(step, then)
		default:
			c.proveGone(step, step.Hold.PVs, then)
		}
	case arbiter.CreateAttachment:
		c.doCreate(step, then)
	case arbiter.FindAttachment:
		c.findAttachment(step, nil, then)
	case arbiter.Report:
		c.doReport(step, then)
	case arbiter.Unreport:
		c.join(c.writes, step, then, c.writeNode)
	case arbiter.ConfirmUnwanted:
		c.join(c.lists, step, then, c.listPods)
	case arbiter.DeleteAttachment:
		if step.Within > 0 {
			c.doDeleteWithin(step, then)
		} else {
			c.doDelete(step, c.s.Now().Add(c.s.config.WriteTimeout), then)
		}
	case arbiter.MarkWanted:
		c.doMarkWanted(step, then)
	case arbiter.ProveAbsent:
		c.doProveAbsent(step, then)
	case arbiter.RemovePod:
		c.write("remove pod "+step.UID, world.Request{Do: world.RemovePod, UID: step.UID}, func(_ world.Answer, err error) { then(err) })
	}
}

func (c *controller) doHold(step arbiter.Step, then func(error)) {
	r := world.Request{
		Do: world.PutHold, Volume: step.Volume, Version: step.Expect,
		Fact: ledger.HoldSeen{Volume: step.Volume, Hold: step.Hold},
	}
	if step.Do == arbiter.DeleteHold {
		r.Do = world.DropHold
	}
	c.write(step.Do.String()+" "+volumeArg(step.Volume), r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code == world.OK, a.Code == world.NotFound && step.Do == arbiter.DeleteHold:
			c.observer.saw(a.Facts...)
			then(nil)
		default:
			c.reread(world.Holds, step.Volume.String(), then)
		}
	})
}

// proveGone reads the PersistentVolumes that a hold names, before it deletes it.
func (c *controller) proveGone(step arbiter.Step, pvs []string, then func(error)) {
	if len(pvs) == 0 {
		c.doHold(step, then)
		return
	}
	r := world.Request{Do: world.GetObject, Kind: world.PersistentVolumes, Key: pvs[0]}
	c.write("get pv "+pvs[0], r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code == world.NotFound:
			c.proveGone(step, pvs[1:], then)
		default:
			c.observer.saw(a.Facts...)
			then(errStale)
		}
	})
}

// proveNone reads all PersistentVolumes, before a hold that names none is
// deleted.
func (c *controller) proveNone(step arbiter.Step, then func(error)) {
	c.write("list pvs", world.Request{Do: world.ListObjects, Kind: world.PersistentVolumes}, func(a world.Answer, err error) {
		if err != nil {
			then(err)
			return
		}
		for _, e := range a.Facts {
			if pv, ok := e.(ledger.PersistentVolume); ok && pv.Volume == step.Volume {
				c.observer.saw(e)
				then(errStale)
				return
			}
		}
		c.doHold(step, then)
	})
}

// doCreate creates a VolumeAttachment; that one exists already is no error.
func (c *controller) doCreate(step arbiter.Step, then func(error)) {
	a := ledger.Attachment{
		Name: step.Attachment, Driver: step.Volume.Driver, Node: step.Node,
		PersistentVolume: step.PV, Ours: true, Transitions: step.Transitions,
	}
	if step.PV == "" {
		a.Inline = step.Volume
	}
	stamp := c.s.w.Stamps && step.NodeID != ""
	if stamp {
		a.NodeID = step.NodeID
	}
	c.observer.apply(ledger.AttachSent{Volume: step.Volume, Node: step.Node})
	if p := c.observer.snapshot().Volume(step.Volume).Place(step.Node); p == nil || !p.Sent {
		then(errStale)
		return
	}
	c.write(stepOp(step), world.Request{Do: world.CreateAttachment, Fact: a, Stamp: stamp, Node: step.Beside}, func(ans world.Answer, err error) {
		switch {
		case err == nil && ans.Code == world.OK:
			c.confirmed[world.UIDOf(ans.Facts[0])] = true
			c.observer.saw(ans.Facts...)
			c.settled(step)
			then(nil)
		case err == nil:
			c.findAttachment(step, errStale, then)
		case err == errNoLease:
			c.settled(step)
			then(err)
		default:
			c.outlast(func() { c.findAttachment(step, err, then) })
		}
	})
}

// settled tells the ledger that it knows what came of a creation.
func (c *controller) settled(step arbiter.Step) {
	c.observer.apply(ledger.AttachSettled{Volume: step.Volume, Node: step.Node})
}

// findAttachment looks for an attachment that may have been created.
func (c *controller) findAttachment(step arbiter.Step, failed error, then func(error)) {
	r := world.Request{Do: world.GetObject, Kind: world.Attachments, Key: step.Attachment}
	c.write("find "+stepOp(step), r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code != world.OK:
			c.settled(step)
			then(failed)
		default:
			c.observer.saw(a.Facts...)
			c.settled(step)
			then(nil)
		}
	})
}

// doReport puts a volume into volumesAttached, once its attachment is proved
// to be there to stay.
func (c *controller) doReport(step arbiter.Step, then func(error)) {
	if step.Attachment == "" || c.confirmed[step.UID] {
		c.join(c.writes, step, then, c.writeNode)
		return
	}
	r := world.Request{Do: world.ConfirmAttachment, Key: step.Attachment, UID: step.UID}
	c.write("confirm "+stepOp(step), r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
			return
		case a.Code != world.OK:
			then(errStale)
			return
		}
		c.observer.saw(a.Facts...)
		if !execute.Confirms(step, attachmentObject(a.Facts[0])) {
			then(errStale)
			return
		}
		c.confirmed[step.UID] = true
		c.join(c.writes, step, then, c.writeNode)
	})
}

// attachmentObject makes the object of a VolumeAttachment's facts, as far as
// it is looked at.
func attachmentObject(e ledger.Event) *storagev1.VolumeAttachment {
	a, _ := e.(ledger.Attachment)
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, UID: types.UID(a.UID), ResourceVersion: a.Version},
		Status:     storagev1.VolumeAttachmentStatus{Attached: a.Attached},
	}
	if a.Deleting {
		object.DeletionTimestamp = &metav1.Time{}
	}
	return object
}

func (c *controller) doDelete(step arbiter.Step, deadline time.Time, then func(error)) {
	delete(c.confirmed, step.UID)
	r := world.Request{Do: world.DropAttachment, Key: step.Attachment, Options: execute.Deletion(step), Within: step.Within > 0}
	c.writeBy(deadline, stepOp(step), r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code == world.Conflict:
			c.reread(world.Attachments, step.Attachment, then)
		default:
			then(nil)
		}
	})
}

// doMarkWanted has the attacher told that a volume is wanted again where it is
// being detached.
func (c *controller) doMarkWanted(step arbiter.Step, then func(error)) {
	r := world.Request{Do: world.MarkWanted, Key: step.Attachment, UID: step.UID}
	c.write(stepOp(step), r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code != world.OK:
			then(errStale)
		default:
			c.observer.saw(a.Facts...)
			then(nil)
		}
	})
}

// stepOp names a step among its process's requests.
func stepOp(s arbiter.Step) string {
	return fmt.Sprintf("%s %s %s", s.Do, volumeArg(s.Volume), s.Node)
}

// batch is what waits for a request of its node to end, to go into the next.
type batch struct {
	busy    bool
	pending []*entry
}

type entry struct {
	step arbiter.Step
	then func(error)
}

// join puts a step into the next request about its node. When none is under
// way, that begins at once.
func (c *controller) join(of map[ledger.NodeName]*batch, step arbiter.Step, then func(error), send func(ledger.NodeName, []*entry, func())) {
	b := of[step.Node]
	if b == nil {
		b = &batch{}
		of[step.Node] = b
	}
	b.pending = append(b.pending, &entry{step, then})
	if !b.busy {
		b.busy = true
		c.drain(b, step.Node, send)
	}
}

func (c *controller) drain(b *batch, n ledger.NodeName, send func(ledger.NodeName, []*entry, func())) {
	entries := b.pending
	b.pending = nil
	if len(entries) == 0 {
		b.busy = false
		return
	}
	send(n, entries, func() { c.drain(b, n, send) })
}

// writeNode writes all changes of a batch that fit, with one patch.
func (c *controller) writeNode(n ledger.NodeName, entries []*entry, next func()) {
	node, known := c.observer.get(world.Nodes, string(n)).(ledger.NodeState)
	if !known {
		c.withoutNode(n, entries, next)
		return
	}
	object := world.NodeObject(node)
	var fitting []*entry
	var steps []arbiter.Step
	for _, e := range entries {
		if !execute.Fits(object, e.step) {
			e.then(errStale)
			continue
		}
		fitting, steps = append(fitting, e), append(steps, e.step)
	}
	if len(fitting) == 0 {
		next()
		return
	}
	settle := func(err error) {
		for _, e := range fitting {
			if err == nil && e.step.Do == arbiter.Unreport {
				c.unreported(e.step)
			}
			e.then(err)
		}
		next()
	}
	c.write("patch "+string(n), world.Request{Do: world.PatchNode, Node: n, Read: node, Steps: steps}, func(a world.Answer, err error) {
		switch {
		case err != nil && err != errNoLease && adds(steps):
			c.outlast(func() { c.reread(world.Nodes, string(n), settle) })
		case err != nil:
			settle(err)
		case a.Code == world.OK:
			c.observer.saw(a.Facts...)
			settle(nil)
		default:
			c.reread(world.Nodes, string(n), settle)
		}
	})
}

// adds says whether a patch puts anything into volumesAttached.
func adds(steps []arbiter.Step) bool {
	return slices.ContainsFunc(steps, func(s arbiter.Step) bool { return s.Do == arbiter.Report })
}

// withoutNode settles a batch for a Node that is not known.
func (c *controller) withoutNode(n ledger.NodeName, entries []*entry, next func()) {
	c.write("get node "+string(n), world.Request{Do: world.GetObject, Kind: world.Nodes, Key: string(n)}, func(a world.Answer, err error) {
		if err == nil && a.Code == world.OK {
			c.observer.saw(a.Facts...)
			err = errStale
		}
		for _, e := range entries {
			switch {
			case err == nil && e.step.Do == arbiter.Unreport && e.step.NodeUID == "":
				c.unreported(e.step)
				e.then(nil)
			case err == nil:
				e.then(errStale)
			default:
				e.then(err)
			}
		}
		next()
	})
}

func (c *controller) unreported(s arbiter.Step) {
	c.observer.apply(ledger.Unreported{Volume: s.Volume, Node: s.Node, UID: s.UID, Version: s.Version, Forced: s.Rule != ""})
}

// listPods tells the ledger Unwanted, or of the pod that wants the volume.
func (c *controller) listPods(n ledger.NodeName, entries []*entry, next func()) {
	c.write("list pods of "+string(n), world.Request{Do: world.ListPods, Node: n}, func(a world.Answer, err error) {
		if err != nil {
			for _, e := range entries {
				e.then(err)
			}
			next()
			return
		}
		c.observer.saw(a.Facts...)
		c.resolve(a.Facts, func(err error) {
			for _, e := range entries {
				if err == nil && !c.wanted(a.Facts, e.step.Volume) {
					c.observer.apply(ledger.Unwanted{Volume: e.step.Volume, Node: n, UID: e.step.UID, Version: e.step.Version})
				}
				e.then(err)
			}
			next()
		})
	})
}

// wanted says whether an unfinished pod wants a volume, as far as is known.
func (c *controller) wanted(pods []ledger.Event, v ledger.VolumeID) bool {
	s := c.observer.snapshot()
	for _, e := range pods {
		pod, _ := e.(ledger.Pod)
		if pod.Phase == ledger.PodFinished {
			continue
		}
		if slices.Contains(s.PodAt(pod.UID), v) {
			return true
		}
		for _, volume := range pod.Volumes {
			if id, _ := s.ResolvePod(&pod, volume); id == v {
				return true
			}
		}
	}
	return false
}

// resolve reads the claims and PersistentVolumes of unfinished pods that the
// caches can't follow.
func (c *controller) resolve(pods []ledger.Event, then func(error)) {
	s := c.observer.snapshot()
	var open []string
	for _, e := range pods {
		pod, _ := e.(ledger.Pod)
		if pod.Phase == ledger.PodFinished {
			continue
		}
		for _, volume := range pod.Volumes {
			if _, link := s.ResolvePod(&pod, volume); volume.Claim != "" && link != ledger.LinkVolume && link != ledger.LinkNone {
				open = append(open, ledger.ClaimKey{Namespace: pod.Namespace, Name: volume.Claim}.String())
			}
		}
	}
	c.readClaims(open, then)
}

func (c *controller) readClaims(keys []string, then func(error)) {
	if len(keys) == 0 {
		then(nil)
		return
	}
	c.read(world.Claims, keys[0], func(e ledger.Event, err error) {
		claim, found := e.(ledger.Claim)
		switch {
		case err != nil:
			then(err)
		case !found || claim.PersistentVolume == "":
			c.readClaims(keys[1:], then)
		default:
			c.read(world.PersistentVolumes, claim.PersistentVolume, func(_ ledger.Event, err error) {
				if err != nil {
					then(err)
					return
				}
				c.readClaims(keys[1:], then)
			})
		}
	})
}

// read takes in an object as it is now; nil when there is none.
func (c *controller) read(k world.Kind, key string, then func(ledger.Event, error)) {
	c.write("read "+k.String()+" "+key, world.Request{Do: world.GetObject, Kind: k, Key: key}, func(a world.Answer, err error) {
		if err != nil || a.Code != world.OK {
			then(nil, err)
			return
		}
		c.observer.saw(a.Facts...)
		then(a.Facts[0], nil)
	})
}
