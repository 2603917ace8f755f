// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Mounts of deleted pods are not safe to detach before the kubelet is back and says so.
func kubeletRestart() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "kubelet-restart",
		Doc: "While a kubelet is down one of its pods is deleted, another by force, and the second one's successor waits for its volume elsewhere. Nothing is detached until the kubelet is back; " +
			"a third pod keeps its volume throughout, and everybody else is served.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Takes: 40 * time.Second, // mostly a wait that usually passes by itself
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			for _, name := range []string{"stays", "goes", "vanishes"} {
				s.claim(name)
				s.podAt(node, name, name)
			}
			s.allRun("three pods run on "+node, "stays", "goes", "vanishes")
			handles := map[string]string{}
			for _, name := range []string{"stays", "goes", "vanishes"} {
				handles[name] = s.handle(name)
			}
			s.say("three pods run on %s, and its kubelet is killed", node)
			s.must(s.Cluster.Kill(s.ctx, node))
			s.remove("goes")
			s.must(s.forceDelete(s.ctx, "vanishes"))
			s.podAt(other, "successor", "vanishes")
			s.until("the successor is told that its volume is in use at "+node, func() error {
				s.undetached(node, handles)
				return told(s.View.Pod(s.Namespace, "successor"), "InUse", "in use at "+node)
			})
			s.bystander(other)
			s.undetached(node, handles)
			s.say("one is deleted, one by force, and its successor waits on %s; a later pod runs there, and nothing was detached. The kubelet comes back", other)
			s.must(s.Cluster.StartAgain(node))
			s.runs("successor")
			s.gone("goes")
			s.until("the volume of the pod that was deleted is detached", func() error {
				if a := s.attachment("goes", node); a != nil {
					return fmt.Errorf("%s is there", a.Name)
				}
				return nil
			})
			s.podAt(node, "again", "goes")
			s.runs("again")
			s.never(diskapi.ControllerUnpublish, handles["stays"], node)
			s.must(s.Running("stays"))
			s.until("the kubelet reports the volume that stayed in use", func() error {
				if !s.InUse(node, handles["stays"]) {
					return errors.New("it does not")
				}
				return nil
			})
			s.say("the successor runs, the other volume serves another pod, and the third one was never touched")
		}),
	}
}

func (s *story) undetached(node string, handles map[string]string) {
	for claim, handle := range handles {
		s.never(diskapi.ControllerUnpublish, handle, node)
		what, a := "the volume of "+claim+" is still attached to "+node, s.attachment(claim, node)
		s.expect(a != nil, what, "it is not")
		s.expect(a.DeletionTimestamp == nil, what, "its attachment is %s", stateOf(a))
	}
}
