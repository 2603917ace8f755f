// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"slices"
	"time"
)

type fakeClock struct {
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at   time.Time
	call func()
}

func (c *fakeClock) Now() time.Time { return c.now }

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() bool {
	t := &fakeTimer{at: c.now.Add(d), call: f}
	i, _ := slices.BinarySearchFunc(c.timers, t, func(a, b *fakeTimer) int {
		if a.at.After(b.at) {
			return 1
		}
		return -1
	})
	c.timers = slices.Insert(c.timers, i, t)
	return func() bool {
		n := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(other *fakeTimer) bool { return other == t })
		return len(c.timers) < n
	}
}

func (c *fakeClock) step(limit time.Time) bool {
	if len(c.timers) == 0 || c.timers[0].at.After(limit) {
		c.now = limit
		return false
	}
	t := c.timers[0]
	c.timers = c.timers[1:]
	if t.at.After(c.now) {
		c.now = t.at
	}
	t.call()
	return true
}
