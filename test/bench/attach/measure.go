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

// attacherUser is who the attacher is to the API server.
const attacherUser = "system:serviceaccount:disk-system:csi-attacher"

// half is the attach or the detach of a load.
type half struct {
	verb     string // of the load's requests
	settled  string // verb and resource of the write that ends one volume's
	call     diskapi.Call
	start    func(context.Context) error
	count    func() int
	deadline time.Duration
}

// scenario is one run as the sandbox plays it, with its clean-up and its judge.
func scenario(s setup, volumes int, latency time.Duration, deadline time.Duration, into *result.Run) sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "bench-attach",
		Doc:   fmt.Sprintf("%d VolumeAttachments at once over %d nodes, attach %s", volumes, nodes, latency),
		Modes: []sandbox.Mode{s.mode},
		Shape: func(to *sandbox.Shape) {
			*to = sandbox.Shape{
				Mode: s.mode, Nodes: nodes, Slots: volumes, AttachLatency: latency, DetachLatency: latency,
				KubeletStatusInterval: 10 * time.Second, MoorageAttacher: s.moorage,
			}
		},
		Exclusive: true,
		Timeout:   4 * patience,
		Run: func(ctx context.Context, e *sandbox.Env) error {
			return measure(ctx, load{e, volumes, s.moorage}, deadline, into)
		},
	}
}

// measure makes the load, attach and detach, and fills in what was measured.
func measure(ctx context.Context, l load, deadline time.Duration, into *result.Run) error {
	if err := l.provision(ctx); err != nil {
		return err
	}
	var err error
	into.Attach, err = l.half(ctx, half{
		verb: "create", settled: "patch volumeattachments/status", call: diskapi.ControllerPublish,
		start: l.attach, count: l.attached, deadline: deadline,
	})
	if err != nil {
		return err
	}
	if into.Attach.Done == l.volumes {
		into.Detach, err = l.half(ctx, half{
			verb: "delete", settled: "patch volumeattachments", call: diskapi.ControllerUnpublish,
			start: l.detach, count: l.detached, deadline: deadline,
		})
		if err != nil {
			return err
		}
	}
	used, err := readUsage(l.Cluster)
	if err != nil {
		return err
	}
	into.PeakMiB = used.peakMiB
	return l.clean(ctx, into)
}

// clean ends the run quickly, whoever was measured.
func (l load) clean(ctx context.Context, into *result.Run) error {
	if !l.stamped {
		if err := l.Cluster.UseAttacher(ctx, true); err != nil {
			return err
		}
	}
	if into.Detach == nil {
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
	began, ended := h.requests(events, from, time.Now(), out)
	if began.IsZero() || ended.IsZero() {
		return nil, errors.New("the audit log has no trace of the load")
	}
	out.SettledSeconds = ended.Sub(began).Seconds()
	for _, e := range l.View.Calls(diskapi.Filter{}) {
		if e.Time.Before(began) {
			continue
		}
		if e.Phase == diskapi.Arrived && (strings.HasPrefix(string(e.Call), "Controller") || e.Call == diskapi.ListVolumes) {
			out.Calls[string(e.Call)]++
		}
		if e.Call == h.call && e.Done() {
			out.CalledSeconds = max(out.CalledSeconds, e.Time.Sub(began).Seconds())
		}
	}
	return out, nil
}

// requests counts the attacher's writes in a window, and says when the load
// began and when the last write that ends a volume's half was answered.
func (h half) requests(events []audit.Event, from, to time.Time, out *result.Half) (began, ended time.Time) {
	for _, e := range events {
		if e.Received.Before(from) || e.Received.After(to) || e.Stage != "ResponseComplete" {
			continue
		}
		if e.Verb == h.verb && e.Object.Path() == "volumeattachments" && (began.IsZero() || e.Received.Before(began)) {
			began = e.Received
		}
		if e.User.Username != attacherUser || !e.IsWrite() || e.Object.Path() == "leases" {
			continue
		}
		kind := e.Verb + " " + e.Object.Path()
		out.Writes[kind]++
		if kind == h.settled && e.Finished.After(ended) {
			ended = e.Finished
		}
	}
	return began, ended
}
