// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// works are the few claims with a driver's operation that is not known to have ended. Safe for parallel
// use.
type works struct {
	mu      sync.Mutex
	of      map[string]*operation.Work
	changed func()
}

// The facts already have the changed object: of claim and PersistentVolume, the later sees the other.
func (o *Observer) follow(event ledger.Event, work *operation.Work) {
	claims := o.feeds[Claims]
	if claims == nil {
		return
	}
	switch e := event.(type) {
	case ledger.Claim:
		claims.works.set(e.Key.String(), work, o.Snapshot)
	case ledger.PersistentVolume:
		claims.works.look(e.Claim.String(), o.Snapshot)
	}
}

// nil: none.
func (w *works) set(claim string, work *operation.Work, facts func() ledger.Snapshot) {
	w.mu.Lock()
	before := w.of[claim]
	if work != nil && work.IsOver(facts()) {
		work = nil
	}
	switch {
	case work != nil:
		if w.of == nil {
			w.of = map[string]*operation.Work{}
		}
		w.of[claim] = work
	case before != nil:
		delete(w.of, claim)
	}
	changed := w.changed
	w.mu.Unlock()
	if changed != nil && (before != nil || work != nil) {
		changed()
	}
}

func (w *works) look(claim string, facts func() ledger.Snapshot) {
	w.mu.Lock()
	work := w.of[claim]
	if work != nil && work.IsOver(facts()) {
		delete(w.of, claim)
	}
	changed := w.changed
	w.mu.Unlock()
	if changed != nil && work != nil {
		changed()
	}
}

// Works lists the drivers' operations that claims ask for: clones and expansions. Read only.
func (o *Observer) Works() []operation.Work {
	f := o.feeds[Claims]
	if f == nil {
		return nil
	}
	f.works.mu.Lock()
	defer f.works.mu.Unlock()
	list := make([]operation.Work, 0, len(f.works.of))
	for _, w := range f.works.of {
		list = append(list, *w)
	}
	return list
}

// SubscribeWorks has f called whenever Works may have changed; nil ends that. f must return at once.
func (o *Observer) SubscribeWorks(f func()) {
	if feed := o.feeds[Claims]; feed != nil {
		feed.works.mu.Lock()
		defer feed.works.mu.Unlock()
		feed.works.changed = f
	}
}
