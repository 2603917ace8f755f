// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/csiaddons"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const fencedDisk = v1alpha1.NetworkFencePrefix + sandbox.DriverName

const fenceClass = "disk"

// networkFence guards that a cut-off machine is let in only when it has nothing mounted.
func networkFence() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "network-fence",
		Doc: "A node is cut off from the API server; its machine and its pods live. csi-addons forgets its clients meanwhile. The storage is asked to cut the machine off, and its volume runs elsewhere. " +
			"When the network is back the machine is not let in, and gets no pod with a volume, until its old pod is unmounted and moorage-node has found nothing.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   func(shape *sandbox.Shape) { fencedNodes(shape); shape.MoorageNode = true },
		Takes:   2 * time.Minute,
		Timeout: 8 * time.Minute,
		Run: tell(func(s *story) {
			s.fencedBy(30 * time.Second)
			old := s.evictable()
			from, handle, boot := old.Spec.NodeName, s.handle("data"), s.bootOf(old.Spec.NodeName)
			s.boundClaim("spare")
			s.say("%s, where %s runs, is cut off from the API server", from, old.Name)
			s.must(s.Cluster.Cut(from))
			replacement := s.replaced(old)
			s.forgetClients(from)
			s.say("csi-addons has deleted the CSIAddonsNode of %s, which it can't reach", from)
			s.runs(replacement.Name)
			s.until("the storage refuses what "+old.Name+" writes", func() error {
				if len(s.calls(diskapi.WriteRefused, diskapi.Noted, handle, from)) == 0 {
					return errors.New("it does not")
				}
				return nil
			})
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy(string(v1alpha1.ForceDetachNetworkFence), from)
			s.expect(s.isCut(from) && slices.Contains(s.stagedAt(handle), diskapi.NodeID(from)), "the storage has cut the machine off, which has the volume mounted", "it is staged at %v", s.stagedAt(handle))
			s.say("%s runs on %s: the storage has cut off the machine of %s, which lives", replacement.Name, replacement.Spec.NodeName, from)

			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.NodeUnpublish}, Node: diskapi.NodeID(from), Action: diskapi.Hang})
			s.must(s.Cluster.Restore(from))
			s.nodeIs(from, true)
			s.expect(s.bootOf(from) == boot, "it is the same boot", "it was %s and is %s", boot, s.bootOf(from))
			s.claim("fresh")
			s.podAt(from, "early", "spare")
			s.podAt(from, "unmade", "fresh")
			for _, name := range []string{"early", "unmade"} {
				s.until("pod "+name+" is not placed", func() error { return unscheduled(s.View.Pod(s.Namespace, name), "has cut node "+from+" off") })
			}
			s.sayTold("early")
			s.expect(s.isCut(from) && s.saysFenced(from), "the machine is still cut off, and its Node says so", "cut off: %t", s.isCut(from))
			s.never(diskapi.ControllerPublish, s.handle("spare"), from)
			s.say("%s is Ready in the same boot, and %s still has the volume mounted there: it gets no pod with a volume", from, old.Name)
			mend()
			s.gone(old.Name)
			s.letIn(from)
			s.allRun("the pods that waited run at "+from, "early", "unmade")
			s.say("nothing is mounted there any more: the machine is let in, and the pods that waited run")
			s.unfencedBy()
		}),
	}
}

// networkFenceFails guards that an unconfirmed NetworkFence proves nothing.
func networkFenceFails() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "network-fence-fails",
		Doc: "As network-fence, but the storage fails, then does not answer, then cuts the machine off and does not say so: nothing is detached before it has confirmed. " +
			"The leader is killed when the NetworkFence is made, when it is confirmed, and when the Node says so. The machine is let in after another boot.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   fencedNodes,
		Takes:   3 * time.Minute,
		Timeout: 8 * time.Minute,
		Run: tell(func(s *story) {
			s.fencedBy(0)
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			fencing := []diskapi.Call{diskapi.FenceNetwork}
			works := s.breakCalls(diskapi.Fault{Calls: fencing, Action: diskapi.Fail, Code: "Unavailable", Message: "the storage is busy"})
			s.breakCalls(diskapi.Fault{Calls: fencing, Action: diskapi.Hang, Times: 1})
			answers := s.breakCalls(diskapi.Fault{Calls: fencing, Action: diskapi.HangAfter})
			unmarked := s.denyFenced(from)
			s.must(s.Cluster.Cut(from))
			replacement := s.replaced(old)
			s.asked(diskapi.Filter{Call: diskapi.FenceNetwork, Phase: diskapi.Returned}, 3)
			s.newLeader()
			s.untouched(old, replacement)
			s.unconfirmed()
			s.say("the storage fails; the leader that made the NetworkFence is killed")
			works()
			s.asked(diskapi.Filter{Call: diskapi.FenceNetwork, Outcome: diskapi.Abandoned}, 1)
			s.untouched(old, replacement)
			s.unconfirmed()
			s.asked(diskapi.Filter{Call: diskapi.FenceNetwork, Phase: diskapi.Applied}, 1)
			s.untouched(old, replacement)
			s.unconfirmed()
			s.say("it did not answer, and then it has cut the machine off, and does not say so")
			answers()
			s.until("the NetworkFence is confirmed", func() error { return s.fences(1, "Fenced", "moorage.dev/fence-state") })
			s.newLeader()
			s.untouched(old, replacement)
			s.expect(!s.saysFenced(from), "the Node does not say so yet", "it does")
			s.say("the leader that has seen it confirmed is killed")
			mend := s.failDetach(handle)
			unmarked()
			s.until("the Node says that its machine is cut off", func() error { return s.fencedIs(from, true) })
			s.detachBegins(handle, from)
			s.newLeader()
			mend()
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.until("the hold says by which rule", func() error { return s.heldFence(from, v1alpha1.ForceDetachNetworkFence) })
			s.say("the leader that made the Node say so is killed; %s runs on %s", replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.must(s.Cluster.Restore(from))
			s.expect(s.isCut(from), "the machine is cut off while it is off", "it is let in")
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.gone(old.Name)
			s.letIn(from)
			s.say("%s has booted: it is let in", from)
			s.unfencedBy()
		}),
	}
}

