// SPDX-License-Identifier: Apache-2.0

package imports

import "testing"

// A list in the API server's form is read, with any further fields.
func TestParseLonghorn(t *testing.T) {
	got, err := parseLonghorn([]byte(`{"kind": "VolumeAttachmentList", "items": [
		{"metadata": {"name": "pvc-1"}, "spec": {"volume": "pvc-1", "attachmentTickets": {
			"longhorn-ui": {"id": "longhorn-ui", "type": "longhorn-api", "nodeID": "w1", "generation": 3, "parameters": {"disableFrontend": "false"}},
			"backup-controller-b": {"type": "backup-controller", "nodeID": "w2", "parameters": {}}}},
		 "status": {"attachmentTicketStatuses": {}}},
		{"metadata": {"name": "pvc-2"}, "spec": {"volume": "pvc-2"}}]}`), "longhorn-system")
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Key != "backup-controller-b" || got[0].Node != "w2" || got[1].Type != "longhorn-api" || got[1].Volume != "pvc-1" || got[1].Parameters["disableFrontend"] != "false" || got[1].Namespace != "longhorn-system" {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "[]", `{"items": {"a": 1}}`} {
		if list, err := parseLonghorn([]byte(bad), "longhorn-system"); err == nil {
			t.Errorf("%q is read as %+v", bad, list)
		}
	}
}
