// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/test/bench/scale/hollow"
	"github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const loadUser = "sandbox-admin"

// meter counts writes by the audit log, per phase. It is safe for parallel use.
type meter struct {
	log        *audit.Reader
	controller string
	foreign    func(*audit.Object) bool

	mu  sync.Mutex
	all bool // foreign writes also count
	window
}

func newMeter(log *audit.Reader, controller string, foreign func(*audit.Object) bool) *meter {
	return &meter{log: log, controller: controller, foreign: foreign, window: newWindow()}
}

func newWindow() window { return window{times: map[string]int{}} }

func (m *meter) countAll(all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = all
}

type window struct {
	writes []audit.Event
	times  map[string]int // the controller's successful writes, by target
	// last ignores events; created is the receipt of the first VolumeAttachment.
	last, created time.Time
	refused       int
}

func (m *meter) begin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.read(); err != nil {
		return err
	}
	m.window = newWindow()
	return nil
}

func (m *meter) read() error {
	events, err := m.log.Next()
	if err != nil {
		return err
	}
	for _, e := range events {
		m.see(e)
	}
	return nil
}

func (m *meter) see(e audit.Event) {
	actor := e.Actor()
	if !e.IsWrite() || actor == loadUser || !m.all && m.foreign(e.Object) {
		return
	}
	if strings.HasPrefix(actor, hollow.UserPrefix) {
		actor = "node:*"
	}
	m.writes = append(m.writes, audit.Event{
		Stage: e.Stage, Verb: e.Verb, Object: e.Object, Response: e.Response, User: audit.User{Username: strings.TrimPrefix(actor, "system:serviceaccount:")},
	})
	if actor != m.controller {
		return
	}
	path := e.Object.Path()
	// Events have a rate of their own, and trail behind.
	if path != "events" && e.Finished.After(m.last) {
		m.last = e.Finished
	}
	if e.Response.Code >= 400 {
		m.refused++
		return
	}
	if e.Verb == "create" && path == "volumeattachments" && m.created.IsZero() {
		m.created = e.Received
	}
	// A Node's status is written for each of its volumes, and events have no lasting name.
	if path != "nodes/status" && path != "events" && e.Object.Name != "" {
		m.times[e.Verb+" "+path+" "+e.Object.Namespace+"/"+e.Object.Name]++
	}
}

func (m *meter) moments() (created, last time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.read()
	return m.created, m.last, err
}

func (m *meter) end() (result.Writes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.read(); err != nil {
		return result.Writes{}, err
	}
	return m.result(), nil
}

func (w *window) result() result.Writes {
	out := result.Writes{All: audit.Writes(w.writes), Refused: w.refused, Again: map[string]int{}}
	for what, times := range w.times {
		if times > 1 {
			kind := what[:strings.LastIndexByte(what, ' ')]
			out.Again[kind] += times - 1
		}
	}
	slices.SortStableFunc(out.All, func(a, b audit.Write) int { return b.Count - a.Count })
	return out
}
