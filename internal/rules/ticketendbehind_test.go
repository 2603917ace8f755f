// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *script) endsBehind(t *testing.T, begins bool, lines ...string) {
	t.Helper()
	before := s.List(world.Nodes)
	s.behind = []world.Kind{world.Nodes}
	playOn(t, s, append([]string{"kubelet worker-2 down", "node worker-2 ready=unknown"}, lines...)...)
	if begins {
		s.beginBehind(before)
	}
}

func (s *script) tickAll(times int) {
	for range times {
		for _, id := range sortedKeys(s.Machines) {
			s.tick(s.Machines[id])
		}
	}
}

func staysForItsHolder(t *testing.T, s *script, v ledger.VolumeID) {
	t.Helper()
	var p *ledger.VolumeOnNode
	if volume := s.snapshot().Volume(v); volume != nil {
		p = volume.OnNode("worker-2")
	}
	if p == nil || !p.HasAttachments() && !(v.NoAttach() && p.MayBeThere(v)) {
		t.Error("detached from silent worker-2 on its kubelet's word, though the ticket's holder may write there")
	}
}

// The kubelet's word says nothing of the ticket's holder, and the holder could not be told: the volume
// stays.
func TestTicketEndSeenBeforeItsNodesSilence(t *testing.T) {
	for name, test := range map[string]struct {
		volume []string
		wanted bool // by a pod at another node
	}{
		"exclusive":                         {volume: []string{"pv pv-1 claim=data"}},
		"exclusive, and wanted":             {volume: []string{"pv pv-1 claim=data"}, wanted: true},
		"exclusive, with a detachDelay":     {volume: []string{"pv pv-1 claim=data", "policy all detachDelay=1h"}},
		"shared":                            {volume: []string{"pv pv-1 claim=data access=RWX"}},
		"shared, with a detachDelay":        {volume: []string{"pv pv-1 claim=data access=RWX", "policy all detachDelay=1h"}},
		"without VolumeAttachments":         {volume: []string{"pv pv-1 claim=data driver=kubernetes.io/iscsi"}},
		"shared, without VolumeAttachments": {volume: []string{"pv pv-1 claim=data driver=kubernetes.io/iscsi access=RWX"}},
	} {
		for order, begins := range map[string]bool{"in one term": false, "a leader begins": true} {
			t.Run(name+", "+order, func(t *testing.T) {
				s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\n")
				playOn(t, s, append(test.volume, "ticket mine type=Manual node=worker-2 claims=data", "run")...)
				s.endsBehind(t, begins, "delete ticket=mine")
				if test.wanted {
					playOn(t, s, "pod db claim=data", "reserve db node=worker-1")
				}
				playOn(t, s, "run", "advance 1m", "run")
				s.behind = nil
				s.flush()
				playOn(t, s, "run", "show volume=pv-1", "restart", "run")
				staysForItsHolder(t, s, s.volumeNamed("pv-1"))
			})
		}
	}
}

