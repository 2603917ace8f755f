// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/apitest"
)

func unanswered(t *testing.T, timeout time.Duration) (c *cluster, stop func(), since time.Time) {
	t.Helper()
	c = newCluster(t, 4, "n1")
	c.disk("data")
	c.lost = make(chan struct{})
	broken := make(chan time.Time, 1)
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && r.Resource == "volumeattachments" {
			select {
			case broken <- time.Now():
			default:
			}
			return errors.New("the connection breaks")
		}
		serve()
		return nil
	})
	stop = c.leadAs(1, func(config *Config) { config.WriteTimeout = timeout })
	c.pod("db", "n1", "data", false)
	return c, stop, <-broken
}

// The lease is handed over when the write can have no effect any more.
func TestHandOverWaitsForTheLastWrite(t *testing.T) {
	const timeout = 300 * time.Millisecond
	_, stop, since := unanswered(t, timeout)
	stop()
	if waited := time.Since(since); waited < timeout {
		t.Errorf("it was handed over %s after a write that may have an effect for %s", waited, timeout)
	}
}

func TestLostLeaseIsNotWaitedFor(t *testing.T) {
	c, stop, _ := unanswered(t, time.Hour)
	close(c.lost)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it waits for the last write")
	}
}
