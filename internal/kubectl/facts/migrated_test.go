// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Present nodes lack the old zone label: the translation counts, as in kube-scheduler.
func TestAffinityOfAMigratedVolume(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelFailureDomainBetaZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
		}}}}}}}
	for zone, want := range map[string]bool{"a": true, "b": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"topology.ebs.csi.aws.com/zone": zone}}}
		if got := inAffinity(pv, n); got != want {
			t.Errorf("a node in zone %s can use it: %t, want %t", zone, got, want)
		}
	}
}
