// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

func (w *world) used() int32 { return w.observer.Snapshot().Node("n1").Driver(data.Driver).Used }

func (w *world) leaves() {
	w.t.Helper()
	w.server.Remove("pods", "shop", "db")
	w.until("the pod is gone", func(s ledger.Snapshot) bool { return s.Pod("p1") == nil })
}

func TestSlotOfCreationInFlight(t *testing.T) {
	for name, serves := range map[string]bool{"it is made": true, "it is refused": false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withUser, withNode(nil, nil)), nil)
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb != "create" {
					serve()
					return nil
				}
				w.leaves()
				if w.used() != 1 {
					t.Error("the slot is free while the creation is under way")
				}
				if !serves {
					return apierrors.NewTooManyRequestsError("later")
				}
				serve()
				return nil
			})
			if err := w.Do(t.Context(), creation()); (err == nil) != serves {
				t.Errorf("error %v", err)
			}
			if got := w.used() == 1; got != serves {
				t.Errorf("the slot is used: %v, want %v", got, serves)
			}
		})
	}
}

// A creation with an unknown outcome keeps its slot until a look finds out.
func TestFindAttachment(t *testing.T) {
	for name, made := range map[string]bool{"it was made": true, "it was not made": false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withUser, withNode(nil, nil)), func(c *write.Config) { c.Timeout = 50 * time.Millisecond })
			var away atomic.Bool
			away.Store(true)
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				switch {
				case r.Verb == "create":
					w.leaves()
					if made {
						serve()
					}
					return errors.New("the connection breaks")
				case r.Verb == "get" && away.Load():
					return errors.New("the connection breaks")
				}
				serve()
				return nil
			})
			if err := w.Do(t.Context(), creation()); err == nil || w.used() != 1 {
				t.Fatalf("error %v, %d slots used", err, w.used())
			}
			find := rules.Step{Kind: rules.FindAttachment, Volume: data, Node: "n1", Attachment: creation().Attachment}
			if err := w.Do(t.Context(), find); err == nil || w.used() != 1 {
				t.Fatalf("error %v, %d slots used", err, w.used())
			}
			away.Store(false)
			must(t, w.Do(t.Context(), find))
			if got := w.used() == 1; got != made {
				t.Errorf("the slot is used: %v, want %v", got, made)
			}
			if place := w.place(); made && (place.Sent || place.Own() == nil) {
				t.Errorf("the place is %+v", place)
			}
		})
	}
}

// The slot of an unclaimed creation may be another's: it is not sent.
func TestCreateAttachmentForNobody(t *testing.T) {
	w := start(t, all(withUser, withNode(nil, nil)), nil)
	w.leaves()
	isStale(t, w.Do(t.Context(), creation()))
	w.writes()
}
