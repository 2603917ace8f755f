// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	killLanes = 4
	// A volume is at the tried instant, the others anywhere.
	killedVolumes = 3
	// After the answer the kubelet writes or removes its records; it reconciles every 100 ms.
	afterAnswer  = 200 * time.Millisecond
	killPatience = 3 * time.Minute
)

// Only the judge asserts, and every pod has to run.
func KubeletKills(kills int) sandbox.Scenario {
	return sandbox.Scenario{
		Name: "kubelet-kills",
		Doc: fmt.Sprintf("Kubelets are killed %d times: before, in and after each call to the node's driver by which volumes are mounted or unmounted, and between the writes of their records. Then the next pods of the volumes are placed at another node. "+
			"With moorage-node the judge sees no violation. Without it, as in Cooperative mode by default, and upstream, volumes that are detached while they are staged are counted.", kills),
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Timeout:   time.Duration(kills/killLanes+1)*2*time.Minute + 5*time.Minute,
		Extra:     true,
		Exclusive: true,
		Shape: func(shape *sandbox.Shape) {
			withNodes(shape)
			shape.Nodes, shape.Slots = 2*killLanes, 25
		},
		Run: tell(func(s *story) {
			switch {
			case !s.moorage(), s.Mode == sandbox.Cooperative: // kube-controller-manager attaches and detaches
				s.must(s.Compare())
			case !s.Cluster.Shape().MoorageNode:
				s.must(s.ExpectForgotten())
			}
			newKubeletKills(s, kills).run()
		}),
	}
}

type kubeletKills struct {
	*story
	kills int
	begun uint64 // of the disk service's log

	mu    sync.Mutex
	next  int                    // kill
	of    map[string]killInstant // by volume: its kill of a kubelet
	stuck []error
}

func newKubeletKills(s *story, kills int) *kubeletKills {
	k := &kubeletKills{story: s, kills: kills, of: map[string]killInstant{}}
	for _, instant := range killInstants() {
		k.StepDone(instant.String(), 0)
	}
	return k
}

func (k *kubeletKills) run() {
	var err error
	k.begun, err = k.Disk.Mark(k.ctx)
	k.must(err)
	var lanes []func()
	for lane := range killLanes {
		lanes = append(lanes, func() { k.lane(sandbox.NodeName(2*lane+1), sandbox.NodeName(2*lane+2)) })
	}
	err = together(lanes)
	k.count()
	k.must(err)
	if k.moorage() {
		k.must(errors.Join(k.stuck...))
	}
	for _, err := range k.stuck {
		k.Hangs(err)
	}
}

