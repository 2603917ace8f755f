// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	// writeEvery is how often a pod writes to each of its volumes.
	writeEvery = time.Second
	// writeTimeout bounds a request for writes. The service never holds one.
	writeTimeout = 5 * time.Second
)

// writers stand for the pods of the node: they write to every volume that is published for writing.
// Each write is told to the pod before it is on the disk; the next one flushes it. There is always a
// write in the machine's memory only, until the volume is unpublished.
type writers struct {
	plugin *Plugin
	// wake has the next writes made at once.
	wake chan struct{}

	// mu is held while writes are under way: its holder knows that none are.
	mu   sync.Mutex
	open map[string]*writer // by volume
}

// writer is a volume that is written to.
type writer struct {
	diskapi.WriteMark
	// refused: a write was refused, as an I/O error makes a file system read-only.
	refused bool
	// ending counts the calls under way that end the writer.
	ending int
}

func newWriters(p *Plugin) *writers {
	return &writers{plugin: p, wake: make(chan struct{}, 1), open: map[string]*writer{}}
}

// run writes at every tick, and when it is woken, until ctx ends. Without ticks it writes every
// second.
func (w *writers) run(ctx context.Context, ticks <-chan func()) {
	var second <-chan time.Time
	if ticks == nil {
		t := time.NewTicker(writeEvery)
		defer t.Stop()
		second = t.C
	}
	for {
		written := func() {}
		select {
		case <-ctx.Done():
			return
		case written = <-ticks:
		case <-second:
		case <-w.wake:
		}
		if began, _ := w.write(ctx); began { // what failed the next tick makes again
			_, _ = w.write(ctx) // so that of every pod something is on the disk
		}
		written()
	}
}

// soon has the volumes written to that are new.
func (w *writers) soon() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// write makes one write to each volume, all in one request. If the service does not answer,
// it is open which of them were carried out, and they are made again. It returns whether a
// write was the first one of its writer.
func (w *writers) write(ctx context.Context) (began bool, err error) {
	if len(w.plugin.staged.writable()) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := w.plugin.checkBoot(ctx); err != nil {
		return false, err // the next tick asks again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.due()
	if len(writes) == 0 {
		return false, nil
	}
	answers, err := w.plugin.service.Write(ctx, diskapi.Writes{
		Node: w.plugin.config.nodeID(), Boot: w.plugin.staged.boot(), Volumes: writes,
	})
	if err != nil {
		return false, err
	}
	for _, a := range answers {
		v := w.writer(a.Volume)
		began = began || v.Session != a.Session && a.Session != 0
		v.WriteMark, v.refused = a.WriteMark, a.Refused != ""
	}
	return began, nil
}

// resume finds out how far the writer of a volume has come under a former plugin: its writes are in the
// machine's memory, and are flushed with the last unmount of any caller.
func (w *writers) resume(ctx context.Context, volume string) error {
	w.mu.Lock()
	known := w.writer(volume).Session != 0
	w.mu.Unlock()
	if known {
		return nil
	}
	_, err := w.write(ctx)
	return err
}

// due lists the writes to make next. The caller holds mu.
func (w *writers) due() []diskapi.Write {
	var writes []diskapi.Write
	volumes := w.plugin.staged.writable()
	for _, id := range slices.Sorted(maps.Keys(volumes)) {
		v := w.writer(id)
		if v.refused || v.ending > 0 {
			continue
		}
		next := diskapi.Write{Volume: id, AccessMode: volumes[id], WriteMark: v.WriteMark}
		if v.Session != 0 {
			next.Flushed, next.Written = v.Written, v.Written+1
		}
		writes = append(writes, next)
	}
	return writes
}

// end stops the writer of a volume, and returns the mark of the ending call's flush; nil if nothing was
// written. The caller reports the call's outcome by ended: after a failure the writer goes on, since
// its volume is still published.
func (w *writers) end(volume string) (last *diskapi.WriteMark, ended func(err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.writer(volume)
	v.ending++
	if v.Session != 0 {
		last = &diskapi.WriteMark{Session: v.Session, Written: v.Written, Flushed: v.Written}
	}
	if v.refused && last != nil {
		last.Flushed = v.Flushed
	}
	return last, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if v.ending--; err == nil && w.open[volume] == v {
			delete(w.open, volume)
		}
	}
}

// writer is the writer of a volume; a new one has not written. The caller holds mu.
func (w *writers) writer(volume string) *writer {
	v, ok := w.open[volume]
	if !ok {
		v = &writer{}
		w.open[volume] = v
	}
	return v
}
