// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/bench/attach/result"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const attacherUser = "system:serviceaccount:disk-system:csi-attacher"

type half struct {
	verb     string // of the load's requests
	settled  string // verb and resource of a volume's final write
	call     diskapi.Call
	start    func(context.Context) error
	count    func() int
	deadline time.Duration
}

func scenario(s setup, c result.Case, deadline time.Duration, into *result.Run) sandbox.Scenario {
	latency := time.Duration(c.LatencySeconds * float64(time.Second))
	return sandbox.Scenario{
		Name:  "bench-attach",
		Doc:   "VolumeAttachments at once: " + c.Load(),
		Modes: []sandbox.Mode{s.mode},
		Shape: func(to *sandbox.Shape) {
			*to = sandbox.Shape{
				Mode: s.mode, Nodes: c.Nodes, Slots: c.Volumes, AttachLatency: latency, DetachLatency: latency, DiskParallel: c.Parallel,
				KubeletStatusInterval: 10 * time.Second, MoorageAttacher: s.moorage, SilentKubelets: true,
			}
		},
		Exclusive: true,
		Timeout:   3*deadline + 2*patience,
		Run: func(ctx context.Context, e *sandbox.Env) error {
			return measure(ctx, load{e, c.Volumes, s.moorage}, deadline, into)
		},
	}
}

func measure(ctx context.Context, l load, deadline time.Duration, into *result.Run) error {
	if err := l.provision(ctx); err != nil {
		return err
	}
	attach := half{
		verb: "create", settled: "patch volumeattachments/status", call: diskapi.ControllerPublish,
		start: l.attach, count: l.attached, deadline: deadline,
	}
	detach := half{
		verb: "delete", settled: "patch volumeattachments", call: diskapi.ControllerUnpublish,
		start: l.detach, count: l.detached, deadline: deadline,
	}
	for _, part := range []struct {
		half half
		into **result.Half
		last bool
	}{
		{attach, &into.Attach, false},
		{detach, &into.Detach, into.LatencySeconds > 0},
		{attach, &into.Again, true},
	} {
		done, err := l.half(ctx, part.half)
		if err != nil {
			return err
		}
		if *part.into = done; part.last || done.Done < l.volumes {
			break
		}
	}
	used, err := readUsage(l.Cluster)
	if err != nil {
		return err
	}
	into.PeakMiB = used.peakMiB
	return l.clean(ctx, into)
}

func (l load) clean(ctx context.Context, into *result.Run) error {
	if !l.stamped {
		if err := l.Cluster.UseAttacher(ctx, true); err != nil {
			return err
		}
	}
	if into.Detach == nil || into.Again != nil {
		if err := l.detach(ctx); err != nil {
			return err
		}
	}
	return l.EventuallyWithin(ctx, patience, "all volumes are detached", func() error {
		if n := l.detached(); n < l.volumes {
			return fmt.Errorf("%d of %d are", n, l.volumes)
		}
		return nil
	})
}

func (l load) half(ctx context.Context, h half) (*result.Half, error) {
	before, err := readUsage(l.Cluster)
	if err != nil {
		return nil, err
	}
	from := time.Now()
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	done, err := l.until(ctx, h.deadline, h.count)
	if err != nil {
		return nil, err
	}
	after, err := readUsage(l.Cluster)
	if err != nil {
		return nil, err
	}
	events, err := l.Audit.Read()
	if err != nil {
		return nil, err
	}
	out := &result.Half{Done: done, Writes: map[string]int{}, Calls: map[string]int{}, CPUSeconds: after.since(before)}
	times := h.requests(events, from, time.Now(), out)
	if times.began.IsZero() || times.settled.IsZero() {
		return nil, errors.New("the audit log has no trace of the load")
	}
	out.AskedSeconds = times.asked.Sub(times.began).Seconds()
	out.SettledSeconds = times.settled.Sub(times.began).Seconds()
	h.calls(l.View.Calls(diskapi.Filter{}), times.began, out)
	return out, nil
}

// By the API server's clock.
type moments struct {
	// The first request received, the last answered, and the last volume's final write answered.
	began, asked, settled time.Time
}

func (h half) requests(events []audit.Event, from, to time.Time, out *result.Half) (m moments) {
	for _, e := range events {
		if e.Received.Before(from) || e.Received.After(to) || e.Stage != "ResponseComplete" {
			continue
		}
		if e.Verb == h.verb && e.Object.Path() == "volumeattachments" {
			if m.began.IsZero() || e.Received.Before(m.began) {
				m.began = e.Received
			}
			m.asked = latest(m.asked, e.Finished)
		}
		if e.User.Username != attacherUser || !e.IsWrite() || e.Object.Path() == "leases" {
			continue
		}
		kind := e.Verb + " " + e.Object.Path()
		out.Writes[kind]++
		if kind == h.settled {
			m.settled = latest(m.settled, e.Finished)
		}
	}
	return m
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (h half) calls(entries []diskapi.Entry, began time.Time, out *result.Half) {
	first := map[string]bool{}
	for _, e := range entries {
		if e.Time.Before(began) {
			continue
		}
		if e.Phase == diskapi.Arrived && (strings.HasPrefix(string(e.Call), "Controller") || e.Call == diskapi.ListVolumes) {
			out.Calls[string(e.Call)]++
		}
		if e.Call != h.call {
			continue
		}
		since := e.Time.Sub(began).Seconds()
		if e.Phase == diskapi.Arrived && !first[e.Volume] {
			first[e.Volume] = true
			out.BegunSeconds = max(out.BegunSeconds, since)
		}
		if e.Done() {
			out.CalledSeconds = max(out.CalledSeconds, since)
		}
	}
}
