// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import "testing"

// A controller in Cooperative mode goes on to say what is in doubt of a shared volume while its Node does not exist.
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
			if p := s.snapshot().Volume(s.volumeNamed("pv-1")).NodeVolume("worker-1"); p == nil || !p.HasAttachments() {
				t.Error("detached on the word of a kubelet that may have forgotten it")
			}
		})
	}
}
