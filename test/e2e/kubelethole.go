// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func withNodes(shape *sandbox.Shape) {
	threeByFour(shape)
	shape.MoorageNode = shape.Mode == sandbox.Standalone
}

// kubeletHole guards a volume that a kubelet has forgotten (docs/internals/kubelet-staging-hole.md): the
// kubelet is killed after the last pod's folder is gone and before the unstage.
func kubeletHole() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "kubelet-hole",
		Doc: "A kubelet is killed between NodeUnpublish and NodeUnstage, and has forgotten the volume when it is back. With moorage-node the volume stays, told as StagedAtNode, until nothing of it is staged; " +
			"everybody else is served. Upstream detaches it and attaches it to another node: the judge sees `unpublish-while-staged` and `staged-at-two`.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: withNodes,
		Takes: 40 * time.Second,
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			s.claim("data")
			s.podAt(node, "first", "data")
			s.runs("first")
			handle := s.handle("data")
			s.forget(node, "first", handle)
			s.say("the kubelet of %s was killed before it had unstaged the volume, and is back", node)
			s.podAt(other, "successor", "data")
			if !s.moorage() {
				s.runs("successor")
				s.goesOn(handle, node, other)
				s.must(s.ExpectViolation(s.ctx, diskapi.UnpublishWhileStaged))
				s.must(s.ExpectViolation(s.ctx, diskapi.StagedAtTwo))
				s.say("the successor runs at %s, and the volume is staged at both", other)
				s.must(s.Cluster.Unstage(s.ctx, node, handle, sandbox.StagingPath(handle)))
				return
			}
			s.toldStaged("successor", node)
			s.bystander(other)
			s.never(diskapi.ControllerUnpublish, handle, node)
			s.say("the successor is told that the volume is staged at %s, and somebody else is served. moorage-node is killed and replaced", node)
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageNode(node)))
			s.must(s.Cluster.StartAgain(sandbox.MoorageNode(node)))
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			s.askedAgain(node)
			s.toldStaged("successor", node)
			s.never(diskapi.ControllerUnpublish, handle, node)
			path := s.forgotten(node, handle)
			s.say("the controller was, too, and has asked again. Somebody unmounts %s", path)
			s.must(s.Cluster.Unstage(s.ctx, node, handle, path))
			s.runs("successor")
			s.goesOn(handle, node, other)
		}),
	}
}

// The silence of moorage-node counts as in use.
func kubeletHoleStopped() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "kubelet-hole-stopped",
		Doc: "moorage-node gets SIGSTOP, and then its kubelet is killed between NodeUnpublish and NodeUnstage. Its report is required, so that nobody goes by its old word: the volume stays, told as InUseUnknown when it has owed an answer for half a minute. " +
			"It goes on and finds the volume: told as StagedAtNode, until nothing of it is staged.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) { withNodes(shape); shape.RequireReport = true },
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			s.claim("data")
			s.podAt(node, "first", "data")
			s.runs("first")
			handle := s.handle("data")
			s.must(s.Cluster.Pause(sandbox.MoorageNode(node)))
			s.forget(node, "first", handle)
			s.say("moorage-node of %s is stopped, and the kubelet was killed before it had unstaged the volume", node)
			s.podAt(other, "successor", "data")
			s.until("the successor is told that moorage-node does not answer", func() error {
				return told(s.View.Pod(s.Namespace, "successor"), "InUseUnknown", "moorage-node has not said there")
			})
			s.sayTold("successor")
			s.bystander(other)
			s.never(diskapi.ControllerUnpublish, handle, node)
			s.must(s.Cluster.Resume(sandbox.MoorageNode(node)))
			s.toldStaged("successor", node)
			s.never(diskapi.ControllerUnpublish, handle, node)
			s.say("it goes on, and has found the volume. Somebody unmounts it")
			s.must(s.Cluster.Unstage(s.ctx, node, handle, s.forgotten(node, handle)))
			s.runs("successor")
		}),
	}
}

func (s *story) forget(node, pod, handle string) {
	stop := s.stopAt(node, diskapi.NodeUnstage, diskapi.Hang)
	s.remove(pod)
	s.gone(pod)
	stop.reached(handle)
	s.must(s.Cluster.Kill(s.ctx, node))
	stop.end()
	s.must(s.Cluster.StartAgain(node))
}

type stop struct {
	*story
	fault diskapi.Fault
}

// stopAt holds a call before its effect with Hang; with HangDone the work is done and the kubelet has not
// heard.
func (s *story) stopAt(node string, call diskapi.Call, action diskapi.Action) *stop {
	fault, err := s.Disk.SetFault(s.ctx, diskapi.Fault{Calls: []diskapi.Call{call}, Node: diskapi.NodeID(node), Action: action, Times: 1})
	s.must(err)
	return &stop{story: s, fault: fault}
}

func (t *stop) filter() diskapi.Filter {
	if t.fault.Action == diskapi.HangDone {
		return diskapi.Filter{Call: diskapi.Held, FaultID: t.fault.ID}
	}
	return diskapi.Filter{Call: t.fault.Calls[0], Phase: diskapi.Arrived, FaultID: t.fault.ID}
}

func (t *stop) reached(handle string) {
	t.until(fmt.Sprintf("%s is held", t.fault.Calls[0]), func() error {
		held := t.View.Calls(t.filter())
		switch {
		case len(held) == 0:
			return errors.New("it has not come")
		case held[0].Volume != handle:
			return sandbox.Never("it is volume %s that is held", held[0].Volume)
		}
		return nil
	})
}

func (t *stop) end() { t.must(t.Disk.ClearFault(t.ctx, t.fault.ID)) }

func (s *story) word(node string) (*v1alpha1.NodeMountReport, error) {
	o := s.View.NodeMountReports(node)
	if o == nil {
		return nil, fmt.Errorf("%s says nothing", node)
	}
	var word v1alpha1.NodeMountReport
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &word); err != nil {
		return nil, fmt.Errorf("NodeMountReport %s: %w", node, err)
	}
	return &word, nil
}

func (s *story) spoken(node, handle string) (*v1alpha1.ReportedVolume, error) {
	word, err := s.word(node)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(word.Status.Volumes, func(v v1alpha1.ReportedVolume) bool { return v.Handle == handle })
	if i < 0 {
		return nil, fmt.Errorf("%s does not name the volume", node)
	}
	return &word.Status.Volumes[i], nil
}

func (s *story) forgotten(node, handle string) (path string) {
	s.until(node+" says that the volume is forgotten", func() error {
		v, err := s.spoken(node, handle)
		switch {
		case err != nil:
			return err
		case !v.Forgotten || v.Staged != v1alpha1.NodeYes || v.Mounted != v1alpha1.NodeYes:
			return fmt.Errorf("it says %+v", *v)
		}
		path = v.Path
		return nil
	})
	return path
}

func (s *story) askedAgain(node string) {
	before, err := s.word(node)
	s.must(err)
	s.until(node+" is asked once more, and looks", func() error {
		word, err := s.word(node)
		switch {
		case err != nil:
			return err
		case word.Status.Looked <= before.Status.Looked:
			return fmt.Errorf("it was asked for look %d and has done %d", word.Spec.Look, word.Status.Looked)
		}
		return nil
	})
}

func (s *story) toldStaged(pod, node string) {
	s.until("pod "+pod+" is told that its volume is staged at "+node, func() error {
		return told(s.View.Pod(s.Namespace, pod), "StagedAtNode", "staged or mounted at "+node)
	})
	s.sayTold(pod)
}
