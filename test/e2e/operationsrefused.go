// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operationsRefused() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operations-refused",
		Doc: "The driver makes snapshots and clones, and expands, only while the volume is attached. A snapshot and a clone of a volume that is attached nowhere are not made, and say FailedPrecondition, and so does the expansion of another one. " +
			"A person makes tickets that leave the node open, of type Snapshot for the first two and Expansion for the third: the volumes are attached, all three are done, and when the tickets are gone the volumes are detached.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape: func(shape *sandbox.Shape) {
			operating(shape)
			shape.Operations.AttachFor, shape.Operations.CopyLatency = "snapshot,clone,expansion", time.Second
		},
		Takes: 45 * time.Second,
		Run: tell(func(s *story) {
			const here = "worker-1"
			claims := map[string]v1alpha1.TicketType{"data": v1alpha1.TicketSnapshot, "grows": v1alpha1.TicketExpansion}
			attaches := map[string]int{}
			for claim := range claims {
				s.placed(claim, here)
				attaches[claim] = s.published(s.handle(claim))
			}
			s.asksWhileDetached()
			for claim, kind := range claims {
				if s.moorage() {
					s.ticketOfType(claim, kind, "", claim)
				} else {
					s.podAt(here, claim, claim) // a person can do no more there
				}
			}
			s.snapshotReady("nightly")
			s.bound("clone")
			if s.moorage() {
				s.expandedAtStorage("grows", "2Gi")
			} else {
				s.expandedUnlessRefused("grows", "2Gi")
			}
			for claim := range claims {
				now := s.published(s.handle(claim))
				s.expect(now > attaches[claim], "the volume of "+claim+" was attached for it", "it was not")
				if s.moorage() {
					s.removeTicket(claim)
				} else {
					s.remove(claim)
				}
			}
			s.say("they were attached, and done is all that can be")
			for claim := range claims {
				s.leavesEveryNode(claim)
			}
			torn := s.View.Calls(diskapi.Filter{Call: diskapi.WorkTorn})
			s.expect(len(torn) == 0, "nothing was torn", "there is %v", torn)
		}),
	}
}

func (s *story) asksWhileDetached() {
	s.snapshotOf("nightly", "data")
	s.cloneOf("clone", "data")
	s.expand("grows", "2Gi")
	s.snapshotRefused("nightly", "FailedPrecondition")
	s.refused("clone", "ProvisioningFailed", "FailedPrecondition")
	s.refused("grows", "VolumeResizeFailed", "FailedPrecondition")
	s.say("the driver refuses snapshot, clone and expansion of volumes that are attached nowhere")
}

// external-resizer takes the driver's FailedPrecondition for "the volume is in use", and then waits until
// no pod uses it. It expands all the same if it has not seen the pod yet, or if its last request failed
// otherwise (expand_and_recover.go of v2.3.0).
func (s *story) expandedUnlessRefused(claim, size string) {
	want := resource.MustParse(size)
	s.until("claim "+claim+" is expanded, or told that it is in use", func() error {
		pv := s.View.Volume(s.View.Claim(s.Namespace, claim).Spec.VolumeName)
		if pv != nil && pv.Spec.Capacity.Storage().Cmp(want) == 0 || s.Event("PersistentVolumeClaim", claim, "VolumeResizeFailed", "only supports offline expansion") != nil {
			return nil
		}
		return errors.New("neither yet")
	})
}
