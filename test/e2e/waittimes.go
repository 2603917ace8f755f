// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	waitPlays = 3
	// After six minutes kube-controller-manager detaches by force. A longer wait counts as never.
	neverAfter    = 7 * time.Minute
	shutdownLasts = 20 * time.Second
	loadPods      = 10
)

// moorage-node does not run. Kubelets report every 10 s, and nodes are not Ready after 50 s, as by default.
func WaitTimes() sandbox.Scenario {
	return sandbox.Scenario{
		Name:    "wait-times",
		Doc:     "How long pods are away when machines reboot, kubelets restart, and Nodes and machines are replaced.",
		Modes:   []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:   true,
		Timeout: 90 * time.Minute,
		Shape:   func(shape *sandbox.Shape) { shape.Slots, shape.NamedMachines = 4*loadPods, true },
		Run: tell(func(s *story) {
			if s.Mode != sandbox.Standalone {
				s.must(s.Compare())
			}
			var whole []time.Duration
			s.plays("rolling reboot, the longest away", func(n int) time.Duration {
				longest, all := s.rollingReboot(n)
				whole = append(whole, all)
				return longest
			})
			s.countTimes("rolling reboot, in all", whole)
			s.plays("reboot in place", s.rebootInPlace)
			s.plays("graceful shutdown", s.gracefulShutdown)
			s.plays("kubelet restart under load", s.restartUnderLoad)
			s.plays("Node made again", s.nodeMadeAgain)
			s.plays("machine replaced", s.machineReplaced)
			s.allLeft()
		}),
	}
}

func (s *story) plays(name string, play func(n int) time.Duration) {
	var took []time.Duration
	for n := range waitPlays {
		took = append(took, play(n+1))
		s.say("%s: %.1f s", name, took[n].Seconds())
		if took[n] >= neverAfter {
			s.Count("never within 7 minutes: " + name)
			break
		}
	}
	s.countTimes(name, took)
}

func (s *story) countTimes(name string, took []time.Duration) {
	slices.Sort(took)
	s.SetCount("ms, "+name+": median", int(took[len(took)/2].Milliseconds()))
	s.SetCount("ms, "+name+": worst", int(took[len(took)-1].Milliseconds()))
}

type waited struct {
	time.Duration
	err error
}

func (s *story) awaits(began time.Time, what string, check func() error) waited {
	err := s.EventuallyWithin(s.ctx, neverAfter, what, check)
	return waited{time.Since(began), err}
}

// An endless wait fails the story, except in upstream's mode.
func (s *story) over(w waited) time.Duration {
	if w.err != nil && s.Mode == sandbox.Upstream && s.ctx.Err() == nil {
		s.say("never: %v", w.err)
		return max(w.Duration, neverAfter)
	}
	s.must(w.err)
	return w.Duration
}

func (s *story) another(name string, before types.UID) error {
	switch pod := s.View.Pod(s.Namespace, name); {
	case pod == nil || pod.UID == before:
		return fmt.Errorf("there is no other %s", name)
	case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
		return fmt.Errorf("%s is %s on node %q", name, pod.Status.Phase, pod.Spec.NodeName)
	}
	return nil
}

func (s *story) only(node string) {
	for i := range s.Cluster.Shape().Nodes {
		if other := sandbox.NodeName(i + 1); node == "" || other == node {
			s.uncordon(other)
		} else {
			s.cordon(other)
		}
	}
}

func (s *story) setAt(node, app string) *corev1.Pod {
	s.only(node)
	s.statefulSet(app)
	return s.runs(app + "-0")
}

