// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const manyWorkloads = 30

// Upstream's part runs the code of `kubectl drain`, which evicts all pods at once. The attacher works on
// ten volumes at a time, external-attacher's default.
func DrainMany() sandbox.Scenario {
	return sandbox.Scenario{
		Name:    "drain-many",
		Doc:     "How long the workloads of a node are away while it is drained: by kubectl moorage drain, and beside it by kubectl drain.",
		Modes:   []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Extra:   true,
		Timeout: 15 * time.Minute,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.Slots = 64
			shape.AttachLatency, shape.DetachLatency = 5*time.Second, 5*time.Second
		},
		Run: tell(func(s *story) {
			const node = "worker-1"
			s.cordon("worker-2")
			s.cordon("worker-3")
			a := &absences{began: map[string]time.Time{}, over: map[string]time.Duration{}, first: map[string]types.UID{}}
			for i := range manyWorkloads {
				s.statefulSet(fmt.Sprintf("w%02d", i))
			}
			for i := range manyWorkloads {
				pod := s.runs(fmt.Sprintf("w%02d-0", i))
				a.first[pod.Name] = pod.UID
			}
			s.uncordon("worker-2")
			s.uncordon("worker-3")
			began, ended := time.Now(), make(chan error, 1)
			go func() { ended <- s.drain(node) }()
			s.must(s.EventuallyWithin(s.ctx, 10*time.Minute, "every workload runs elsewhere", func() error { return a.look(s, node) }))
			s.SetCount("ms until all ran elsewhere", int(time.Since(began).Milliseconds()))
			s.must(<-ended)
			s.SetCount("ms until the drain had ended", int(time.Since(began).Milliseconds()))
			s.SetCount("workloads", len(a.over))
			s.SetCount("ms away, on average", int(a.average().Milliseconds()))
			s.SetCount("ms away, the longest", int(slices.Max(slices.Collect(maps.Values(a.over))).Milliseconds()))
			s.say("%v", s.Counts())
			s.uncordon(node)
		}),
	}
}

type absences struct {
	first map[string]types.UID
	began map[string]time.Time
	over  map[string]time.Duration
}

func (a *absences) look(s *story, node string) error {
	for name, uid := range a.first {
		pod := s.View.Pod(s.Namespace, name)
		left := pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil
		if _, known := a.began[name]; left && !known {
			a.began[name] = time.Now()
		}
		if _, over := a.over[name]; !over && pod != nil && pod.UID != uid && pod.Spec.NodeName != node && s.Running(name) == nil {
			a.over[name] = time.Since(a.began[name])
		}
	}
	if len(a.over) < len(a.first) {
		return fmt.Errorf("%d of %d", len(a.over), len(a.first))
	}
	return nil
}

func (a *absences) average() time.Duration {
	var sum time.Duration
	for _, d := range a.over {
		sum += d
	}
	return sum / time.Duration(len(a.over))
}

func (s *story) drain(node string) error {
	if s.moorage() {
		if a := s.moorageCommand("drain", node, "--ignore-daemonsets", "--timeout", "10m"); a.code != 0 {
			return fmt.Errorf("exit code %d: %s%s", a.code, a.out, a.err)
		}
		return nil
	}
	return s.evictAll(node, 10*time.Minute)
}
