// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// InUse is unknown without a Node with that status.
func TestInUseIsToldWhereItIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Objects)
		want   string // whether it is reported, and in use; -: unset
	}{
		"it is in use":             {func(*Objects) {}, "true true"},
		"it is unmounted":          {func(o *Objects) { o.Nodes[0].Status.VolumesInUse = nil }, "true false"},
		"nothing is attached yet":  {func(o *Objects) { o.Attachments, o.Nodes[0].Status = nil, corev1.NodeStatus{} }, "false -"},
		"the kubelet waits for it": {func(o *Objects) { o.Attachments, o.Nodes[0].Status.VolumesAttached = nil, nil }, "false -"},
		"its Node is gone":         {func(o *Objects) { o.Nodes = nil }, "- -"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid"}}
		o := Objects{Nodes: []*corev1.Node{node}}
		one(&o, node, "h")
		test.change(&o)
		nodes := NewWorld(o, noon()).Volume(ledger.VolumeID{Driver: driver, Handle: "h"}).Nodes
		if len(nodes) != 1 {
			t.Fatalf("%s: %+v", name, nodes)
		}
		told := func(is *bool) string {
			if is == nil {
				return "-"
			}
			return strconv.FormatBool(*is)
		}
		if got := told(nodes[0].Reported) + " " + told(nodes[0].InUse); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
