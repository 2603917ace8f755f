// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/trace"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

// podIn puts a pod of claim data in a phase.
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

// mountable says whether the controller knows by now that a volume may be mounted.
func (c *cluster) mountable(v ledger.VolumeID, node ledger.NodeName) bool {
	return arbiter.Arbiter{}.SafeToMount(c.observer.Snapshot(), v, node)
}

// A pod's way through the whole controller is a trace with the stages of its volume.
func TestPodIsTraced(t *testing.T) {
	c := newCluster(t, 4, "n1")
	spans := tracetest.NewInMemoryExporter()
	c.tracer = trace.New(sdk.NewSimpleSpanProcessor(spans), "test")
	c.disk("data")
	c.lead(1)
	c.podIn(corev1.PodPending, "")
	c.until("the pod is known", func() bool { return c.observer.Snapshot().Pod("uid-db") != nil })
	c.ticket("db", "n1", "data")
	c.until("the ticket is granted", func() bool { return c.granted("db") != nil })
	c.podIn(corev1.PodPending, "n1")
	data := ledger.VolumeID{Driver: driver, Handle: "data"}
	c.until("the volume is known to be reported", func() bool { return c.mountable(data, "n1") })
	c.podIn(corev1.PodRunning, "n1")
	c.until("the trace is sent", func() bool {
		return slices.ContainsFunc(spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name == "pod shop/db" })
	})
	var names []string
	for _, s := range spans.GetSpans() {
		if s.Name != "filter" && s.Name != "grant" && s.Name != "bind" { // the ticket may be over before it is looked at
			names = append(names, s.Name)
		}
	}
	if want := []string{"attach", "report", "mount", "pod shop/db"}; !slices.Equal(names, want) {
		t.Errorf("the spans are %v, want %v", names, want)
	}
}

// A bound pod whose volume the driver refuses is a metric by its reason, as long as somebody
// leads.
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
