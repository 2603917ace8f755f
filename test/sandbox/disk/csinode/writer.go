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
	writeEvery = time.Second
	// The service never holds a request for writes.
	writeTimeout = 5 * time.Second
)

// writers stand for the node's pods: they write to every volume that is published for writing. A pod is
// told of a write before it is on the disk, and the next write flushes it: the last write is only in the
// machine's memory until the volume is unpublished.
type writers struct {
	plugin *Plugin
	wake   chan struct{}

	// The holder of mu knows that no writes are under way.
	mu   sync.Mutex
	open map[string]*writer // by volume
}

type writer struct {
	diskapi.WriteMark
	// refused: a write was refused, as an I/O error makes a file system read-only.
	refused bool
	ending  int
}

func newWriters(p *Plugin) *writers {
	return &writers{plugin: p, wake: make(chan struct{}, 1), open: map[string]*writer{}}
}

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
		if began, _ := w.write(ctx); began { // the next tick repeats a failed write
			_, _ = w.write(ctx) // every pod then has something on the disk
		}
		written()
	}
}

func (w *writers) soon() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// write makes a write to each volume, in one request. Without an answer it is open which writes were
// carried out, and they are repeated. began: a writer made its first write.
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

// resume finds a former plugin's writes: they are in the machine's memory, and any caller's last unmount
// flushes them.
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

// The caller holds mu.
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

// end returns the mark of the ending call's flush; nil if nothing was written. The caller reports the
// outcome by ended: after a failure the writer goes on, since its volume is still published.
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

// The caller holds mu.
func (w *writers) writer(volume string) *writer {
	v, ok := w.open[volume]
	if !ok {
		v = &writer{}
		w.open[volume] = v
	}
	return v
}
