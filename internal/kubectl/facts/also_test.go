// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// What to do is said of each thing that keeps a pod from the nodes, once, in the order in which the
// scheduler names them, after that of the cause.
func TestEachRefusalIsAnswered(t *testing.T) {
	const affinity, port = "Compare the pod's nodeSelector and affinity with the labels: kubectl get nodes --show-labels", "Another pod of the node has that hostPort: use another, or a Service"
	for message, want := range map[string][]string{
		"0/3 nodes are available: 3 Insufficient memory.":                                                                                                                    nil,
		"0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.":                                                                                                nil,
		"0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient memory.":                                                                                      {uncordon},
		"0/3 nodes are available: 1 Insufficient memory, 1 Too many pods, 1 node(s) were unschedulable.":                                                                     {"Their kubelets take no more pods (maxPods): end some there, or add nodes", uncordon},
		"0/4 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient memory.": {port, affinity},
	} {
		p := &corev1.Pod{}
		c := NewWorld(Objects{}, noon()).refusedBy(p, &corev1.PodCondition{Reason: "Unschedulable", Message: message})
		if c.Code != "InsufficientResources" || c.Do != refusals[0].do || !slices.Equal(c.Also, want) {
			t.Errorf("%s: %s, %q and %q, want %q", message, c.Code, c.Do, c.Also, want)
		}
	}
}

// What a scheduler says of nodes may have commas, as a reason of Moorage's has: all of it is told, and a
// refused VolumeHold is answered in docs/reasons.md's words.
func TestRefusedHoldIsAnswered(t *testing.T) {
	why := arbiter.Reason{Code: arbiter.HoldRefused}.Message()
	message := "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) refused: " + why + ". preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
	w := NewWorld(Objects{}, noon())
	parts := countedParts(strings.SplitN(message, " preemption:", 2)[0])
	if want := []string{"Insufficient cpu (1 node)", "refused: " + why + " (3 nodes)"}; !slices.Equal(parts, want) {
		t.Errorf("parts %q, want %q", parts, want)
	}
	c := w.refusedBy(&corev1.Pod{}, &corev1.PodCondition{Reason: "Unschedulable", Message: message})
	if do := w.adviceOn(arbiter.HoldRefused).Do; do == "" || !slices.Contains(append(c.Also, c.Do), do) {
		t.Errorf("do %q and %q, want %q", c.Do, c.Also, do)
	}
}

// What a scheduler says of nodes is told apart whatever it begins with: kube-scheduler's plugins for claims of devices,
// and those of others, have words of their own.
func TestPartsOfOtherWords(t *testing.T) {
	for message, want := range map[string][]string{
		"0/5 nodes are available: 2 Insufficient cpu, 3 cannot allocate all claims.":                           {"Insufficient cpu (2 nodes)", "cannot allocate all claims (3 nodes)"},
		"0/5 nodes are available: 1 cannot align pod: pod, 1 Insufficient cpu, 3 Too many pods.":               {"cannot align pod: pod (1 node)", "Insufficient cpu (1 node)", "Too many pods (3 nodes)"},
		"0/3 nodes are available: 1 resourceclaim not available on the node, 2 node(s) were unschedulable.":    {"resourceclaim not available on the node (1 node)", "cordoned (2 nodes)"},
		"0/3 nodes are available: 3 node(s) refused: no free slot of driver d (3 of 3 used, 2 are detaching).": {"refused: no free slot of driver d (3 of 3 used, 2 are detaching) (3 nodes)"},
	} {
		if got := countedParts(message); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// A pod whose volume's VolumeHold is refused can go nowhere, whatever room nodes have for it; and who asks for the
// claim is told, too.
func TestRefusedHoldIsOfTheVolume(t *testing.T) {
	o := left()
	o.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}}}
	o.NodeDrivers = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "n"}}}}}
	for name, test := range map[string]struct {
		claim   string
		refused bool
	}{"its own": {"h", true}, "another one": {"other", false}} {
		p := podWith("h", "")
		why := arbiter.Reason{Code: arbiter.HoldRefused, Claim: test.claim}.Message()
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 node(s) refused: " + why + "."}}
		o.Pods = []*corev1.Pod{p}
		w := NewWorld(o, noon())
		if x := w.ExplainPod(p); len(x.Nodes) != 1 || x.Nodes[0].Fits || len(x.Nodes[0].Reasons) != 1 || x.Nodes[0].Reasons[0].Message != why {
			t.Errorf("%s: the node says %+v", name, x.Nodes)
		}
		if s := w.ExplainClaim(o.Claims[0]); (s.Cause != nil && s.Cause.Code == string(arbiter.HoldRefused)) != test.refused || strings.Contains(s.Answer, why) != test.refused {
			t.Errorf("%s: the claim %s (%+v)", name, s.Answer, s.Cause)
		}
	}
	p := podWith("h", "")
	o.Pods = []*corev1.Pod{p}
	if x := NewWorld(o, noon()).ExplainPod(p); len(x.Nodes) != 1 || !x.Nodes[0].Fits {
		t.Errorf("nothing is refused, and the node says %+v", x.Nodes)
	}
}

