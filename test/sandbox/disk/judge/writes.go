// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type content struct {
	flushed uint64
	writers map[string]*writer
	began   map[string]beginning
}

type beginning struct {
	entry     uint64
	exclusive bool
}

type writer struct {
	diskapi.WriteMark
	exclusive bool
	// detached: the machine has the mount, and not the disk.
	detached bool
	refused  bool
	// told is the entry of the latest writer beside whom this writer was reported.
	told uint64
}

func (j *Judge) observeWrites(e diskapi.Entry) {
	switch {
	case e.Phase == diskapi.Noted:
		j.notedWrite(e)
	case e.Phase == diskapi.Applied:
		j.appliedToWriters(e)
	}
}

func (j *Judge) notedWrite(e diskapi.Entry) {
	switch e.Call {
	case diskapi.WriteBegan:
		j.writeBegan(e)
	case diskapi.Wrote:
		j.wrote(e)
	case diskapi.WriteRefused:
		if w := j.writer(e); w != nil {
			w.refused = true
		}
	case diskapi.FenceNode:
		for _, c := range j.contents {
			delete(c.writers, e.Node)
		}
	}
}

func (j *Judge) appliedToWriters(e diskapi.Entry) {
	switch e.Call {
	case diskapi.ControllerPublish:
		if w := j.writer(e); w != nil {
			w.detached = false
		}
	case diskapi.ControllerUnpublish:
		j.checkDetached(e)
	case diskapi.NodeUnpublish, diskapi.NodeUnstage:
		if w := j.writer(e); w != nil && e.Write != nil && e.Write.Session == w.Session {
			j.contents[e.Volume].flushed = max(j.contents[e.Volume].flushed, e.Write.Flushed)
			delete(j.contents[e.Volume].writers, e.Node)
		}
	case diskapi.DeleteVolume:
		delete(j.contents, e.Volume)
	}
}

// Nobody else can write, and earlier flushed writes were there to be read.
func (j *Judge) writeBegan(e diskapi.Entry) {
	c := j.content(e.Volume)
	exclusive := diskapi.Exclusive(e.AccessMode)
	for _, other := range slices.Sorted(maps.Keys(c.writers)) {
		w := c.writers[other]
		if other != e.Node && (exclusive || w.exclusive) && !w.detached && !w.refused && !j.isCut(other) {
			j.report(e, diskapi.WrittenByTwo, "node %s writes to volume %s, and node %s can write to it, too", e.Node, e.Volume, other)
			w.told = e.Seq
		}
	}
	if e.Write.Flushed < c.flushed {
		j.report(e, diskapi.WriteLost, "node %s finds write %d on volume %s, to which write %d was flushed", e.Node, e.Write.Flushed, e.Volume, c.flushed)
	}
	c.flushed, c.began[e.Node] = e.Write.Flushed, beginning{e.Seq, exclusive}
	c.writers[e.Node] = &writer{
		WriteMark: diskapi.WriteMark{Session: e.Seq, Written: e.Write.Written, Flushed: e.Write.Flushed},
		exclusive: exclusive,
	}
}

// Nobody has written to the volume since this writer's machine read it; its session is its beginning. A
// writer that was reported at its beginning is not reported again.
func (j *Judge) wrote(e diskapi.Entry) {
	w := j.writer(e)
	if w == nil {
		return
	}
	c := j.contents[e.Volume]
	for _, other := range slices.Sorted(maps.Keys(c.began)) {
		began := c.began[other]
		if (began.exclusive || w.exclusive) && began.entry > w.Session && began.entry > w.told {
			j.report(e, diskapi.WrittenByTwo, "node %s writes to volume %s, to which node %s has written since %s has it mounted", e.Node, e.Volume, other, e.Node)
			w.told = began.entry
		}
	}
	w.WriteMark = *e.Write
	c.flushed = max(c.flushed, e.Write.Flushed)
}

// checkDetached looks at the machine's memory. A machine that is off has nothing, and a refused machine
// could not flush.
func (j *Judge) checkDetached(e diskapi.Entry) {
	w := j.writer(e)
	if w == nil || w.detached {
		return
	}
	w.detached = true
	if !w.refused && !j.isCut(e.Node) && w.Written > w.Flushed {
		j.report(e, diskapi.WriteLost, "volume %s is detached from node %s, which has flushed write %d of %d", e.Volume, e.Node, w.Flushed, w.Written)
	}
}

func (j *Judge) content(volume string) *content {
	c, ok := j.contents[volume]
	if !ok {
		c = &content{writers: map[string]*writer{}, began: map[string]beginning{}}
		j.contents[volume] = c
	}
	return c
}

func (j *Judge) writer(e diskapi.Entry) *writer {
	c, ok := j.contents[e.Volume]
	if !ok {
		return nil
	}
	return c.writers[e.Node]
}
