// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

func (c *cluster) podIn(phase corev1.PodPhase, node string) {
	c.t.Helper()
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-db"},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}},
	}
	c.Get("pods", "shop", "db", &pod)
	pod.Spec.NodeName, pod.Status.Phase = node, phase
	c.Put("pods", &pod)
}

func TestStuckPodIsMeasured(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.metrics = report.NewMetrics(ledger.New().Snapshot)
	c.attachFails.Store(&storagev1.VolumeError{Message: "no"})
	c.disk("data")
	stop := c.lead(1)
	c.podIn(corev1.PodPending, "n1")
	measured := func(want string, names ...string) bool {
		return testutil.GatherAndCompare(c.metrics.Registry, strings.NewReader(want), names...) == nil
	}
	c.until("the pod is measured", func() bool {
		return measured(`
# HELP moorage_pods_waiting Pods with a node that wait for their volumes, by reason.
# TYPE moorage_pods_waiting gauge
moorage_pods_waiting{reason="AttachFailed"} 1
# HELP moorage_leading 1 while this process decides and writes, and 0 while it stands by.
# TYPE moorage_leading gauge
moorage_leading 1
`, "moorage_pods_waiting", "moorage_leading")
	})
	stop()
	if !measured(`
# HELP moorage_leading 1 while this process decides and writes, and 0 while it stands by.
# TYPE moorage_leading gauge
moorage_leading 0
`, "moorage_pods_waiting", "moorage_leading") {
		t.Error("it measures on after its term")
	}
}
