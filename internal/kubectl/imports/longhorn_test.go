// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"strings"
	"testing"
)

// A list in the API server's form is read, with any further fields.
func TestParseLonghorn(t *testing.T) {
	got, failed, err := parseLonghorn([]byte(`{"kind": "VolumeAttachmentList", "items": [
		{"metadata": {"name": "pvc-1"}, "spec": {"volume": "pvc-1", "attachmentTickets": {
			"longhorn-ui": {"id": "longhorn-ui", "type": "longhorn-api", "nodeID": "w1", "generation": 3, "parameters": {"disableFrontend": "false"}},
			"backup-controller-b": {"type": "backup-controller", "nodeID": "w2", "parameters": {}}}},
		 "status": {"attachmentTicketStatuses": {}}},
		{"metadata": {"name": "pvc-2"}, "spec": {"volume": "pvc-2"}}]}`), "longhorn-system")
	if err != nil || len(got) != 2 || len(failed) != 0 {
		t.Fatalf("%+v, %+v, %v", got, failed, err)
	}
	if got[0].Key != "backup-controller-b" || got[0].Node != "w2" || got[1].Type != "longhorn-api" || got[1].Volume != "pvc-1" || got[1].Parameters["disableFrontend"] != "false" || got[1].Namespace != "longhorn-system" {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "[]", `{"items": {"a": 1}}`} {
		if list, _, err := parseLonghorn([]byte(bad), "longhorn-system"); err == nil {
			t.Errorf("%q is read as %+v", bad, list)
		}
	}
}

// Unreadable items are reported by name, and the rest is still read.
func TestParseLonghornOdd(t *testing.T) {
	got, failed, err := parseLonghorn([]byte(`{"items": [
		7,
		{"metadata": {"name": "a"}, "spec": {"attachmentTickets": "x"}},
		{"metadata": {"name": "b"}, "spec": {"volume": "b", "attachmentTickets": {
			"good": {"type": "longhorn-api", "nodeID": "w1"},
			"odd": {"type": "longhorn-api", "nodeID": "w1", "parameters": {"a": 1}}}}},
		{"metadata": {"name": "c"}, "spec": {"volume": "c", "attachmentTickets": {"good": {"type": "longhorn-api", "nodeID": "w1"}}}}]}`), "longhorn-system")
	if err != nil || len(got) != 2 || got[0].Volume != "b" || got[0].Key != "good" || got[1].Volume != "c" {
		t.Errorf("%+v, %v", got, err)
	}
	var from []string
	for _, f := range failed {
		if f.Err == nil || f.Ticket != nil {
			t.Errorf("%+v", f)
		}
		from = append(from, f.From)
	}
	if len(from) != 3 || !strings.Contains(from[0], " 1 of the list") || !strings.Contains(from[1], `"a"`) || !strings.HasSuffix(from[2], `"b" in namespace "longhorn-system", ticket "odd"`) {
		t.Errorf("%q", from)
	}
}