// It counts as in use: a kubelet knows no tickets.
func TestTicketOfWhatWasLeftAtASilentNode(t *testing.T) {
	for name, lines := range map[string]string{"the same leader": "", "the next leader": "restart\nrun"} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
ticket mine type=Manual node=worker-2 claims=data
run
fail detach volume=pv-1
csinode worker-2 gone
delete attachment=pv-1 node=worker-2
run
show volume=pv-1
kubelet worker-2 down
node worker-2 ready=unknown
run
delete ticket=mine
run
show volume=pv-1
`+lines+`
csinode worker-2 driver=disk limit=4
fail detach volume=pv-1 ok
run
show volume=pv-1
`)
			staysForItsHolder(t, s, s.volumeNamed("pv-1"))
		})
	}
}

// A new hold does not end the knowledge of the ticket's holder: the volume stays.
func TestHoldComesToANodeThatIsSilentAndSeemsReady(t *testing.T) {
	shared := "ticket mine type=Manual node=worker-2 claims=data"
	for name, test := range map[string]struct {
		pv, ticket string
		lines      []string
		ready      []string // before the node falls silent
	}{
		"a migration's target": {"pv pv-1 claim=data", "ticket mine type=LiveMigration node=worker-2 claims=data", []string{"delete pod=vm"},
			[]string{"policy migrate liveMigration", "pod vm claim=data", "reserve vm node=worker-1", "run"}},
		"a shared volume that a ticket wants detached": {"pv pv-1 claim=data access=RWX", shared, []string{"ticket fsck type=Manual claims=data detached"}, nil},
		"a shared volume that is exclusive by now":     {"pv pv-1 claim=data access=RWX", shared, []string{"pv once handle=h-pv-1"}, nil},
		"its hold was deleted, nobody leads":           {"pv pv-1 claim=data", shared, nil, nil},
		"the volume is shared by now":                  {"pv pv-1 claim=data", shared, []string{"delete pv=pv-1", "delete claim=data", "pv pv-2 claim=data2 handle=h-pv-1 access=RWX"}, nil},
	} {
		for order, begins := range map[string]bool{"in one term": false, "a leader begins": true} {
			t.Run(name+", "+order, func(t *testing.T) {
				s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\nnode worker-3 driver=disk limit=4\n")
				playOn(t, s, test.pv)
				playOn(t, s, test.ready...)
				playOn(t, s, test.ticket, "run", "holder mine satisfied")
				v := s.volumeNamed("pv-1")
				if name == "a migration's target" { // the pod at the source ends and is unmounted, without a leader
					s.DeletePod("vm.1")
					s.sync()
					s.tickAll(5)
					t.Log(s.command("show volume=pv-1"))
				}
				ends := []string{"delete ticket=mine"}
				if name == "its hold was deleted, nobody leads" && begins {
					ends = append(ends, "delete hold=pv-1")
				}
				s.endsBehind(t, begins, ends...)
				playOn(t, s, "show volume=disk^h-pv-1")
				playOn(t, s, test.lines...)
				playOn(t, s, "run", "advance 1m", "run")
				s.behind = nil
				s.flush()
				playOn(t, s, "run", "show volume=disk^h-pv-1", "restart", "run")
				staysForItsHolder(t, s, v)
			})
		}
	}
}

// A foreign change of the hold shows nothing of the node: the judge reports a detach.
func TestHoldOfASilentNodeThatSeemsReadyIsChangedByOthers(t *testing.T) {
	for which, pv := range map[string]string{
		"exclusive": "pv pv-1 claim=data", "shared": "pv pv-1 claim=data access=RWX",
		"without VolumeAttachments": "pv pv-1 claim=data driver=kubernetes.io/iscsi",
	} {
		for how, line := range map[string]string{"deleted": "delete hold=pv-1", "edited": "forge-hold pv-1 node=worker-2"} {
			for order, begins := range map[string]bool{"in one term": false, "a leader begins": true} {
				t.Run(which+", "+how+", "+order, func(t *testing.T) {
					s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\n")
					playOn(t, s, pv, "ticket mine type=Manual node=worker-2 claims=data", "run", "holder mine satisfied")
					s.endsBehind(t, begins, "delete ticket=mine")
					playOn(t, s, line, "run", "show volume=pv-1")
				})
			}
		}
	}
}

// The ticket is named beside too many pods: the next leader knows its holder.
func TestTicketBesideManyPods(t *testing.T) {
	for order, begins := range map[string]bool{"in one term, silence seen": false, "a leader begins": true} {
		t.Run(order, func(t *testing.T) {
			s := scriptAfter(t, "node worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\npv pv-1 claim=data\n")
			playOn(t, s, "ticket zmine type=Manual node=worker-2 claims=data", "run")
			for i := range 256 {
				playOn(t, s, fmt.Sprintf("pod p%03d claim=data", i), fmt.Sprintf("bind pod=p%03d node=worker-2", i))
			}
			playOn(t, s, "run", "holder zmine satisfied")
			if h := s.snapshot().Volume(s.volumeNamed("pv-1")).Hold; !h.NamesTicket() {
				t.Errorf("the hold lists %d requesters, and not the ticket", len(h.Requesters))
			}
			for i := range 256 {
				playOn(t, s, fmt.Sprintf("delete pod=p%03d", i))
			}
			s.tickAll(300)
			before := s.List(world.Nodes)
			if begins {
				s.behind = []world.Kind{world.Nodes}
			}
			playOn(t, s, "kubelet worker-2 down", "node worker-2 ready=unknown", "delete ticket=zmine")
			if begins {
				s.beginBehind(before)
			}
			playOn(t, s, "show volume=pv-1", "run", "advance 1m", "run")
			s.behind = nil
			s.flush()
			playOn(t, s, "run", "show volume=pv-1")
			staysForItsHolder(t, s, s.volumeNamed("pv-1"))
		})
	}
}

// Unused volumes are detached on the kubelet's word, also after a ticket or a change of leader.
func TestNodeThatShutsDownInGoodOrder(t *testing.T) {
	ticket := []string{"ticket mine type=Manual node=worker-2 claims=data", "run", "delete ticket=mine", "run", "advance 24h", "run"}
	for name, before := range map[string][]string{"nothing": nil, "a leader began": {"restart", "run", "advance 24h", "run"}, "a ticket had it": ticket} {
		for access, pv := range map[string]string{"exclusive": "pv pv-1 claim=data", "shared": "pv pv-1 claim=data access=RWX"} {
			for mode, how := range map[string]string{"": "", ", Cooperative": "cooperative"} {
				t.Run(access+", "+name+mode, func(t *testing.T) {
					s := scriptAfter(t, how+"\nnode worker-1 driver=disk limit=4\nnode worker-2 driver=disk limit=4\n"+pv+"\npod db claim=data\nreserve db node=worker-2\nrun\n")
					playOn(t, s, before...)
					s.DeletePod("db.1")
					s.tickAll(5)
					playOn(t, s, "show volume=pv-1", "node worker-2 ready=false", "run", "advance 10s", "run", "advance 1m", "run", "show volume=pv-1")
					if p := s.snapshot().Volume(s.volumeNamed("pv-1")).OnNode("worker-2"); p != nil && p.HasAttachments() {
						t.Error("a minute later it is attached still")
					}
					playOn(t, s, "advance 24h", "run", "show volume=pv-1")
					if v := s.snapshot().Volume(s.volumeNamed("pv-1")); v != nil && v.OnNode("worker-2") != nil && v.OnNode("worker-2").HasAttachments() {
						t.Error("a day later it is attached still")
					}
					playOn(t, s, "node worker-2 ready=true", "run", "pod again claim=data", "bind pod=again node=worker-2", "run", "delete pod=again", "run", "advance 10m", "run", "show volume=pv-1")
					if v := s.snapshot().Volume(s.volumeNamed("pv-1")); v != nil {
						if p := v.OnNode("worker-2"); p != nil && p.HasAttachments() {
							t.Error("and after the node is back, a pod has used it again, and ended in good order: it is attached still")
						}
					}
				})
			}
		}
	}
}
