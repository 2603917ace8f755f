// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type driver struct {
	failAttach map[ledger.VolumeID]ledger.CallError
	failDetach map[ledger.VolumeID]ledger.CallError
	hangs      map[ledger.VolumeID]bool // detaches that get no answer
	lies       map[ledger.VolumeID]bool // attaches that fail but have happened
	// The driver attaches to the machine with the name, and detaches from each machine that ever had it.
	byName bool
	// names maps a machine to its present name, called to its name at the attach. Other machines are called
	// by ID.
	names  map[string]string
	called map[string]map[ledger.VolumeID]string
	stock  bool // the attacher does not know that a volume may stay
	lists  bool // the attacher lists volumes, and attaches the missing ones again
	// Without ControllerPublish, external-attacher marks each attachment as attached without a check.
	trivial map[string]bool
	// Strict drivers refuse an attach of a volume that is elsewhere, or where they are not registered.
	strict bool
	retry  map[string]time.Time // by the attachment's name
}

func newDriver() driver {
	return driver{
		failAttach: map[ledger.VolumeID]ledger.CallError{},
		failDetach: map[ledger.VolumeID]ledger.CallError{},
		hangs:      map[ledger.VolumeID]bool{},
		lies:       map[ledger.VolumeID]bool{},
		names:      map[string]string{},
		trivial:    map[string]bool{},
		called:     map[string]map[ledger.VolumeID]string{},
		retry:      map[string]time.Time{},
	}
}

// external-attacher, --retry-interval-max
const longestRetry = 5 * time.Minute

// external-attacher retries at once if the metadata changed.
func (d *driver) saw(c world.Change) {
	was, _ := c.Old.(ledger.Attachment)
	now, _ := c.Fact.(ledger.Attachment)
	if c.Kind == world.Attachments && was.AttachError == now.AttachError {
		delete(d.retry, c.Key)
	}
}

// The CSINode's name, or else the name at its creation (external-attacher, getNodeID).
func (c *cluster) target(va ledger.Attachment, v ledger.VolumeID) string {
	if c.csi.byName {
		return string(va.Node)
	}
	drivers, _ := c.Drivers(va.Node)
	for _, d := range drivers.Drivers {
		if d.Name == v.Driver {
			return d.NodeID
		}
	}
	if m := c.machine(va.Node); va.NodeID == "" && m != nil {
		return m.ID
	}
	return va.NodeID
}

func (c *cluster) calls(m *world.Machine) string {
	switch name, renamed := c.csi.names[m.ID]; {
	case c.csi.byName:
		return string(m.Node)
	case renamed:
		return name
	}
	return m.ID
}

func (c *cluster) called(id string) *world.Machine {
	if c.csi.byName {
		return c.machine(ledger.NodeName(id))
	}
	for _, at := range sortedKeys(c.Machines) {
		if m := c.Machines[at]; c.calls(m) == id {
			return m
		}
	}
	return nil
}

func (c *cluster) publish(v ledger.VolumeID, id string) {
	m := c.called(id)
	if c.csi.called[m.ID] == nil {
		c.csi.called[m.ID] = map[ledger.VolumeID]string{}
	}
	if !slices.Contains(c.Disks.At[v], m.ID) {
		c.csi.called[m.ID][v] = id
	}
	c.Publish(v, m.ID)
}

// unpublish does not find a volume that was attached by another name.
func (c *cluster) unpublish(v ledger.VolumeID, id string) {
	for _, at := range sortedKeys(c.Machines) {
		m := c.Machines[at]
		was, attached := c.csi.called[at][v]
		if !attached || c.csi.byName {
			was = c.calls(m)
		}
		if was == id {
			c.Unpublish(v, m.ID)
			delete(c.csi.called[at], v)
		}
	}
}

