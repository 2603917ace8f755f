// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const ticketEnds = `ticket mine type=Manual node=worker-2 claims=data
run
kubelet worker-2 down
node worker-2 ready=unknown
run
delete ticket=mine
`

// A leader that began during the silence does not know the node's tickets, nor does the next.
func TestHoldComesToASilentNode(t *testing.T) {
	for name, lines := range map[string]string{
		"a migration's target": `
pv pv-1 claim=data
policy migrate liveMigration
pod vm claim=data
reserve vm node=worker-1
run
ticket move type=LiveMigration node=worker-2 claims=data
run
kubelet worker-2 down
node worker-2 ready=unknown
run
delete ticket=move
run
restart
run
show volume=pv-1
delete pod=vm
run
`,
		"a shared volume that a ticket wants detached": `
pv pv-1 claim=data access=RWX
` + ticketEnds + `run
restart
run
show volume=pv-1
ticket fsck type=Manual claims=data detached
run
`,
		"a shared volume that is exclusive by now": `
pv pv-1 claim=data access=RWX
` + ticketEnds + `run
restart
run
show volume=pv-1
pv once handle=h-pv-1
run
`,
		"its hold was deleted": `
pv pv-1 claim=data
` + ticketEnds + `delete hold=pv-1
restart
run
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
node worker-3 driver=disk limit=4
`+lines+`
show volume=pv-1
`)
			t.Log(s.command("restart"), s.command("run"))
			staysForItsHolder(t, s, s.volumeNamed("pv-1"))
		})
	}
}

func TestHoldComesToASilentNodeWithoutAttachments(t *testing.T) {
	for name, lines := range map[string]string{
		"shared, a ticket wants it detached": "pv pv-1 claim=data driver=kubernetes.io/iscsi handle=1.2.3.4:iqn:1 access=RWX\n" + ticketEnds + "run\nrestart\nrun\nshow volume=pv-1\nticket fsck type=Manual claims=data detached\nrun",
		"exclusive, its hold was deleted":    "pv pv-1 claim=data driver=kubernetes.io/iscsi handle=1.2.3.4:iqn:1\n" + ticketEnds + "delete hold=pv-1\nrestart\nrun\nshow volume=pv-1",
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\n"+lines)
			t.Log(s.command("restart"), s.command("run"))
			n, _ := s.Node("worker-2")
			t.Log(s.command("show volume=kubernetes.io/iscsi^1.2.3.4:iqn:1"))
			if len(n.Reported) == 0 {
				t.Error("taken out of volumesAttached of silent worker-2 on its kubelet's word, though the ticket's holder may write there")
			}
		})
	}
}

// It does not rely on the kubelet's word, even after the hold has dropped the ticket.
func TestHoldNamesATicketAtASilentNodeNoMore(t *testing.T) {
	for name, lines := range map[string]string{
		"it is deleted":               "delete hold=pv-1\nrun",
		"it is edited":                "forge-hold pv-1 node=worker-2\nrun",
		"it is edited, names no node": "forge-hold pv-1\nrun",
		"the volume is shared by now": "delete pv=pv-1\ndelete claim=data\npv pv-2 claim=data2 handle=h-pv-1 access=RWX\nrun",
		"nothing":                     "",
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
`+ticketEnds+`run
restart
run
show volume=disk^h-pv-1
`+lines+`
show volume=disk^h-pv-1
`)
			staysForItsHolder(t, s, ledger.VolumeID{Driver: "disk", Handle: "h-pv-1"})
		})
	}
}
