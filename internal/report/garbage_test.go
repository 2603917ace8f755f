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

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Protobuf strings are not checked.
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
	return convert.Node(&seen)
}

func collected(l *ledger.Ledger) (series int, panicked any) {
	defer func() { panicked = recover() }()
	metrics := make(chan prometheus.Metric, 1<<16)
	newWorld(l.Snapshot).Collect(metrics)
	return len(metrics), nil
}

// A panic in Prometheus' goroutines would end every controller.
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

func TestAKubeletMakesNoTimeSeries(t *testing.T) {
	l := ledger.New()
	l.Apply(time.Unix(1, 0), fromKubelet(t, "kubernetes.io/csi/other^v")) // a node that lists an unattached volume has one
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
	l.Apply(time.Unix(1, 0), ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d7", Limit: ledger.NoLimit}}})
	if after, _ := collected(l); after != before+4 {
		t.Errorf("a registered driver in the status makes %d time series, want 2 at each of two nodes", after-before)
	}
}

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

// The volume is not counted after another boot, or while the node owes an answer.
func TestSaidByNodes(t *testing.T) {
	l := ledger.New()
	has := func(node ledger.NodeName, boot string, handles ...string) {
		l.Apply(time.Unix(1, 0), ledger.NodeState{Name: node, UID: "u", Version: "1", BootID: "b", Ready: ledger.ReadyTrue, Reporting: true})
		word := ledger.NodeWord{Node: node, UID: "w", Version: "1", NodeUID: "u", BootID: boot, Whole: true}
		for _, handle := range handles {
			word.Has = append(word.Has, ledger.VolumeID{Driver: "d", Handle: handle})
		}
		l.Apply(time.Unix(1, 0), word)
	}
	v := ledger.VolumeID{Driver: "d", Handle: "used"}
	l.Apply(time.Unix(1, 0), ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "a", Version: "1", Driver: "d", Node: "n1", Inline: v, Attached: true})
	l.Apply(time.Unix(1, 0), ledger.Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Inline: v}}})
	kept := ledger.VolumeID{Driver: "d", Handle: "kept"}
	l.Apply(time.Unix(1, 0), ledger.Attachment{Name: ledger.AttachmentName(kept, "n1"), UID: "b", Version: "1", Driver: "d", Node: "n1", Inline: kept, Attached: true})
	has("n1", "b", "used", "kept", "loose")
	has("n2", "before", "gone")
	has("n3", "b", "old")
	l.Apply(time.Unix(2, 0), ledger.NodeWord{Node: "n3", UID: "w", Version: "2", NodeUID: "u", BootID: "b", Look: 1, Whole: true, Has: []ledger.VolumeID{{Driver: "d", Handle: "old"}}})
	const want = `# HELP moorage_node_volumes_without_attachment Volumes that a node itself says it has staged, mounted or published, and that no VolumeAttachment attaches there. Only of nodes whose moorage-node owes no answer.
# TYPE moorage_node_volumes_without_attachment gauge
moorage_node_volumes_without_attachment{node="n1"} 1
moorage_node_volumes_without_attachment{node="n2"} 0
# HELP moorage_node_volumes_without_pod Volumes that a node itself says it has staged, mounted or published, and that no pod there uses. Only of nodes whose moorage-node owes no answer.
# TYPE moorage_node_volumes_without_pod gauge
moorage_node_volumes_without_pod{node="n1"} 2
moorage_node_volumes_without_pod{node="n2"} 0
`
	if err := testutil.CollectAndCompare(newWorld(l.Snapshot), strings.NewReader(want), "moorage_node_volumes_without_pod", "moorage_node_volumes_without_attachment"); err != nil {
		t.Error(err)
	}
}
