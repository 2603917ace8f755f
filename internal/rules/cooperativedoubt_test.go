// SPDX-License-Identifier: Apache-2.0

package rules_test

import "testing"

func TestDoubtOfASharedVolumeInCooperativeMode(t *testing.T) {
	for name, lines := range map[string]string{"Standalone": "restart\nrun", "Cooperative": "cooperative\nrestart\nrun\nshow volume=pv-1\nstandalone"} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data access=RWX
pod db claim=data
bind pod=db node=worker-1
pod other claim=data
bind pod=other node=worker-2
run
kubelet worker-1 stuck=pv-1
kubelet worker-1 down
delete pod=db force
delete node=worker-1
kubelet worker-1
run
show volume=pv-1
kubelet worker-1 down
delete node=worker-1
`+lines+`
restart
kubelet worker-1
run
show volume=pv-1
`)
			if p := s.snapshot().Volume(s.volumeNamed("pv-1")).OnNode("worker-1"); p == nil || !p.HasAttachments() {
				t.Error("detached on the word of a kubelet that may have forgotten it")
			}
		})
	}
}

// The new machine's word detaches nothing.
func TestTicketAtAMachineThatIsReplacedInCooperativeMode(t *testing.T) {
	shared := "pv pv-1 claim=data access=RWX\nticket mine type=Manual node=worker-2 claims=data\nrun\n"
	target := "pv pv-1 claim=data\npolicy migrate liveMigration\npod vm claim=data\nreserve vm node=worker-1\nrun\n" +
		"ticket mine type=LiveMigration node=worker-2 claims=data\nrun\n"
	for name, test := range map[string]struct{ mode, volume, before, after string }{
		"Standalone, shared":                               {"", shared, "delete ticket=mine", ""},
		"Standalone, a migration's target":                 {"", target, "delete ticket=mine", ""},
		"Cooperative, shared, it ends before":              {"cooperative", shared, "delete ticket=mine", ""},
		"Cooperative, shared, it ends after":               {"cooperative", shared, "", "delete ticket=mine"},
		"Cooperative, a migration's target, it ends after": {"cooperative", target, "", "delete ticket=mine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, test.mode+`
by-name
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
`+test.volume+`
satisfied ticket=mine
show volume=pv-1
kubelet worker-2 down
node worker-2 ready=unknown
run
`+test.before+`
delete node=worker-2
run
node worker-2 new reporting=true
run
`+test.after+`
run
advance 10s
run
show volume=pv-1
`)
			if p := s.snapshot().Volume(s.volumeNamed("pv-1")).OnNode("worker-2"); p == nil || !p.HasAttachments() {
				t.Error("detached on the word of another machine, though the ticket's holder may write at the first one")
			}
		})
	}
}
