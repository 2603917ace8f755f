// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A zero time is an unseen stage. The package documentation has the sources.
type journey struct {
	created, bound, deleted                time.Time
	publishCalled, publishReturned, staged time.Time
	boundSeen, attached, reported          time.Time
	running, gone, detached                time.Time
}

type Metric struct {
	Key   string
	Title string
	// Headline: users wait for this step.
	Headline bool
	between  func(journey) (from, to time.Time)
}

// BindingSeen is the metric of the observer's lag behind the API server.
const BindingSeen = "bindingSeen"

func Metrics() []Metric {
	return []Metric{
		{"createdToBound", "created → bound", false, func(p journey) (time.Time, time.Time) { return p.created, p.bound }},
		{"boundToPublish", "bound → publish called", false, func(p journey) (time.Time, time.Time) { return p.bound, p.publishCalled }},
		{"publishedToAttached", "publish returned → attached", false, func(p journey) (time.Time, time.Time) { return p.publishReturned, p.attached }},
		{"attachedToReported", "attached → in volumesAttached", false, func(p journey) (time.Time, time.Time) { return p.attached, p.reported }},
		{"publishedToStage", "publish returned → stage called", false, func(p journey) (time.Time, time.Time) { return p.publishReturned, p.staged }},
		{"createdToRunning", "created → Running", true, func(p journey) (time.Time, time.Time) { return p.created, p.running }},
		{"deletedToDetached", "deleted → detached", true, func(p journey) (time.Time, time.Time) { return p.deleted, p.detached }},
		{BindingSeen, "(observer: binding answered → seen)", false, func(p journey) (time.Time, time.Time) { return p.bound, p.boundSeen }},
	}
}

type evidence struct {
	pods   []sandbox.PodTimes
	calls  []diskapi.Entry
	events []audit.Event
}

func (e evidence) journeys(namespace string) []journey {
	asked := requestTimes(e.events, namespace)
	called := callTimes(e.calls)
	var out []journey
	for _, pod := range e.pods {
		if pod.Namespace != namespace {
			continue
		}
		p := journey{
			boundSeen: pod.At[sandbox.Bound], attached: pod.At[sandbox.Attached], reported: pod.At[sandbox.Reported],
			running: pod.At[sandbox.Running], gone: pod.At[sandbox.Gone], detached: pod.At[sandbox.Detached],
		}
		r, c := asked[pod.Pod], called[pod.Volume]
		p.created, p.bound, p.deleted = r.created, r.bound, r.deleted
		p.publishCalled, p.publishReturned, p.staged = c.publishCalled, c.publishReturned, c.staged
		out = append(out, p)
	}
	return out
}

func first(at *time.Time, to time.Time) {
	if at.IsZero() {
		*at = to
	}
}

func requestTimes(events []audit.Event, namespace string) map[string]journey {
	out := map[string]journey{}
	for _, e := range events {
		if !e.IsWrite() || e.Response.Code >= 300 || e.Object.Namespace != namespace || e.Object.Resource != "pods" {
			continue
		}
		p := out[e.Object.Name]
		switch e.Verb + " " + e.Object.Path() {
		case "create pods":
			first(&p.created, e.Received)
		case "create pods/binding":
			first(&p.bound, e.Finished)
		case "delete pods":
			first(&p.deleted, e.Received)
		}
		out[e.Object.Name] = p
	}
	return out
}

// A volume has one pod in its life.
func callTimes(calls []diskapi.Entry) map[string]journey {
	out := map[string]journey{}
	for _, c := range calls {
		p := out[c.Volume]
		switch {
		case c.Call == diskapi.ControllerPublish && c.Phase == diskapi.Arrived:
			first(&p.publishCalled, c.Time)
		case c.Call == diskapi.ControllerPublish && c.Done():
			first(&p.publishReturned, c.Time)
		case c.Call == diskapi.NodeStage && c.Phase == diskapi.Arrived:
			first(&p.staged, c.Time)
		}
		out[c.Volume] = p
	}
	return out
}

// A step with an unseen end gives no sample.
func sample(pods []journey) map[string]Samples {
	out := map[string]Samples{}
	for _, m := range Metrics() {
		var s Samples
		for _, p := range pods {
			if from, to := m.between(p); !from.IsZero() && !to.IsZero() {
				s.add(to.Sub(from))
			}
		}
		out[m.Key] = s
	}
	return out
}

// In milliseconds; zero if unseen.
func spans(pods []journey) (running, detached float64) {
	var created, ran, deleted, free time.Time
	for _, p := range pods {
		created, deleted = earlier(created, p.created), earlier(deleted, p.deleted)
		ran, free = later(ran, p.running), later(free, p.detached)
	}
	return millis(created, ran), millis(deleted, free)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func millis(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return float64(to.Sub(from).Microseconds()) / 1000
}

// Kubelets are counted as one user.
const nodeUser = "system:node:"

func userName(user string) string {
	if strings.HasPrefix(user, nodeUser) {
		return nodeUser + "*"
	}
	return user
}
