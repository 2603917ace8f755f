// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type takeOver struct {
	*crashes
	leads, next string // replicas of the scheduler
	pods        []string
}

func (c *crashes) takeOvers() {
	next, err := c.Cluster.StandBy(sandbox.MoorageScheduler)
	c.must(err)
	for i := range 4 {
		c.claim(claimNamed(i))
	}
	t := &takeOver{crashes: c, leads: sandbox.MoorageScheduler, next: next}
	t.change("paused", t.Cluster.Pause)
	t.must(t.Cluster.Resume(t.leads))
	t.end("paused")
	t.change("killed", func(name string) error { return t.Cluster.Kill(t.ctx, name) })
	t.end("killed")
}

func claimNamed(i int) string { return fmt.Sprintf("taken-%d", i+1) }

func (t *takeOver) change(how string, stop func(name string) error) {
	before := t.leader()
	t.pods = nil
	for i := range 4 {
		pod := fmt.Sprintf("%s-%d", how, i+1)
		t.podAt("worker-1", pod, claimNamed(i))
		t.pods = append(t.pods, pod)
	}
	t.must(stop(t.leads))
	t.kills++
	t.until("the standby leads", func() error {
		if now := t.leader(); now == "" || now == before {
			return fmt.Errorf("%q does", now)
		}
		return nil
	})
}

func (t *takeOver) end(how string) {
	t.allRun("the pods run", t.pods...)
	t.say("%s was %s as pods came: %s took over, and they run", t.leads, how, t.next)
	for _, pod := range t.pods {
		t.remove(pod)
	}
	t.until("the pods are gone, and their volumes detached", func() error {
		for i, pod := range t.pods {
			if err := t.PodGone(pod); err != nil {
				return err
			}
			if t.attachment(claimNamed(i), "worker-1") != nil {
				return fmt.Errorf("the volume of %s is attached", claimNamed(i))
			}
		}
		return nil
	})
	t.must(t.Cluster.Kill(t.ctx, t.leads))
	t.must(t.Cluster.StartAgain(t.leads))
	t.leads, t.next = t.next, t.leads
}

func (t *takeOver) leader() string {
	lease, err := t.Client.CoordinationV1().Leases(sandbox.MoorageNamespace).Get(t.ctx, sandbox.MoorageScheduler, metav1.GetOptions{})
	t.must(err)
	if lease.Spec.HolderIdentity == nil {
		t.must(errors.New("nobody holds the scheduler's Lease"))
	}
	return *lease.Spec.HolderIdentity
}