// networkFenceBoot guards that a reported boot lets a machine in, though the kubelet keeps its pods'
// records.
func networkFenceBoot() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "network-fence-boot",
		Doc: "A machine is off for so short that its pod is not deleted, but is cut off by the storage meanwhile. It boots with the kubelet's records of the pod's volume: " +
			"moorage-node says that it is another boot, the machine is let in, and the pod runs there again.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   func(shape *sandbox.Shape) { fencedNodes(shape); shape.MoorageNode = true },
		Takes:   time.Minute,
		Timeout: 8 * time.Minute,
		Run: tell(func(s *story) {
			s.fencedBy(0)
			s.claim("data")
			s.deployment(sandbox.Deployment("web", "data"))
			pod := s.successor("the pod runs", "web", s.isRunning)
			from, boot := pod.Spec.NodeName, s.bootOf(pod.Spec.NodeName)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.until("its Node says that its machine is cut off", func() error { return s.fencedIs(from, true) })
			s.expect(s.isCut(from), "the storage has cut the machine off", "it is let in")
			s.say("%s is off, and cut off; %s is not deleted", from, pod.Name)
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController)) // until moorage-node has found the records
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.expect(s.bootOf(from) != boot, "it is another boot", "it is still %s", boot)
			s.until("moorage-node has the records, and says that it is another boot", func() error {
				word, err := s.own().NodeMountReports().Get(s.ctx, from, metav1.GetOptions{})
				if err == nil && (word.Status.BootID != s.bootOf(from) || len(word.Status.Volumes) == 0) {
					err = fmt.Errorf("it says boot %s, and %+v", word.Status.BootID, word.Status.Volumes)
				}
				return err
			})
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			s.letIn(from)
			s.runs(pod.Name)
			s.expect(s.View.Pod(s.Namespace, pod.Name).UID == pod.UID, "it is the same pod", "it is another one of its name")
			s.say("%s has booted, and is let in: %s runs there again", from, pod.Name)
			s.unfencedBy()
		}),
	}
}

// The event may be lost with the leader.
func (s *story) heldFence(node string, rule v1alpha1.ForceDetachRule) error {
	hold, err := s.hold("data")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(hold.Status.Fenced, func(f v1alpha1.FencedNode) bool { return f.Node == node && f.Rule == rule }) {
		return fmt.Errorf("it says %+v", hold.Status.Fenced)
	}
	return nil
}

func fencedNodes(shape *sandbox.Shape) {
	failingNodes(shape)
	shape.NetworkFences = true
}

func (s *story) fencedBy(after time.Duration) {
	class := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provisioner": sandbox.DriverName}}}
	class.SetGroupVersionKind(csiaddons.Resource("").GroupVersion().WithKind("NetworkFenceClass"))
	class.SetName(fenceClass)
	_, err := s.Dynamic.Resource(csiaddons.Resource("networkfenceclasses")).Create(s.ctx, class, metav1.CreateOptions{})
	s.must(err)
	s.policy("fenced", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{NetworkFence: &v1alpha1.NetworkFencePolicy{
		ClassName: fenceClass, AfterUnreachable: &metav1.Duration{Duration: after},
	}}})
	s.until("csi-addons lists the clients of each node", func() error {
		list, err := s.clientsOf()
		if err == nil && len(list) < 3 {
			err = fmt.Errorf("of %v only", list)
		}
		return err
	})
}

