// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

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

const leaves = `fail detach volume=pv-1
csinode worker-1 gone
delete attachment=pv-1 node=worker-1
run
`

const leftAtReplaced = detachFails + leaves

const machineReplaced = `kubelet worker-1 down
delete pod=db force
delete node=worker-1
node worker-1 new reporting=true
csinode worker-1 driver=disk limit=4
fail detach volume=pv-1 ok
pod other claim=data
reserve other node=worker-2
run
`

const detachedByHand = `kubelet worker-1 machine=id-worker-1 off
kubelet worker-1 machine=id-worker-1 unstages=pv-1 detaches
`

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

// It stays: the attach to the other machine shows nothing of the first.
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

// A detach by hand and the deletion of the VolumeHold, as its message asks, end the wait.
func TestLeftHoldIsDeletedAsItAsks(t *testing.T) {
	s := scriptAfter(t, leftAtReplaced+machineReplaced+`show volume=pv-1
`+detachedByHand+`delete hold=pv-1
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

const handledAsAsked = `
advance 7m
run
show volume=pv-1
` + detachedByHand + `delete hold=pv-1
run
advance 24h
run
delete hold=pv-1
run
advance 24h
run
show volume=pv-1
`

func TestLeftHoldWithFencesIsDeletedAsItAsks(t *testing.T) {
	t.Run("of another node, long ago", func(t *testing.T) {
		s := scriptAfter(t, `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
node worker-3 driver=disk limit=4
pv pv-1 claim=data
pod first claim=data
bind pod=first node=worker-3
run
node worker-3 ready=unknown
delete pod=first force
advance 7m
run
pod db claim=data
bind pod=db node=worker-1
run
node worker-3 ready=true
run
`+leaves+machineReplaced+handledAsAsked)
		if s.heldAt("pv-1") != "worker-2" {
			t.Errorf("detached by hand, its hold deleted twice, and every node is well: it is held at %s", s.heldAt("pv-1"))
		}
	})
	t.Run("of the machine itself", func(t *testing.T) {
		s := scriptAfter(t, leftAtReplaced+`
fail attach volume=pv-1
csinode worker-1 driver=disk limit=4
run
kubelet worker-1 down
delete pod=db force
delete node=worker-1
run
node worker-1 new reporting=true
fail attach volume=pv-1 ok
fail detach volume=pv-1 ok
pod other claim=data
bind pod=other node=worker-1
run
advance 7m
run
restart
run
`+handledAsAsked)
		if !s.arb.SafeToMount(s.snapshot(), s.volumeNamed("pv-1"), "worker-1") {
			t.Error("detached by hand, its hold deleted twice, and every node is well: the pod waits still")
		}
	})
}

// It ends the doubt about the first machine's mount, though no time forces a detach.
func TestLeftHoldIsDeletedWhereNoTimeForces(t *testing.T) {
	s := scriptAfter(t, "untimed\n"+leftAtReplaced+machineReplaced+`explain pod=other
`+detachedByHand+`delete hold=pv-1
run
explain pod=other
advance 24h
run
delete hold=pv-1
run
advance 24h
run
show volume=pv-1
`)
	if s.heldAt("pv-1") != "worker-2" {
		t.Errorf("two days after it was detached by hand, and its hold deleted, it is held at %s", s.heldAt("pv-1"))
	}
}

// The deletion does not restart the transitions while there is a leader.
func TestTransitionsOfALeftHoldThatIsDeleted(t *testing.T) {
	scriptAfter(t, `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
pod first claim=data
bind pod=first node=worker-2
run
delete pod=first
run
pod second claim=data
bind pod=second node=worker-1
run
delete pod=second
run
pod first claim=data
bind pod=first node=worker-2
run
delete pod=first
run
pod db claim=data
bind pod=db node=worker-1
run
`+leaves+machineReplaced+`advance 7m
run
show volume=pv-1
`+detachedByHand+`delete hold=pv-1
run
show volume=pv-1
`)
}

func TestLeftAndSharedAtAMachineThatIsReplaced(t *testing.T) {
	for name, how := range map[string]string{"by its own name": "", "by its node's name": "by-name\n"} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, how+leftAtReplaced+`
kubelet worker-1 off
delete pod=db force
delete claim=data
delete pv=pv-1
pv pv-2 claim=data2 handle=h-pv-1 access=RWX
run
fail attach volume=pv-2
csinode worker-1 driver=disk limit=4
run
delete node=worker-1
run
node worker-1 new reporting=true
fail attach volume=pv-2 ok
fail detach volume=pv-2 ok
run
pod a claim=data2
bind pod=a node=worker-1
run
show volume=pv-2
explain pod=a
advance 24h
run
plan volume=pv-2
explain pod=a
`)
			p, _ := s.podNamed("a")
			need := rules.PodRequest(s.snapshot(), &p).Needs[0]
			v := s.arb.Explain(s.snapshot(), need, ledger.NodeName("worker-1"), s.Now)
			if !v.Allowed() && v.First().Code == rules.NotReported {
				t.Errorf("a day later pod a waits, nothing is planned, and it is told: %s", v.First().Message())
			}
			for _, v := range s.arb.AuditAtRest(s.snapshot(), s.Now) {
				t.Errorf("at rest: %s", v)
			}
		})
	}
}

// The promised ticket gets the volume, not a pod that was bound past all rules since.
func TestPromiseOfALeftHoldThatIsDeleted(t *testing.T) {
	const before = leftAtReplaced + `
kubelet worker-1 down
delete pod=db force
node worker-3 driver=disk limit=4
pod other claim=data
advance 1h
`
	const after = `
ticket mine type=Manual node=worker-3 claims=data
run
bind pod=other node=worker-2
run
show volume=pv-1
` + detachedByHand
	const replaced = "delete node=worker-1\nnode worker-1 new reporting=true\ncsinode worker-1 driver=disk limit=4\nfail detach volume=pv-1 ok\n"
	s := scriptAfter(t, before+replaced+after+"delete hold=pv-1\nrun\nshow volume=pv-1")
	if s.heldAt("pv-1") != "worker-3" {
		t.Errorf("it was granted to a ticket at worker-3, and is held at %s", s.heldAt("pv-1"))
	}
}
