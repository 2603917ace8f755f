// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A pod that is made after the pods were listed is in no bind that the leader before has sent: a take-over does
// not wait for a fence of it, and ends however many pods come meanwhile, and whatever refuses their fences.
func TestTakeOverEndsWhilePodsCome(t *testing.T) {
	for name, refused := range map[string]bool{"fences are written": false, "a pod's annotations are full": true} {
		t.Run(name, func(t *testing.T) {
			first := pod("first", "", "a")
			p := newPlayer(first)
			p.memory.Binds = true
			pods, fenced, began := map[string]ledger.Pod{first.UID: first}, map[string]bool{}, p.now
			for round := range 20 {
				tasks := p.memory.TakeOver(p.ledger.Snapshot())
				if len(tasks) == 0 {
					if !fenced[first.UID] {
						t.Error("the pod that was there is not fenced")
					}
					return
				}
				for _, task := range tasks {
					switch is := pods[task.Commit.UID]; {
					case task.Doubts:
						p.play(t, task)
					case task.Commit.Do == FencePod && refused:
						p.play(t, task, replies(Done, is), replies(Refused), replies(Done, is))
						fenced[task.Commit.UID] = true
					case task.Commit.Do == FencePod:
						p.play(t, task, replies(Done, is), replies(Done))
						fenced[task.Commit.UID] = true
					default:
						p.play(t, task, replies(Done))
					}
				}
				next := pod(fmt.Sprint("tenant", round), "", "a") // one while a round goes on
				next.Namespace = "tenant"
				pods[next.UID] = next
				p.ledger.Apply(p.now, next)
			}
			t.Errorf("after 20 rounds, and %s, %d pods are fenced, and nothing may be granted, attached or detached yet", p.now.Sub(began), len(fenced))
		})
	}
}