func (c *cluster) attacher(name string) bool {
	va, _ := c.Attachment(name)
	v, ok := c.Source(va)
	switch {
	case !ok: // without the PersistentVolume an attacher only reports an error
		return c.fails(va, va.Name[:min(8, len(va.Name))], ledger.CallError{Message: "persistentvolume " + va.PersistentVolume + " not found"})
	case va.Deleting:
		return c.detach(va, v)
	case c.called(c.target(va, v)) == nil:
		return false
	case va.Attached:
		return c.csi.lists && c.listed(va, v)
	}
	if id := c.target(va, v); va.NodeID != id || !c.Stamped(name) {
		c.ask(world.Request{Do: world.StampAttachment, Key: name, UID: va.UID, NodeID: id})
		va, _ = c.Attachment(name)
	}
	return c.attach(va, v)
}

// listed republishes as external-attacher does (ReconcileVA, csiAttach).
func (c *cluster) listed(va ledger.Attachment, v ledger.VolumeID) bool {
	id := c.target(va, v)
	if va.NodeID == id {
		return false
	}
	c.ask(world.Request{Do: world.StampAttachment, Key: va.Name, UID: va.UID, NodeID: id})
	c.publish(v, id)
	c.trace("attacher: stamped %s at %s anew", volumeName(c, v), va.Node)
	return true
}

func (c *cluster) attach(va ledger.Attachment, v ledger.VolumeID) bool {
	if c.csi.strict && c.Now.Before(c.csi.retry[va.Name]) {
		return false
	}
	if e := c.refusal(v, va.Node); c.csi.strict && !e.IsZero() {
		c.csi.retry[va.Name] = c.Now.Add(longestRetry)
		return c.fails(va, volumeName(c, v), e)
	}
	if pv := c.pv(va.PersistentVolume); pv.Deleting && !c.csi.trivial[v.Driver] {
		return c.fails(va, volumeName(c, v), ledger.CallError{Message: "PersistentVolume " + pv.Name + " is marked for deletion"})
	}
	if e := c.csi.failAttach[v]; !e.IsZero() {
		if c.csi.lies[v] {
			c.publish(v, va.NodeID)
		}
		return c.fails(va, volumeName(c, v), e)
	}
	c.publish(v, va.NodeID)
	c.ask(world.Request{Do: world.MarkAttached, Key: va.Name, UID: va.UID})
	c.trace("attacher: attached %s to %s", volumeName(c, v), va.Node)
	return true
}

func (c *cluster) refusal(v ledger.VolumeID, n ledger.NodeName) ledger.CallError {
	drivers, _ := c.Drivers(n)
	if !slices.ContainsFunc(drivers.Drivers, func(d ledger.DriverOnNode) bool { return d.Name == v.Driver }) {
		return ledger.CallError{Message: "CSINode " + string(n) + " does not contain driver " + v.Driver}
	}
	for _, id := range c.Disks.At[v] {
		if at := c.Machines[id].Node; at != n && c.Exclusive(v) {
			return ledger.CallError{Code: 9, Message: "it is attached to " + string(at)}
		}
	}
	return ledger.CallError{}
}

func (c *cluster) fails(va ledger.Attachment, what string, e ledger.CallError) bool {
	do, said, verb := world.MarkAttached, va.AttachError, "at"
	if va.Deleting {
		do, said, verb = world.MarkDetached, va.DetachError, "from"
	}
	if said == e || va.Attached && !va.Deleting {
		return false
	}
	c.ask(world.Request{Do: do, Key: va.Name, UID: va.UID, Error: e})
	c.trace("attacher: %s %s %s: %s", what, verb, va.Node, e.Message)
	return true
}

func (c *cluster) detach(va ledger.Attachment, v ledger.VolumeID) bool {
	e := c.csi.failDetach[v]
	leaves := !e.IsZero() && va.Wanted && !c.csi.stock // as moorage-attacher does
	switch {
	case c.csi.hangs[v]:
		return false
	case !e.IsZero() && !leaves:
		return c.fails(va, volumeName(c, v), e)
	case leaves:
		c.trace("attacher: left %s at %s", volumeName(c, v), va.Node)
	default:
		c.unpublish(v, c.target(va, v))
		c.trace("attacher: detached %s from %s", volumeName(c, v), va.Node)
	}
	c.ask(world.Request{Do: world.MarkDetached, Key: va.Name, UID: va.UID})
	return true
}
