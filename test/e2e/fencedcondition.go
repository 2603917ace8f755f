// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const fencedByScript = v1alpha1.FencedConditionPrefix + "script"

// fencedCondition guards that a Node's condition frees nothing if it is older than the node's last sign.
func fencedCondition() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "fenced-condition",
		Doc: "A policy names a condition of the Node. Set while the node runs it frees nothing, not even when the machine is switched off later. " +
			"Set anew after that, as a script does that has fenced the machine, it has the volume detached, told with its rule, and the pod's successor runs.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: failingNodes,
		Takes: 45 * time.Second,
		Run: tell(func(s *story) {
			s.policy("array", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{FencedCondition: new(fencedByScript)}})
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.vouch(from)
			s.olderThanSigns(from)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("%s runs, and says of itself that it is fenced: nothing moves", from)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			replacement := s.replaced(old)
			s.bystander(replacement.Spec.NodeName)
			s.untouched(old, replacement)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("%s is switched off: a condition from before vouches for nothing", from)
			s.vouch(from)
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy("FencedCondition", from)
			s.say("%s runs on %s: the volume was detached by rule FencedCondition", replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.noPolicy("array")
		}),
	}
}

func (s *story) vouch(node string) {
	set := corev1.NodeCondition{Type: fencedByScript, Status: corev1.ConditionTrue, Reason: "Fenced", LastTransitionTime: metav1.Now()}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{set}}})
	s.must(err)
	_, err = s.Client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must(err)
}

func (s *story) olderThanSigns(node string) {
	s.until("the node's Lease is newer than the condition", func() error {
		n, err := s.Client.CoreV1().Nodes().Get(s.ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease, err := s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(s.ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == fencedByScript })
		if i < 0 || lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(n.Status.Conditions[i].LastTransitionTime.Add(time.Second)) {
			return errors.New("not yet")
		}
		return nil
	})
}
