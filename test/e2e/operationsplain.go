// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operationsPlain() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operations-plain",
		Doc: "The driver needs no attachment for what it does with a volume. A snapshot of a volume in use and of one that is attached nowhere, a snapshot of both at one moment, a clone, " +
			"a volume from a snapshot and a larger volume under a running pod are made; nothing is attached or detached for it, and a pod finds in the restored volume what was flushed when the snapshot was made.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape: operating,
		Takes: 45 * time.Second,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.placed("idle", here)
			s.claim("data")
			uid := s.podAt(here, "db", "data")
			s.runs("db")
			data, idle := s.bound("data"), s.bound("idle")
			s.finds(data, here)
			attaches := s.published(data) + s.published(idle)

			s.snapshotOf("of-data", "data")
			s.snapshotOf("of-idle", "idle")
			taken := s.snapshotReady("of-data")
			s.snapshotReady("of-idle")
			s.say("there is a snapshot of the volume in use, with write %d, and one of the volume that is attached nowhere", taken.Flushed)
			for _, claim := range []string{"data", "idle"} {
				s.label(claim, "app", "shop")
			}
			s.groupSnapshotOf("both", "app", "shop")
			members := s.groupReady("both")
			s.expect(len(members) == 2 && members[0].Group == members[1].Group, "the storage has one group of both volumes", "it has %+v", members)
			s.cloneOf("clone", "data")
			s.bound("clone")
			s.restoredFrom("restored", "of-data")
			restored := s.bound("restored")
			s.expand("data", "2Gi")
			s.expanded("data", "2Gi", "db")
			s.say("there are a snapshot of both, a clone and a restored volume, and the volume of db has grown")

			s.expect(s.runs("db").UID == uid, "it is the pod of before", "it is another one")
			s.expect(s.published(data)+s.published(idle) == attaches, "nothing was attached for any of it", "it was: %d attaches before, %d after", attaches, s.published(data)+s.published(idle))
			s.never(diskapi.ControllerUnpublish, data, here)
			s.podAt(there, "restored", "restored")
			s.runs("restored")
			found := s.finds(restored, there)
			s.expect(found == taken.Flushed, "the pod finds what the snapshot has", "the snapshot has write %d, the pod finds %d", taken.Flushed, found)
			s.say("a pod finds write %d in the restored volume", found)
		}),
	}
}

func (s *story) label(claim, key, value string) {
	patch := []byte(`{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`)
	_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Patch(s.ctx, claim, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
}
