// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// It guards the ledger of a controller in a large cluster: complete, and made by looking only. The time is
// told, not asserted.
func adoption(scenario sandbox.Scenario, old estate) sandbox.Scenario {
	scenario.Doc = fmt.Sprintf("The controller is installed into a cluster with %d attached volumes, a pod to each: it makes a VolumeHold for every one, detaches nothing and writes to no node; ", old.volumes()) +
		"how long that took is told. A pod runs throughout, and one that comes meanwhile runs, too."
	scenario.Modes = []sandbox.Mode{sandbox.Standalone}
	scenario.Exclusive = true
	scenario.Takes = 25 * time.Second
	scenario.Shape = func(shape *sandbox.Shape) {
		threeByFour(shape)
		// The old nodes have no kubelets to say that they are well.
		shape.NodeMonitorGracePeriod = time.Hour
	}
	scenario.Run = tell(func(s *story) {
		a := &adopting{story: s, estate: old}
		a.claim("before")
		a.pod("before", "before")
		a.runs("before")
		a.withoutController(func() {
			a.enforce(false)
			a.settle()
			a.enforce(true)
			a.neverThere()
		})
		began := time.Now()
		a.claim("meanwhile")
		a.pod("meanwhile", "meanwhile")
		patience := sandbox.Patience * time.Duration(1+old.volumes()/2500)
		a.must(a.EventuallyWithin(a.ctx, patience, "every volume has its VolumeHold", a.booked))
		took := time.Since(began)
		a.say("the ledger of %d volumes is complete %.1f s after the controller's start: %.0f s for 10,000",
			old.volumes(), took.Seconds(), took.Seconds()*10_000/float64(old.volumes()))
		a.runs("meanwhile")
		a.until("every VolumeHold names its node and its pod", a.heldWhereAttached)
		a.onlyLooked()
		a.untouchedAll("before")
		a.clear()
	})
	return scenario
}

func adoptMany() sandbox.Scenario {
	return adoption(sandbox.Scenario{Name: "adopt-many"}, estate{nodes: 10, perNode: 50})
}

func adoptThousands() sandbox.Scenario {
	return adoption(sandbox.Scenario{Name: "adopt-thousands", Extra: true, Timeout: 20 * time.Minute}, estate{nodes: 50, perNode: 100})
}

type adopting struct {
	*story
	estate
}

// A new installation has no Lease: the next controller would wait the old Lease out.
func (a *adopting) neverThere() {
	a.must(a.Client.CoordinationV1().Leases(sandbox.MoorageNamespace).Delete(a.ctx, sandbox.MoorageController, metav1.DeleteOptions{}))
	a.say("%d volumes are attached to %d nodes, which no controller of Moorage's has ever seen; now one is installed", a.volumes(), a.nodes)
}

// It runs at every change of the cluster, so it only counts.
func (a *adopting) booked() error {
	holds := a.View.Holds()
	if len(holds) < a.volumes() {
		return fmt.Errorf("%d have one", len(holds))
	}
	found := 0
	for _, o := range holds {
		if driver, _, _ := unstructured.NestedString(o.Object, "spec", "driver"); driver == oldDriver {
			found++
		}
	}
	if found < a.volumes() {
		return fmt.Errorf("%d have one", found)
	}
	return nil
}

func (a *adopting) heldWhereAttached() error {
	list, err := a.own().VolumeHolds().List(a.ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list VolumeHolds: %w", err)
	}
	holds := map[string]*v1alpha1.VolumeHold{}
	for i := range list.Items {
		if hold := &list.Items[i]; hold.Spec.Driver == oldDriver {
			holds[hold.Spec.Handle] = hold
		}
	}
	for i := range a.volumes() {
		hold := holds[oldName(i)]
		if hold == nil {
			return fmt.Errorf("volume %s has no hold", oldName(i))
		}
		holder := hold.Status.Holder
		if holder == nil || holder.Node != a.nodeOf(i) || len(holder.Requesters) != 1 || holder.Requesters[0].Name != oldName(i) {
			return fmt.Errorf("the hold of %s says %+v", oldName(i), holder)
		}
	}
	return nil
}

func (a *adopting) onlyLooked() {
	found := map[string]bool{}
	for i := range a.volumes() {
		found[a.attachmentOf(i)] = true
	}
	for _, e := range a.everyRequest() {
		if e.User.Username != controllerUser || !e.IsWrite() {
			continue
		}
		touched := e.Object.Resource == "volumeattachments" && found[e.Object.Name] ||
			e.Object.Resource == "nodes" && strings.HasPrefix(e.Object.Name, oldPrefix)
		a.expect(!touched, "the controller only looks", "%s", e)
	}
}