// Serial methods of an Env need a lock in the parts.
func together(parts []func()) error {
	ends := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ends <- ended(part) }()
	}
	var errs []error
	for range parts {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

func (k *kubeletKills) lane(one, other string) {
	instants := killInstants()
	done := false
	defer func() {
		if !done { // it failed: the others can stop
			k.begin(k.kills)
		}
	}()
	for {
		round := k.begin(1)
		if round >= k.kills {
			done = true
			return
		}
		kill := &kubeletKill{
			kubeletKills: k, round: round, instant: instants[round%len(instants)], from: one, to: other,
			random: rand.New(rand.NewPCG(k.Seed, uint64(round))),
		}
		kill.run()
		one, other = other, one
	}
}

func (k *kubeletKills) begin(kills int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.next
	k.next += kills
	return first
}

func (k *kubeletKills) count() {
	violations, err := k.Disk.Violations(k.ctx, k.begun)
	k.must(err)
	for _, v := range violations {
		if instant, ok := k.of[v.Volume]; ok {
			k.StepBroke(instant.String(), v.Rule)
		}
	}
}

type kubeletKill struct {
	*kubeletKills
	instant  killInstant
	from, to string                   // nodes
	first    [killedVolumes]types.UID // the pods that are there when the kubelet is killed
	round    int
	random   *rand.Rand
}

func (k *kubeletKill) run() {
	for v := range killedVolumes {
		k.claim(k.claimName(v))
	}
	if k.instant.unmounts() {
		k.whileUnmounting()
	} else {
		k.whileMounting()
	}
	k.succeed()
	k.tidy()
	for v := range killedVolumes {
		k.remove(k.successor(v))
	}
	for v := range killedVolumes {
		k.gone(k.successor(v))
		k.must(k.Client.CoreV1().PersistentVolumeClaims(k.Namespace).Delete(k.ctx, k.claimName(v), metav1.DeleteOptions{}))
	}
}

func (k *kubeletKill) claimName(v int) string { return fmt.Sprintf("data-%d-%d", k.round, v) }
func (k *kubeletKill) pod(v int) string       { return fmt.Sprintf("first-%d-%d", k.round, v) }
func (k *kubeletKill) successor(v int) string { return fmt.Sprintf("next-%d-%d", k.round, v) }

func (k *kubeletKill) place(node string, name func(int) string) (pods [killedVolumes]types.UID) {
	for v := range killedVolumes {
		pods[v] = k.podAt(node, name(v), k.claimName(v))
	}
	return pods
}

func (k *kubeletKill) whileUnmounting() {
	k.first = k.place(k.from, k.pod)
	for v := range killedVolumes {
		k.runs(k.pod(v))
	}
	k.kill(func() {
		for v := range killedVolumes {
			k.remove(k.pod(v))
		}
	}, func() {})
	for v := range killedVolumes {
		k.gone(k.pod(v))
	}
}

// The pods are deleted by force before the kubelet is back, so that it never hears of them again.
func (k *kubeletKill) whileMounting() {
	k.kill(func() { k.first = k.place(k.from, k.pod) }, func() {
		for v := range killedVolumes {
			k.must(k.forceDelete(k.ctx, k.pod(v)))
		}
	})
}

func (k *kubeletKill) kill(begin, meanwhile func()) {
	release := func() {}
	if k.instant.when == killAfter {
		k.killAfterAnswer(begin)
	} else {
		release = k.killHeld(begin)
	}
	meanwhile()
	release()
	k.must(k.Cluster.StartAgain(k.from))
	k.mu.Lock()
	k.StepDone(k.instant.String(), 1)
	k.mu.Unlock()
}

func (k *kubeletKill) killHeld(begin func()) (release func()) {
	mark, err := k.Disk.Mark(k.ctx)
	k.must(err)
	action := diskapi.Hang
	if k.instant.when == killUnder {
		action = diskapi.HangDone
	}
	stop := k.stopAt(k.from, k.instant.call, action)
	begin()
	held := k.wait(mark, stop.filter()).Volume
	k.must(k.Cluster.Kill(k.ctx, k.from))
	if k.instant.record != nil {
		k.must(k.instant.record(k.files(held)))
	}
	return stop.end
}

func (k *kubeletKill) killAfterAnswer(begin func()) {
	mark, err := k.Disk.Mark(k.ctx)
	k.must(err)
	begin()
	k.wait(mark, diskapi.Filter{Call: k.instant.call, Phase: diskapi.Returned, Node: diskapi.NodeID(k.from)})
	select {
	case <-time.After(time.Duration(k.random.Int64N(int64(afterAnswer)))): // the instant itself; nothing is waited for
	case <-k.ctx.Done():
	}
	k.must(k.Cluster.Kill(k.ctx, k.from))
}

func (k *kubeletKill) wait(mark uint64, filter diskapi.Filter) diskapi.Entry {
	ctx, cancel := context.WithTimeoutCause(k.ctx, killPatience, fmt.Errorf("%s never came in %s", k.instant, killPatience))
	defer cancel()
	entries, err := k.Disk.WaitForN(ctx, mark, filter, 1)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	k.must(err)
	return entries[0]
}

func (k *kubeletKill) files(handle string) volumeFiles {
	for v := range killedVolumes {
		claim := k.View.Claim(k.Namespace, k.claimName(v))
		if its, err := k.Handle(k.claimName(v)); err != nil || its != handle {
			continue
		}
		return filesOf(k.Cluster, k.from, handle, claim.Spec.VolumeName, string(k.first[v]))
	}
	k.must(fmt.Errorf("volume %s is none of kill %d", handle, k.round))
	return volumeFiles{}
}

func (k *kubeletKill) succeed() {
	k.place(k.to, k.successor)
	for v := range killedVolumes {
		err := k.EventuallyWithin(k.ctx, killPatience, k.successor(v)+" runs, or is told what the kubelet forgot", func() error {
			if err := k.Running(k.successor(v)); err != nil && !k.toldForgotten(v) {
				return err
			}
			return nil
		})
		if err == nil && k.toldForgotten(v) {
			handle := k.handle(k.claimName(v))
			k.must(k.Cluster.Unstage(k.ctx, k.from, handle, sandbox.StagingPath(handle)))
			k.note("volumes that a kubelet had forgotten, kept by moorage-node's word")
			err = k.EventuallyWithin(k.ctx, killPatience, k.successor(v)+" runs", func() error { return k.Running(k.successor(v)) })
		}
		if err != nil {
			k.hangs(v, err)
			continue
		}
		k.note("volumes that were moved")
	}
}

// toldForgotten also accepts that the node can't tell: a pod's record is half written.
func (k *kubeletKill) toldForgotten(v int) bool {
	if told(k.View.Pod(k.Namespace, k.successor(v)), "StagedAtNode", k.from) != nil {
		return false
	}
	handle, err := k.Handle(k.claimName(v))
	if err != nil {
		return false
	}
	spoken, err := k.spoken(k.from, handle)
	return err == nil && (spoken.Forgotten || spoken.Unknown != "")
}

func (k *kubeletKill) note(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Count(what)
}

func (k *kubeletKill) hangs(v int, err error) {
	what := fmt.Errorf("kill %d, %s: %w", k.round+1, k.instant, err)
	if pod := k.View.Pod(k.Namespace, k.successor(v)); pod != nil {
		if status, err := volumeStatus(pod); err == nil {
			what = fmt.Errorf("%w: %s: %s", what, status.Reason, status.Message)
		}
	}
	k.say("%v", what)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stuck = append(k.stuck, what)
}

func (k *kubeletKill) tidy() {
	violations, err := k.Disk.Violations(k.ctx, k.begun)
	k.must(err)
	mine := map[string]bool{}
	k.mu.Lock()
	for v := range killedVolumes {
		if handle, err := k.Handle(k.claimName(v)); err == nil {
			mine[handle], k.of[handle] = true, k.instant
		}
	}
	k.mu.Unlock()
	for _, v := range violations {
		if !mine[v.Volume] {
			continue
		}
		k.say("kill %d, %s, %s: %s (entry %d)", k.round+1, k.instant, v.Rule, v.Message, v.Seq)
		if v.Rule == diskapi.UnpublishWhileStaged && v.Node == diskapi.NodeID(k.from) {
			k.must(k.Cluster.Unstage(k.ctx, k.from, v.Volume, sandbox.StagingPath(v.Volume)))
		}
	}
}
