// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type cluster struct {
	*player
	nodes   map[ledger.NodeName]ledger.NodeState
	version int
	did     []string
}

func (c *cluster) set(n ledger.NodeState) {
	c.version++
	n.Version = strconv.Itoa(c.version)
	c.nodes[n.Name] = n
	c.ledger.Apply(c.now, n)
}

func (c *cluster) change(name ledger.NodeName, f func(*ledger.NodeState)) {
	n := c.nodes[name]
	f(&n)
	c.set(n)
}

func (c *cluster) runs(t *testing.T, id ledger.VolumeID, stop func(rules.Step) bool) bool {
	t.Helper()
	for range 12 {
		plan := rules.Arbiter{}.Plan(c.ledger.Snapshot(), id, c.now)
		for _, s := range plan.Steps {
			if stop(s) {
				return true
			}
			c.did = append(c.did, s.Kind.String()+" "+string(s.Node)+" "+s.Rule)
			switch s.Kind {
			case rules.WriteHold:
				h := s.Hold
				c.version++
				h.Version = strconv.Itoa(c.version + 1000)
				c.play(t, Do(s), replies(Done, ledger.HoldSeen{Volume: id, Hold: h}))
			case rules.DeleteHold:
				c.play(t, Do(s), replies(Done))
				c.ledger.Apply(c.now, ledger.HoldGone{Volume: id})
			case rules.Report, rules.Unreport, rules.ProveAbsent:
				n, found := c.nodes[s.Node]
				if !found {
					c.play(t, Do(s), replies(NotFound))
					continue
				}
				c.version++
				n.Version = strconv.Itoa(c.version)
				if s.Kind == rules.Report {
					n.Reported = []ledger.VolumeID{id}
				} else if s.Kind == rules.Unreport {
					n.Reported = nil
				}
				c.nodes[s.Node] = n
				c.play(t, Do(s), replies(Done, n))
			default:
				t.Fatalf("%+v", s)
			}
		}
		if len(plan.Steps) == 0 && !plan.Recheck.IsZero() && plan.Recheck.Sub(c.now) < time.Minute {
			c.now = plan.Recheck
		}
	}
	return false
}

func never(rules.Step) bool { return false }

func iscsiCluster(access ledger.Access) *cluster {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	c := &cluster{player: newPlayer(
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: access, Claim: key},
		ledger.Policy{Name: "m", Version: "1", Driver: "kubernetes.io/iscsi", LiveMigration: true, Says: ledger.FieldLiveMigration},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}), nodes: map[ledger.NodeName]ledger.NodeState{}}
	for _, name := range []string{"1", "2", "3"} {
		c.set(node("1", func(n *ledger.NodeState) {
			n.Name, n.UID, n.BootID, n.SystemUUID, n.ReadySince = ledger.NodeName("n"+name), "u"+name, "b"+name, "m"+name, 40
		}))
	}
	c.ledger.Apply(c.now, ledger.Complete{})
	return c
}

func inUse(n *ledger.NodeState)    { n.InUse = []ledger.VolumeID{iscsi} }
func notInUse(n *ledger.NodeState) { n.InUse = nil }

func (c *cluster) migrate(t *testing.T) ledger.Ticket {
	m := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "m"}, UID: "tm", Version: "1", Type: ledger.TypeLiveMigration, Node: "n2", Phase: ledger.TicketGranted,
		Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	c.ledger.Apply(c.now, m)
	return m
}

// n2 lost the volume by force and returns in the same boot.
func TestMigrationBackToBoot(t *testing.T) {
	c := iscsiCluster(ledger.AccessNode)
	c.ledger.Apply(c.now, iscsiPod("p", "n2"))
	c.runs(t, iscsi, never)
	c.change("n2", inUse)
	c.change("n2", func(n *ledger.NodeState) { silent(n); n.ReadySince = 50 })
	c.runs(t, iscsi, never)
	c.change("n2", func(n *ledger.NodeState) { tainted(n) })
	c.ledger.Apply(c.now, iscsiPod("r", "n1"))
	c.runs(t, iscsi, never)
	c.ledger.Apply(c.now, ledger.PodGone{UID: "p"})
	c.runs(t, iscsi, never)
	c.did = nil
	c.change("n2", func(n *ledger.NodeState) {
		n.Ready, n.OutOfService, n.ReadySince, n.InUse = ledger.ReadyTrue, false, 60, nil
	})
	c.runs(t, iscsi, never)
	m := c.migrate(t)
	c.runs(t, iscsi, never)
	c.ledger.Apply(c.now, iscsiPod("tgt", "n2"))
	c.runs(t, iscsi, never)
	c.change("n1", inUse)
	c.change("n2", inUse)
	c.runs(t, iscsi, never)
	c.did = nil
	// The kubelet drops the volume from its list before the unmount.
	c.ledger.Apply(c.now, ledger.TicketGone{ID: m.ID, UID: m.UID})
	c.ledger.Apply(c.now, ledger.PodGone{UID: "tgt"})
	c.ledger.Apply(c.now, ledger.PodGone{UID: "r"})
	c.change("n1", notInUse)
	c.change("n2", notInUse)
	c.ledger.Apply(c.now, iscsiPod("q", "n3"))
	if c.runs(t, iscsi, func(s rules.Step) bool { return s.Kind == rules.Report && s.Node == "n3" }) {
		t.Errorf("it is put into volumesAttached of n3; n2 may have it mounted in boot b2: %v; hold %+v", c.did, c.ledger.Snapshot().Volume(iscsi).Hold)
	}
}

// The restarted kubelet lists nothing.
func TestMigrationTakenOut(t *testing.T) {
	c := iscsiCluster(ledger.AccessNode)
	c.ledger.Apply(c.now, iscsiPod("p", "n1"))
	c.runs(t, iscsi, never)
	c.change("n1", inUse)
	m := c.migrate(t)
	c.ledger.Apply(c.now, iscsiPod("tgt", "n2"))
	c.runs(t, iscsi, never)
	if len(c.nodes["n2"].Reported) == 0 {
		t.Fatal(c.did)
	}
	c.change("n2", inUse)
	c.change("n2", func(n *ledger.NodeState) { n.Reported = nil }) // another component
	c.change("n2", notInUse)                                       // the kubelet restarts: it forgets the mount
	c.did = nil
	c.ledger.Apply(c.now, ledger.TicketGone{ID: m.ID, UID: m.UID})
	c.ledger.Apply(c.now, ledger.PodGone{UID: "tgt"})
	c.ledger.Apply(c.now, ledger.PodGone{UID: "p"})
	c.change("n1", notInUse)
	c.ledger.Apply(c.now, iscsiPod("q", "n3"))
	if c.runs(t, iscsi, func(s rules.Step) bool { return s.Kind == rules.Report && s.Node == "n3" }) {
		t.Errorf("it is put into volumesAttached of n3; n2 may have it mounted: %v", c.did)
	}
}
