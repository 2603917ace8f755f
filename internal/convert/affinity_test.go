// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
)

// The ledger's matching equals Kubernetes' own, for any terms and nodes.
func TestNodeAffinityTwin(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		for range 50 {
			selector, node := drawSelector(t), drawNode(t)
			want, _ := nodeaffinity.NewLazyErrorNodeSelector(selector).Match(node)
			fact := nodeAffinity(&corev1.VolumeNodeAffinity{Required: selector})
			if got := fact.Matches(ledger.NodeName(node.Name), node.Labels); got != want {
				t.Fatalf("%+v matches node %s with %v: %t, want %t", selector.NodeSelectorTerms, node.Name, node.Labels, got, want)
			}
		}
	})
}

func affinityValue() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b", "10", "9", "-3", "a_b", "b.", ""})
}

func affinityKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"zone", "example.com/size"})
}

func drawNode(t *rapid.T) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
		Labels: rapid.MapOf(affinityKey(), affinityValue()).Draw(t, "labels"),
	}}
}

func drawSelector(t *rapid.T) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: rapid.SliceOfN(drawRequirement(affinityKey()), 0, 2).Draw(t, "expressions"),
			MatchFields:      rapid.SliceOfN(drawRequirement(rapid.Just("metadata.name")), 0, 1).Draw(t, "fields"),
		})
	}
	return selector
}

func drawRequirement(key *rapid.Generator[string]) *rapid.Generator[corev1.NodeSelectorRequirement] {
	return rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		operator := rapid.SampledFrom([]corev1.NodeSelectorOperator{
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
			corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, "Like",
		}).Draw(t, "operator")
		least, most := 0, 2
		switch operator {
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			most = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "most")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			least, most = 1, rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "most")
		}
		return corev1.NodeSelectorRequirement{
			Key: key.Draw(t, "key"), Operator: operator, Values: rapid.SliceOfN(affinityValue(), least, most).Draw(t, "values"),
		}
	})
}

func TestNodeAffinityOfPersistentVolumes(t *testing.T) {
	zone := func(zone string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	for name, test := range map[string]struct {
		affinity *corev1.VolumeNodeAffinity
		want     bool
	}{
		"none":      {nil, true},
		"nothing":   {&corev1.VolumeNodeAffinity{}, true},
		"no terms":  {&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}, false},
		"its zone":  {zone("a"), true},
		"elsewhere": {zone("b"), false},
	} {
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: test.affinity}}
		fact, _ := PersistentVolume(pv)
		if got := fact.Affinity.Matches("n", Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}}).Labels); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	first, again, other := nodeAffinity(zone("a")), nodeAffinity(zone("a")), nodeAffinity(zone("b"))
	if first != again || first == other {
		t.Error("affinities that are equal differ, or others don't")
	}
}
