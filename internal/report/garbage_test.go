// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// fromKubelet is the Node as it arrives when a kubelet has written it in protobuf, whose
// strings nobody checks, and the controller reads it in protobuf.
func fromKubelet(t *testing.T, inUse ...corev1.UniqueVolumeName) ledger.NodeState {
	t.Helper()
	sent := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "1"}, Status: corev1.NodeStatus{VolumesInUse: inUse}}
	raw, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var seen corev1.Node
	if err := seen.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	return translate.Node(&seen)
}

// collected is what a scrape shows of a ledger: how many series, or the panic that
// would end the process.
func collected(l *ledger.Ledger) (series int, panicked any) {
	defer func() { panicked = recover() }()
	metrics := make(chan prometheus.Metric, 1<<16)
	newWorld(l.Snapshot).Collect(metrics)
	return len(metrics), nil
}

// Prometheus collects in goroutines of its own, where a panic ends the process: one
// kubelet would end every controller at its next scrape.
func TestGarbageOfAKubeletDoesNotEndTheController(t *testing.T) {
	for name, event := range map[string]ledger.Event{
		"as it is read":     fromKubelet(t, "kubernetes.io/csi/\xff^vol"),
		"if it got through": ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "\xff", Limit: 1}}},
	} {
		l := ledger.New()
		l.Apply(time.Unix(1, 0), event)
		if series, panicked := collected(l); panicked != nil || series == 0 {
			t.Errorf("%s: the scrape shows %d series and panics: %v", name, series, panicked)
		}
	}
}

// What a kubelet says of drivers that no node registers makes no time series.
func TestAKubeletMakesNoTimeSeries(t *testing.T) {
	l := ledger.New()
	l.Apply(time.Unix(1, 0), fromKubelet(t, "kubernetes.io/csi/other^v")) // a node that lists what is not attached has one
	before, _ := collected(l)
	var many []corev1.UniqueVolumeName
	for i := range 1000 {
		many = append(many, corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/d%d^v", i)))
	}
	l = ledger.New()
	l.Apply(time.Unix(1, 0), fromKubelet(t, many...))
	if after, _ := collected(l); after != before {
		t.Errorf("one node's status makes %d time series", after-before)
	}
	// Another node registers one of the drivers.
	l.Apply(time.Unix(1, 0), ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d7", Limit: ledger.NoLimit}}})
	if after, _ := collected(l); after != before+4 {
		t.Errorf("a registered driver in the status makes %d time series, want 2 at each of two nodes", after-before)
	}
}

// What a kubelet says of drivers in its CSINode makes a few time series.
func TestACSINodeMakesFewTimeSeries(t *testing.T) {
	series := func(drivers int) int {
		l, d := ledger.New(), ledger.NodeDrivers{Node: "n1", Version: "1"}
		for i := range drivers {
			d.Drivers = append(d.Drivers, ledger.DriverOnNode{Name: fmt.Sprintf("d%04d", i), Limit: 1})
		}
		l.Apply(time.Unix(1, 0), d)
		n, _ := collected(l)
		return n
	}
	if ten, thousands := series(10), series(5000); thousands > ten+3*64 {
		t.Errorf("ten drivers make %d time series, thousands %d", ten, thousands)
	}
}

// Which nodes list volumes that are not attached there is shown, and how many.
func TestUnexplainedUseIsShown(t *testing.T) {
	l := ledger.New()
	for i, n := range []ledger.NodeName{"n1", "n2"} {
		var listed []ledger.VolumeID
		for j := range 2 {
			v := ledger.VolumeID{Driver: "d", Handle: fmt.Sprint(n, j)}
			listed = append(listed, v)
			if i == 1 {
				l.Apply(time.Unix(1, 0), ledger.Attachment{Name: ledger.AttachmentName(v, n), UID: v.Handle, Version: "1", Driver: "d", Node: n, Inline: v, Attached: true})
			}
		}
		l.Apply(time.Unix(1, 0), ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Reporting: true, InUse: listed})
	}
	const want = `# HELP moorage_volumes_in_use_unexplained Volumes that a node's kubelet reports in volumesInUse, and that have neither a VolumeAttachment nor a pod there. None where there are none.
# TYPE moorage_volumes_in_use_unexplained gauge
moorage_volumes_in_use_unexplained{node="n1"} 2
`
	if err := testutil.CollectAndCompare(newWorld(l.Snapshot), strings.NewReader(want), "moorage_volumes_in_use_unexplained"); err != nil {
		t.Error(err)
	}
}
