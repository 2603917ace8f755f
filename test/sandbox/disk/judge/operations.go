// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type operations struct {
	attached map[string]map[string]struct{}
	works    map[workKey]*work
	copies   map[string]uint64
}

type workKey struct {
	call   uint64
	volume string
}

type work struct {
	operation     diskapi.Operation
	whileAttached bool
	torn          bool
	flushed       uint64
	// answered: its snapshot was answered early, so that it outlives the service.
	answered bool
}

func newOperations() operations {
	return operations{
		attached: map[string]map[string]struct{}{}, works: map[workKey]*work{}, copies: map[string]uint64{},
	}
}

func (j *Judge) observeOperations(e diskapi.Entry) {
	switch e.Phase {
	case diskapi.Noted:
		j.notedOperation(e)
	case diskapi.Applied:
		j.appliedAttachment(e)
		j.appliedOperation(e)
	}
}

func (j *Judge) notedOperation(e diskapi.Entry) {
	o := &j.operations
	switch e.Call {
	case diskapi.WorkBegan:
		o.works[workKey{e.ID, e.Volume}] = &work{
			operation: e.Operation, whileAttached: e.WhileAttached, flushed: j.onDisk(e.Volume),
		}
	case diskapi.WorkTorn, diskapi.SnapshotReady:
		o.end(e.ID)
	case diskapi.FenceNode:
		j.cutWorks()
	case diskapi.ServiceStarted:
		for k, w := range o.works {
			if !w.answered {
				delete(o.works, k)
			}
		}
	}
}

// appliedAttachment finds operations that a detach tears: they go through a running node, without another
// node. A machine that is off, or that the storage refuses, has torn them already.
func (j *Judge) appliedAttachment(e diskapi.Entry) {
	at := j.operations.attached[e.Volume]
	switch e.Call {
	case diskapi.ControllerPublish:
		if at == nil {
			at = map[string]struct{}{}
			j.operations.attached[e.Volume] = at
		}
		at[e.Node] = struct{}{}
	case diskapi.FenceNetwork:
		j.cutWorks()
	case diskapi.ControllerUnpublish:
		was := j.reaches(at)
		delete(at, e.Node)
		if !was || j.reaches(at) {
			return
		}
		for _, k := range j.operations.on(e.Volume) {
			if w := j.operations.works[k]; w.whileAttached && !w.torn {
				w.torn = true
				j.report(e, diskapi.TornOperation, "volume %s is detached from node %s in the middle of its %s (call %d), which needs it attached", e.Volume, e.Node, w.operation, k.call)
			}
		}
	}
}

// cutWorks marks operations that have lost their last node: no detach is to blame.
func (j *Judge) cutWorks() {
	for k, w := range j.operations.works {
		w.torn = w.torn || w.whileAttached && !j.reaches(j.operations.attached[k.volume])
	}
}

func (j *Judge) reaches(at map[string]struct{}) bool {
	for id := range at {
		if !j.node(id).fenced && !j.isCut(id) {
			return true
		}
	}
	return false
}

func (j *Judge) appliedOperation(e diskapi.Entry) {
	o := &j.operations
	switch e.Call {
	case diskapi.CreateSnapshot:
		o.keep(e, diskapi.Part{Volume: e.Volume, Handle: e.Snapshot})
	case diskapi.CreateGroupSnapshot:
		o.keep(e, e.Parts...)
	case diskapi.CreateVolume:
		if flushed, ok := o.copied(e); ok {
			j.content(e.Volume).flushed = flushed
		}
	}
	if !e.Unready {
		o.end(e.ID)
	}
}

func (j *Judge) onDisk(volume string) uint64 {
	if c, ok := j.contents[volume]; ok {
		return c.flushed
	}
	return 0
}

func (o *operations) keep(e diskapi.Entry, parts ...diskapi.Part) {
	for _, p := range parts {
		if w, ok := o.works[workKey{e.ID, p.Volume}]; ok {
			o.copies[p.Handle] = w.flushed
			w.answered = e.Unready
		}
	}
}

func (o *operations) copied(e diskapi.Entry) (flushed uint64, ok bool) {
	if flushed, ok = o.copies[e.Snapshot]; ok {
		return flushed, true
	}
	if w, ok := o.works[workKey{e.ID, e.Source}]; ok {
		return w.flushed, true
	}
	return 0, false
}

func (o *operations) on(volume string) []workKey {
	var keys []workKey
	for k := range o.works {
		if k.volume == volume {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b workKey) int { return cmp.Compare(a.call, b.call) })
	return keys
}

func (o *operations) end(call uint64) {
	for k := range o.works {
		if k.call == call {
			delete(o.works, k)
		}
	}
}
