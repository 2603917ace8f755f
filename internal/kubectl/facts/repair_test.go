// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// What moorage-node does about a volume by itself is said before what a person may do.
func TestRepairSaid(t *testing.T) {
	has := NodeHas{Driver: "d", handle: "h"}
	order := v1alpha1.NodeUnstage{Driver: "d", Handle: "h", Number: 5}
	said := func(result v1alpha1.UnstageResult, unanswered bool, message string) []v1alpha1.NodeUnstaged {
		return []v1alpha1.NodeUnstaged{{Driver: "d", Handle: "h", Number: 5, Result: result, Unanswered: unanswered, Message: message}}
	}
	for name, test := range map[string]struct {
		orders []v1alpha1.NodeUnstage
		said   []v1alpha1.NodeUnstaged
		want   string
		waits  bool
	}{
		"nothing":         {nil, nil, "", false},
		"another volume":  {[]v1alpha1.NodeUnstage{{Driver: "d", Handle: "i"}}, nil, "", false},
		"ordered":         {[]v1alpha1.NodeUnstage{order}, nil, "is ordered to unstage it", true},
		"called":          {[]v1alpha1.NodeUnstage{order}, said(v1alpha1.UnstageCalling, true, ""), "has called the driver", true},
		"refused":         {nil, said(v1alpha1.UnstageRefused, false, "a pod's folder names it"), "has not: a pod's folder names it", false},
		"failed":          {nil, said(v1alpha1.UnstageFailed, true, "it is busy"), "it is busy", true},
		"unstaged before": {nil, said(v1alpha1.UnstageDone, false, ""), "", false},
	} {
		word := &v1alpha1.NodeVolumes{Spec: v1alpha1.NodeVolumesSpec{Unstage: test.orders}, Status: v1alpha1.NodeVolumesStatus{Unstaged: test.said}}
		if got, waits := repairSaid(word, has); test.want == "" && got != "" || !strings.Contains(got, test.want) || waits != test.waits {
			t.Errorf("%s: %q, %t; want %q, %t", name, got, waits, test.want, test.waits)
		}
	}
	if got, _ := repairSaid(nil, has); got != "" {
		t.Errorf("of a node that says nothing: %q", got)
	}
}