// The same is so of what nodes lack for a pod's volumes, but for what a node lacks besides where it is
// enough at another one that the cause ends.
func TestEachLackOfNodesIsAnswered(t *testing.T) {
	held, full, driver := Reason{Code: string(arbiter.HeldElsewhere), Do: "end it"}, Reason{Code: string(arbiter.NoFreeSlot), Do: "add nodes"}, Reason{Code: string(arbiter.DriverNotRegistered), Do: "see the node plugin"}
	for name, test := range map[string]struct {
		nodes []NodesVerdict
		want  []string
	}{
		"one thing":                  {[]NodesVerdict{{Reasons: []Reason{held}}, {Reasons: []Reason{held}}}, nil},
		"another at each":            {[]NodesVerdict{{Reasons: []Reason{held}}, {Reasons: []Reason{full}}, {Reasons: []Reason{driver}}, {Reasons: []Reason{full}}}, []string{"add nodes", "see the node plugin"}},
		"both at all":                {[]NodesVerdict{{Reasons: []Reason{full, held}}}, []string{"add nodes"}},
		"enough at one":              {[]NodesVerdict{{Reasons: []Reason{full, held}}, {Reasons: []Reason{held}}}, nil},
		"a node that is no choice":   {[]NodesVerdict{{Reasons: []Reason{held}}, {Barred: "it is cordoned", Reasons: []Reason{full}}}, nil},
		"the same in other words":    {[]NodesVerdict{{Reasons: []Reason{held, {Code: "Other", Do: "end it"}}}}, nil},
		"nothing can be done for it": {[]NodesVerdict{{Reasons: []Reason{held, {Code: "Other"}}}}, nil},
	} {
		c := held.Cause()
		if c.alsoAtNodes(&Pod{Nodes: test.nodes}); !slices.Equal(c.Also, test.want) {
			t.Errorf("%s: %q, want %q", name, c.Also, test.want)
		}
	}
}

// Of several volumes that wait each thing that does not pass by itself is answered, with the volume.
func TestEachVolumeIsAnswered(t *testing.T) {
	volume := func(name string, code arbiter.Reason, do string) PodVolume {
		return PodVolume{Name: name, Reasons: []Reason{{Code: string(code.Code), Message: name + " waits", Do: do}}}
	}
	x := &Pod{Volumes: []PodVolume{
		volume("a", arbiter.Reason{Code: arbiter.Attaching}, "wait"),
		volume("b", arbiter.Reason{Code: arbiter.HeldElsewhere}, "end it"),
		volume("c", arbiter.Reason{Code: arbiter.AttachFailed}, "mend it"),
		volume("d", arbiter.Reason{Code: arbiter.HeldElsewhere}, "end it"),
		volume("e", arbiter.Reason{Code: arbiter.AttachFailed}, "mend it"),
	}}
	c := NewWorld(Objects{}, noon()).volumeCause(x)
	if want := []string{"For volume c (AttachFailed): mend it"}; c.Do != "end it" || !slices.Equal(c.Also, want) {
		t.Errorf("%q and %q, want %q", c.Do, c.Also, want)
	}
}
