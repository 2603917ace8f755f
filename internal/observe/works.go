// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"

	"github.com/moorage-dev/moorage/internal/operation"
)

// works are the claims of which an operation of a driver is asked for, and not at its end. They
// are few. All methods are safe for parallel use.
type works struct {
	mu      sync.Mutex
	of      map[string]*operation.Work
	changed func()
}

// set says what is asked for of a claim now; nil: nothing.
func (w *works) set(claim string, work *operation.Work) {
	w.mu.Lock()
	before := w.of[claim]
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

// Works lists the operations that claims ask drivers for: clones and expansions. Read only.
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

// SubscribeWorks has f called whenever Works may have changed; nil ends that. It is called as
// that of Subscribe is.
func (o *Observer) SubscribeWorks(f func()) {
	if feed := o.feeds[Claims]; feed != nil {
		feed.works.mu.Lock()
		defer feed.works.mu.Unlock()
		feed.works.changed = f
	}
}
