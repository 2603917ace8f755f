// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// late is a cache that learns one fact more each time that it has been looked at. Whoever watches it is told of each
// change before Apply returns, as by package observe.
type late struct {
	*writer
	facts []ledger.Event
	heard func()
}

func (l *late) Snapshot() ledger.Snapshot {
	s := l.writer.Snapshot()
	if len(l.facts) > 0 {
		next := l.facts[0]
		l.facts = l.facts[1:]
		l.Apply(next)
	}
	return s
}

func (l *late) Apply(e ledger.Event) {
	l.writer.Apply(e)
	l.heard()
}

// binding returns a controller that decides by what l knows, hears of a pod's changes, and waits for a minute.
func binding(t *testing.T, l *late, pod string) *Controller {
	t.Helper()
	c, err := New(Config{Cache: l, Write: l, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	l.heard = func() { c.Heard(pod) }
	c.tookOver.Store(true)
	c.binder.patience = time.Minute
	return c
}

// A request that waits for a pod hears of the end of the term, and does not wait for a pod that is bound already.
func TestBindDoesNotWaitInVain(t *testing.T) {
	bound := pod("p", "n2", "late")
	for name, test := range map[string]struct {
		happens func(c *Controller, l *late)
		says    error
	}{
		"the term ends":         {func(c *Controller, _ *late) { c.binder.end() }, errNotLeading},
		"the pod is seen bound": {func(_ *Controller, l *late) { l.Apply(bound) }, bind.ErrUseTicket},
	} {
		t.Run(name, func(t *testing.T) {
			l := &late{writer: &writer{ledger: facts()}}
			c := binding(t, l, bound.UID)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				answer := make(chan error, 1)
				go func() {
					answer <- c.Bind(t.Context(), bind.Request{Pod: types.UID(bound.UID), Version: "1", Node: "n1"})
				}()
				synctest.Wait()
				test.happens(c, l)
				if err := <-answer; !errors.Is(err, test.says) || errors.Is(err, errBehind) || time.Since(began) != 0 {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// Who asks to have a pod bound has seen it, and its claims: a controller that has not looks
// again before it sends the pod to its tickets.
func TestBindWaitsForWhatTheAskerHasSeen(t *testing.T) {
	pod := pod("p", "", "late")
	l := &late{writer: &writer{ledger: facts()}, facts: []ledger.Event{pod,
		ledger.PersistentVolume{Name: "late", Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: "late"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "late"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "late"}, UID: "late", Version: "1", PersistentVolume: "late", Bound: true, Access: ledger.AccessNode}}}
	c := binding(t, l, pod.UID)
	if err := c.Bind(t.Context(), bind.Request{Pod: types.UID(pod.UID), Version: pod.Version, Node: "n1"}); err != nil {
		t.Errorf("it is not bound: %v", err)
	}
}
