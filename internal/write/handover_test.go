// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A write that is given up could land after the next leader has looked.
func TestStopGivesUpNoWriteUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		setUp func(*apitest.Server)
		step  func(*world) rules.Step
		write string
		done  func(*ledger.VolumeOnNode) bool
	}{
		"an attachment": {
			all(withUser, withNode(nil, nil)),
			func(*world) rules.Step { return creation() }, "volumeattachments",
			func(p *ledger.VolumeOnNode) bool { return p.Own() != nil },
		},
		"a node's status": {
			all(withUser, withNode(nil, nil), withAttachment(nil)),
			func(w *world) rules.Step { return w.step(rules.Report) }, "nodes/status",
			func(p *ledger.VolumeOnNode) bool { return p.Reported },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, test.setUp, nil)
			ctx, stop := context.WithCancel(t.Context())
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Resource == test.write {
					stop()
				}
				serve()
				return nil
			})
			must(t, w.Do(ctx, test.step(w)))
			if place := w.place(); !test.done(place) {
				t.Errorf("the place is %+v", place)
			}
			if left := w.OutlastUnanswered(); left > 0 {
				t.Errorf("a write that was answered may have an effect for another %s", left)
			}
		})
	}
}

func TestUnsettled(t *testing.T) {
	const timeout = 7 * time.Second
	now := time.Now()
	w := start(t, all(withUser, withNode(nil, nil)), func(c *write.Config) {
		c.Timeout, c.Now = timeout, func() time.Time { return now }
	})
	if left := w.OutlastUnanswered(); left > 0 {
		t.Errorf("%s are left before anything was sent", left)
	}
	ctx, stop := context.WithCancel(t.Context())
	w.server.Intercept(func(apitest.Request, func()) error {
		stop()
		return errors.New("the connection breaks")
	})
	if err := w.Do(ctx, creation()); err == nil {
		t.Error("a creation without an answer is taken for done")
	}
	if left := w.OutlastUnanswered(); left <= timeout || left > 2*timeout {
		t.Errorf("%s are left, want the timeout of %s and a margin", left, timeout)
	}
	now = now.Add(time.Hour)
	if left := w.OutlastUnanswered(); left > 0 {
		t.Errorf("%s are left when its time is over", left)
	}
}
