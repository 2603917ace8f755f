// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import "testing"

// detachFails has a pod use a volume at worker-1 that its driver will not detach.
const detachFails = `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
pod db claim=data
bind pod=db node=worker-1
run
fail detach volume=pv-1
`

// leftAtReplaced has the volume left there once its driver has gone from the node, of which a test replaces the machine.
const leftAtReplaced = detachFails + `
csinode worker-1 gone
delete attachment=pv-1 node=worker-1
run
`

// otherWants has another pod want the volume at worker-2, and lets the times of all rules of force pass.
const otherWants = `
run
show volume=pv-1
pod other claim=data
reserve other node=worker-2
run
show volume=pv-1
advance 7m
run
advance 7m
run
show volume=pv-1
`

// What was left at a machine, and is being attached anew there when another machine takes its node's name, stays where it is: that
// the VolumeAttachment is attached to the other machine shows nothing of the first one.
func TestAttachedAnewAtAMachineThatIsReplaced(t *testing.T) {
	for name, lines := range map[string][2]string{
		"by its own name":             {"", ""},
		"by its own name, restart":    {"", "restart"},
		"by its node's name":          {"by-name", ""},
		"by its node's name, restart": {"by-name", "restart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, lines[0]+"\n"+leftAtReplaced+`fail attach volume=pv-1
csinode worker-1 driver=disk limit=4
run
show volume=pv-1
kubelet worker-1 down
delete pod=db force
delete node=worker-1
run
node worker-1 new reporting=true
fail attach volume=pv-1 ok
fail detach volume=pv-1 ok
`+lines[1]+"\n"+otherWants)
			if s.heldAt("pv-1") != "worker-1" {
				t.Errorf("held at %s, and attached to %v", s.heldAt("pv-1"), s.Disks.At[s.volumeNamed("pv-1")])
			}
		})
	}
}

// What was left at a node where its detach failed leaves it, too, once its PersistentVolume is made again for many nodes; and a ticket that
// keeps it detached does not have it before.
func TestLeftAndSharedByNow(t *testing.T) {
	for name, lines := range map[string]string{
		"nothing else": "",
		"its hold has something to say": `
fail attach volume=pv-2
csinode worker-1 driver=disk limit=4
run
show volume=pv-2
fail attach volume=pv-2 ok
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, leftAtWorker1+`
csinode worker-1 gone
delete pod=db force
run
show volume=pv-1
delete claim=data
delete pv=pv-1
pv pv-2 claim=data2 handle=h-pv-1 access=RWX
run
show volume=pv-2
`+lines+`
fail detach volume=pv-2 ok
csinode worker-1 driver=disk limit=4
run
show volume=pv-2
ticket fsck type=Manual claims=data2 detached
run
satisfied ticket=fsck
advance 24h
run
show volume=pv-2
satisfied ticket=fsck
`)
			if at := s.Disks.At[s.volumeNamed("pv-2")]; len(at) > 0 {
				t.Errorf("a day after nothing is in its way, and though a ticket keeps it detached, it is attached to %v", at)
			}
		})
	}
}

// Whoever has detached by hand what was left at a machine before, and deletes the VolumeHold as its words ask, ends the wait.
func TestLeftHoldIsDeletedAsItAsks(t *testing.T) {
	s := scriptAfter(t, leftAtReplaced+`kubelet worker-1 down
delete pod=db force
delete node=worker-1
node worker-1 new reporting=true
csinode worker-1 driver=disk limit=4
fail detach volume=pv-1 ok
pod other claim=data
reserve other node=worker-2
run
show volume=pv-1
kubelet worker-1 machine=id-worker-1 off
kubelet worker-1 machine=id-worker-1 unstages=pv-1 detaches
delete hold=pv-1
run
show volume=pv-1
advance 24h
run
delete hold=pv-1
run
show volume=pv-1
`)
	if s.heldAt("pv-1") != "worker-2" {
		t.Errorf("detached by hand, and its hold deleted, as it asks for: it is held at %s", s.heldAt("pv-1"))
	}
}
