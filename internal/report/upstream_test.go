// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestUpstreamsMetrics(t *testing.T) {
	l, now := ledger.New(), time.Unix(1000, 0)
	v := ledger.VolumeID{Driver: "d", Handle: "h"}
	l.Apply(now, ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Inline: v, Access: ledger.AccessMany}}})
	l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(v, "n2"), UID: "a", Version: "1", Driver: "d", Node: "n2", Inline: v, Attached: true})
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "t"}
	l.Apply(now, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{iscsi}})
	m := report.NewMetrics(l.Snapshot)
	for _, rule := range []string{rules.OutOfService, rules.AfterPodGone, rules.AfterUnreachable} {
		m.Step(rules.Step{Kind: rules.DeleteAttachment, Rule: rule}, nil)
	}
	m.Attached("d", 2*time.Second)
	want := `
# HELP attach_detach_controller_attachdetach_controller_forced_detaches Number of times the A/D Controller performed a forced detach
# TYPE attach_detach_controller_attachdetach_controller_forced_detaches counter
attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1
attach_detach_controller_attachdetach_controller_forced_detaches{reason="timeout"} 2
# HELP attachdetach_controller_total_volumes Number of volumes in A/D Controller
# TYPE attachdetach_controller_total_volumes gauge
attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:d",state="actual_state_of_world"} 1
attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:d",state="desired_state_of_world"} 1
attachdetach_controller_total_volumes{plugin_name="kubernetes.io/iscsi",state="actual_state_of_world"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "attachdetach_controller_total_volumes",
		"attach_detach_controller_attachdetach_controller_forced_detaches"); err != nil {
		t.Error(err)
	}
	found, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range found {
		if family.GetName() != "storage_operation_duration_seconds" {
			continue
		}
		labels := map[string]string{}
		for _, label := range family.Metric[0].Label {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["volume_plugin"] != "kubernetes.io/csi:d" || labels["operation_name"] != "volume_attach" || labels["status"] != "success" ||
			labels["migrated"] != "false" || family.Metric[0].Histogram.GetSampleSum() != 2 {
			t.Errorf("an attach of 2 s is told as %v", family.Metric[0])
		}
		return
	}
	t.Error("no storage_operation_duration_seconds")
}