func (s *story) ends(apps ...string) {
	for _, app := range apps {
		s.must(s.Client.AppsV1().StatefulSets(s.Namespace).Delete(s.ctx, app, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	}
	for _, app := range apps {
		s.gone(app + "-0")
	}
}

func (s *story) allLeft() {
	if s.Mode != sandbox.Standalone {
		return
	}
	s.must(s.EventuallyWithin(s.ctx, neverAfter, "no volume is attached", func() error {
		if n := len(s.View.Attachments()); n > 0 {
			return fmt.Errorf("there are %d VolumeAttachments", n)
		}
		return nil
	}))
}

func (s *story) boots(node string) {
	boot := s.bootOf(node)
	s.must(s.Cluster.PowerOff(s.ctx, node))
	s.must(s.Cluster.PowerOn(s.ctx, node))
	s.booted(node, boot)
}

func (s *story) booted(node, boot string) {
	s.until(node+" is Ready with another boot", func() error {
		if n := s.View.Node(node); n == nil || n.Status.NodeInfo.BootID == boot || !sandbox.IsReady(n) {
			return errors.New("not yet")
		}
		return nil
	})
}

func (s *story) rollingReboot(n int) (longest, whole time.Duration) {
	var apps []string
	for i := range s.Cluster.Shape().Nodes {
		apps = append(apps, fmt.Sprintf("roll-%d-%d", n, i+1))
		s.setAt(sandbox.NodeName(i+1), apps[i])
	}
	s.only("")
	began := time.Now()
	for i := range apps {
		node, left := sandbox.NodeName(i+1), map[string]types.UID{}
		for _, app := range apps {
			if pod := s.runs(app + "-0"); pod.Spec.NodeName == node {
				left[pod.Name] = pod.UID
			}
		}
		drained, back := time.Now(), make(chan waited, 1)
		go func() {
			back <- s.awaits(drained, "the pods of "+node+" run again", func() error {
				var errs []error
				for name, uid := range left {
					errs = append(errs, s.another(name, uid))
				}
				return errors.Join(errs...)
			})
		}()
		s.must(s.evictAll(node, neverAfter))
		s.boots(node)
		s.uncordon(node)
		longest = max(longest, s.over(<-back))
	}
	whole = time.Since(began)
	s.ends(apps...)
	return longest, whole
}

func (s *story) evictAll(node string, patience time.Duration) error {
	helper := &drain.Helper{
		Ctx: s.ctx, Client: s.Client, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, Timeout: patience,
		EvictErrorRetryDelay: 5 * time.Second, Out: io.Discard, ErrOut: io.Discard,
	}
	s.cordon(node)
	return drain.RunNodeDrain(helper, node)
}

func (s *story) rebootInPlace(n int) time.Duration {
	node, app := sandbox.NodeName(n), fmt.Sprintf("reboot-%d", n)
	pod := s.setAt(node, app)
	s.only("")
	handle := s.handle("data-" + pod.Name)
	writes := func() int { return len(s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node)) }
	s.until("the pod writes", func() error {
		if writes() == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	before, began := writes(), time.Now()
	s.boots(node)
	took := s.over(s.awaits(began, "the pod writes again", func() error {
		if now := s.View.Pod(s.Namespace, pod.Name); now == nil || now.UID != pod.UID {
			return sandbox.Never("the pod is another one")
		}
		if writes() == before {
			return errors.New("it does not")
		}
		return s.Running(pod.Name)
	}))
	s.ends(app)
	return took
}

// The kubelet ends its pod, says that the node is not Ready, and ends before it reports the volume as
// unused.
func (s *story) gracefulShutdown(n int) time.Duration {
	node, app := sandbox.NodeName(n), fmt.Sprintf("shutdown-%d", n)
	pod := s.setAt(node, app)
	s.only("")
	s.cordon(node)
	boot, began := s.bootOf(node), time.Now()
	s.remove(pod.Name)
	s.boundAgain(pod.Name, pod)
	s.must(s.Cluster.Terminate(s.ctx, node, 10*time.Second))
	off := time.After(shutdownLasts)
	s.must(s.Cluster.PowerOff(s.ctx, node))
	notReady := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"node is shutting down"}]}}`)
	_, err := s.Client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, notReady, metav1.PatchOptions{}, "status")
	s.must(err)
	back := make(chan waited, 1)
	go func() {
		back <- s.awaits(began, "the pod runs elsewhere", func() error { return s.another(pod.Name, pod.UID) })
	}()
	select {
	case <-off: // for so long the machine is off; nothing is awaited
	case <-s.ctx.Done():
	}
	s.must(s.Cluster.PowerOn(s.ctx, node))
	s.booted(node, boot)
	s.uncordon(node)
	took := s.over(<-back)
	s.ends(app)
	return took
}

func (s *story) restartUnderLoad(n int) time.Duration {
	node := sandbox.NodeName(n)
	s.only(node)
	var apps []string
	for i := range loadPods {
		apps = append(apps, fmt.Sprintf("goes-%d-%d", n, i))
		s.statefulSet(apps[i])
	}
	before := map[string]types.UID{}
	for _, app := range apps {
		pod := s.runs(app + "-0")
		before[pod.Name] = pod.UID
	}
	began := time.Now()
	s.must(s.Cluster.Kill(s.ctx, node))
	for i := range loadPods {
		s.remove(apps[i] + "-0")
		apps = append(apps, fmt.Sprintf("comes-%d-%d", n, i))
		s.statefulSet(apps[loadPods+i])
	}
	s.must(s.Cluster.StartAgain(node))
	took := s.over(s.awaits(began, "all pods run", func() error {
		var errs []error
		for _, app := range apps {
			errs = append(errs, s.another(app+"-0", before[app+"-0"]))
		}
		return errors.Join(errs...)
	}))
	s.only("")
	s.ends(apps...)
	return took
}

func (s *story) nodeMadeAgain(n int) time.Duration {
	node, app := sandbox.NodeName(n), fmt.Sprintf("again-%d", n)
	pod, began := s.setAt(node, app), time.Now()
	s.must(s.Cluster.Kill(s.ctx, node))
	s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, node, metav1.DeleteOptions{}))
	s.must(s.forceDelete(s.ctx, pod.Name))
	s.nodeGone(node)
	s.must(s.Cluster.StartAgain(node))
	took := s.over(s.awaits(began, "the pod runs at the Node again", func() error { return s.another(pod.Name, pod.UID) }))
	s.nodeIs(node, true)
	s.boots(node) // without moorage-node, only another boot shows that nothing is left mounted
	s.only("")
	s.ends(app)
	return took
}

// In Standalone mode a person has to detach the volume: see detachesByHand.
func (s *story) machineReplaced(n int) time.Duration {
	node, app := sandbox.NodeName(n), fmt.Sprintf("replaced-%d", n)
	pod := s.setAt(node, app)
	s.only("")
	began := time.Now()
	s.must(s.Cluster.PowerOff(s.ctx, node))
	s.must(s.Cluster.Cut(node))
	s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, node, metav1.DeleteOptions{}))
	s.nodeGone(node)
	s.must(s.forceDelete(s.ctx, pod.Name))
	s.boundAgain(pod.Name, pod)
	s.must(s.Cluster.Replace(node))
	if s.Mode == sandbox.Standalone {
		s.until("the pod is told to have the volume detached by hand", func() error {
			return told(s.View.Pod(s.Namespace, pod.Name), "NodeReplaced", node, diskapi.NodeID(node))
		})
		s.detachesByHand("data-"+pod.Name, node)
	}
	took := s.over(s.awaits(began, "the pod runs elsewhere", func() error { return s.another(pod.Name, pod.UID) }))
	s.must(s.Cluster.Withdraw(s.ctx, node))
	s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, node, metav1.DeleteOptions{}))
	s.nodeGone(node)
	s.must(s.Cluster.Restore(node))
	s.must(s.Cluster.PowerOn(s.ctx, node))
	s.nodeIs(node, true)
	s.ends(app)
	return took
}

func (s *story) detachesByHand(claim, node string) {
	answer, err := s.Disk.Do(s.ctx, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: s.handle(claim), Node: diskapi.NodeID(node)})
	s.must(err)
	s.expect(answer.Code == "OK", "the storage detaches the volume", "%s: %s", answer.Code, answer.Message)
	s.must(s.Client.StorageV1().VolumeAttachments().Delete(s.ctx, s.attachment(claim, node).Name, metav1.DeleteOptions{}))
}