func (s *story) unfencedBy() {
	s.noPolicy("fenced")
	s.must(s.Dynamic.Resource(csiaddons.Resource("networkfenceclasses")).Delete(s.ctx, fenceClass, metav1.DeleteOptions{}))
}

func (s *story) clientsOf() (nodes []string, err error) {
	list, err := s.Dynamic.Resource(csiaddons.Resource("csiaddonsnodes")).Namespace(csiaddons.Namespace).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		node, _, _ := unstructured.NestedString(o.Object, "spec", "driver", "nodeID")
		if classes, _, _ := unstructured.NestedSlice(o.Object, "status", "networkFenceClientStatus"); len(classes) > 0 {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

func (s *story) forgetClients(node string) {
	s.must(s.Cluster.Kill(s.ctx, sandbox.CSIAddons))
	s.must(s.Cluster.StartAgain(sandbox.CSIAddons))
	s.until("csi-addons lists no clients of "+node, func() error {
		list, err := s.clientsOf()
		if err == nil && slices.Contains(list, node) {
			err = errors.New("it does")
		}
		return err
	})
}

func (s *story) boundClaim(name string) {
	claim := sandbox.Claim(name, corev1.ReadWriteOnce)
	claim.Spec.StorageClassName = new("disk-immediate")
	s.must(s.CreateClaim(s.ctx, claim))
	s.until("claim "+name+" is bound", func() error {
		_, err := s.Handle(name)
		return err
	})
}

func (s *story) bootOf(node string) string { return s.View.Node(node).Status.NodeInfo.BootID }

func (s *story) isCut(node string) bool {
	n, err := s.Disk.Node(s.ctx, diskapi.NodeID(node))
	s.must(err)
	return n.CutOff
}

func (s *story) stagedAt(handle string) []string {
	disks, err := s.Disk.Disks(s.ctx)
	s.must(err)
	i := slices.IndexFunc(disks, func(d diskapi.Disk) bool { return d.Volume == handle })
	s.expect(i >= 0, "the disk is there", "it is not")
	return disks[i].Staged
}

func (s *story) saysFenced(node string) bool {
	n := s.View.Node(node)
	return n != nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == fencedDisk && c.Status == corev1.ConditionTrue
	})
}

func (s *story) fencedIs(node string, fenced bool) error {
	if s.saysFenced(node) != fenced {
		return fmt.Errorf("it says %t", !fenced)
	}
	return nil
}

func (s *story) fences(count int, state, annotation string) error {
	list, err := s.Dynamic.Resource(csiaddons.Resource("networkfences")).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var found []string
	good := 0
	for _, o := range list.Items {
		is, _, _ := unstructured.NestedString(o.Object, "spec", "fenceState")
		if is == state && o.GetAnnotations()[annotation] != "" {
			good++
		}
		found = append(found, fmt.Sprintf("%s generation %d %v %v", o.GetName(), o.GetGeneration(), o.Object["spec"], o.Object["status"]))
	}
	if good != count || len(list.Items) != count {
		return fmt.Errorf("there are %s", strings.Join(found, "; "))
	}
	return nil
}

func (s *story) unconfirmed() {
	s.expect(s.fences(1, "Fenced", "moorage.dev/fence-state") != nil, "the NetworkFence is not confirmed yet", "it is")
}

func (s *story) letIn(node string) {
	s.must(s.EventuallyWithin(s.ctx, 7*time.Minute, node+" is let in", func() error {
		if s.isCut(node) {
			return errors.Join(errors.New("the storage refuses it"), s.fences(0, "", ""))
		}
		return errors.Join(s.fencedIs(node, false), s.fences(0, "", ""))
	}))
}

func (s *story) asked(calls diskapi.Filter, times int) {
	s.until(fmt.Sprintf("the disk service has logged %s %s%s %d times", calls.Call, calls.Phase, calls.Outcome, times), func() error {
		if n := len(s.View.Calls(calls)); n < times {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}

func (s *story) newLeader() {
	s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
	s.must(s.Cluster.StartAgain(sandbox.MoorageController))
}

func (s *story) denyFenced(node string) (mend func()) {
	const name = "test-unmarked"
	policies, bindings := s.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), s.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(s.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "!object.status.conditions.exists(c, c.type.startsWith('" + v1alpha1.NetworkFencePrefix + "'))"}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	_, err = bindings.Create(s.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	probe := []byte(`{"status":{"conditions":[{"type":"` + fencedDisk + `","status":"True","reason":"Probe"}]}}`)
	s.until("the API server refuses the condition", func() error {
		_, err := s.Client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, probe, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		if err == nil || !apierrors.IsInvalid(err) {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	return func() {
		s.must(bindings.Delete(s.ctx, name, metav1.DeleteOptions{}))
		s.must(policies.Delete(s.ctx, name, metav1.DeleteOptions{}))
	}
}
