// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// inTree is the plugin of volumes without VolumeAttachments.
const (
	driver    = "csi.sim"
	inTree    = "kubernetes.io/iscsi"
	namespace = "ns"
)

const tick = time.Millisecond

// Sim is one run. It is not safe for parallel use; runs are independent.
type Sim struct {
	config Config
	rng    *rand.Rand
	w      *world.World
	logs   [world.Kinds + 1][]world.Change
	faulty bool // faults and users may act

	net         *network
	lease       lease
	controllers []*controller
	schedulers  []*scheduler
	knownAt     [world.Kinds + 1]int // the part of each kind's log that all controllers knew at once
	kubelets    []*kubelet
	attacher    sidecar
	disks       *diskService
	cluster     *cluster
	users       *users
	faults      *faults
	manager     *manager // nil in Standalone mode
	agents      *agents  // nil without moorage-node

	scheduler map[string]string // a pod's scheduler, by UID
	// strays are VolumeAttachments, by UID, made for an ended kube-controller-manager: its successor lists
	// only at its start, and does not know them.
	strays map[string]bool

	names       []ledger.NodeName
	firstClaims []string
	all         []process
	kept        []kept            // of each keeper in all
	moved       int               // the number of events that may touch all processes
	rebooted    []ledger.NodeName // nodes whose machines have booted since the rest began (reboot)
	doubt       bool              // check kept offers against fresh ones each time
	menu        menu
	trace       []Action
	notes       func(string) // nil: no listener
}

func New(config Config) *Sim {
	s := &Sim{
		config: config, rng: rand.New(rand.NewPCG(config.Seed, 0x6d6f6f72616765)), w: world.New(),
		faulty:    true,
		scheduler: map[string]string{}, strays: map[string]bool{},
	}
	s.w.Stamps, s.w.Judge.Cooperative = config.Stamps, config.Cooperative
	s.w.Forgetful, s.w.Judge.Leases, s.w.Judge.Binds = config.Forgetful, config.Leases, true
	s.w.Judge.Alone = config.Schedulers == 1 && !config.Foreign && !config.Vanishing
	s.w.Judge.Shrinks = config.NodeFaults && config.Limit != ledger.NoLimit
	s.net, s.disks = &network{s: s}, &diskService{s: s}
	s.cluster, s.users, s.faults = newCluster(s), newUsers(s), &faults{s: s, cutIn: map[ledger.NodeName]int{}}
	s.furnish()
	if config.Spoken {
		s.agents = &agents{s: s}
		s.agents.begin()
	}
	s.all = s.processes()
	s.kept = make([]kept, len(s.all))
	s.collect()
	return s
}

func (s *Sim) Now() time.Time { return s.w.Now }

func (s *Sim) collect() {
	for _, c := range s.w.Log {
		s.logs[c.Kind] = append(s.logs[c.Kind], c)
	}
	s.w.Log = s.w.Log[:0]
}

func (s *Sim) note(format string, args ...any) {
	if s.notes != nil {
		s.notes(fmt.Sprintf(format, args...))
	}
}

func (s *Sim) processes() []process {
	list := []process{s.net, s.disks, s.attacher, s.cluster, s.users, s.faults}
	if s.manager != nil {
		list = append(list, s.manager)
	}
	if s.agents != nil {
		list = append(list, s.agents)
	}
	for _, c := range s.controllers {
		list = append(list, c)
	}
	for _, k := range s.schedulers {
		list = append(list, k)
	}
	for _, k := range s.kubelets {
		list = append(list, k)
	}
	return list
}

func (s *Sim) named(who string) process {
	switch who {
	case "api", "net":
		return s.net
	case "disks":
		return s.disks
	case "attacher":
		return s.attacher
	case "cluster":
		return s.cluster
	case "user":
		return s.users
	case "fault":
		return s.faults
	}
	if s.agents != nil && who == "agents" {
		return s.agents
	}
	if s.manager != nil && who == s.manager.name {
		return s.manager
	}
	for _, c := range s.controllers {
		if c.name == who {
			return c
		}
	}
	for _, k := range s.schedulers {
		if k.name == who {
			return k
		}
	}
	for _, k := range s.kubelets {
		if k.name == who {
			return k
		}
	}
	return nil
}

// Do is false, and changes nothing, if the action is impossible.
func (s *Sim) Do(a Action) bool {
	if a.Who == "clock" {
		d, err := time.ParseDuration(a.Arg)
		if err != nil || s.manager != nil && s.manager.pressed() {
			return false
		}
		if s.manager != nil {
			if due := s.manager.due(); !due.IsZero() {
				d = min(d, due.Sub(s.Now()))
			}
		}
		s.pass(d)
		s.trace = append(s.trace, a)
		return true
	}
	p := s.named(a.Who)
	if p == nil {
		return false
	}
	s.touch(a) // before its end: an answered message is gone
	if !p.act(a.What, a.Arg) {
		return false
	}
	s.trace = append(s.trace, a)
	s.pass(tick)
	s.collect()
	s.audit()
	s.noteKnown()
	return true
}

func (s *Sim) pass(d time.Duration) {
	before := s.w.Now
	if d > tick {
		s.moved++
		s.readLeases() // and at the end: a change in between is seen
	}
	s.w.Now = before.Add(d)
	for _, k := range s.kubelets {
		_, exists := s.w.Node(k.node) // a Lease goes with its Node
		switch {
		case !k.awake() || !exists:
		case k.machine.Renewed.Equal(before) && k.working():
			k.machine.Renewed = s.w.Now
		default:
			k.process().Renew()
		}
	}
	if d > tick {
		s.readLeases()
	}
}

func (s *Sim) readLeases() {
	for _, c := range s.controllers {
		if c.awake() && c.observer.synced() {
			c.observer.readLeases(s.net.down)
		}
	}
	for _, k := range s.schedulers {
		if k.awake() && k.observer.synced() {
			k.observer.readLeases(s.net.down)
		}
	}
}

func (s *Sim) audit() {
	for _, c := range s.controllers {
		if c.role != leading || c.audited == c.observer.changes {
			continue
		}
		c.audited = c.observer.changes
		s.tell(c, c.arbiter.Audit(c.observer.snapshot(), s.Now()))
	}
}

// A volume may seem reported early to a process with an old list of attachments; and
// kube-controller-manager may attach a volume twice.
func (s *Sim) tell(c *controller, found []rules.Violation) {
	for _, v := range found {
		switch {
		case v.Invariant == "I5" && c.observer.at[world.Attachments] < len(s.logs[world.Attachments]):
		case v.Invariant == "I1" && s.config.Cooperative:
		default:
			s.fault("audit: %s", v)
		}
	}
}

func (s *Sim) offers() *menu {
	s.menu.reset()
	if s.doubt && !s.keeps() {
		s.fault("other offers are kept than there are")
	}
	for i, p := range s.all {
		if k, keeps := p.(keeper); keeps {
			s.offerKept(k, &s.kept[i])
		} else {
			p.offer(&s.menu)
		}
	}
	return &s.menu
}

func (s *Sim) due() time.Time {
	var t time.Time
	for _, p := range s.all {
		t = earlier(t, p.due())
	}
	return t
}

func (s *Sim) nodeNames() []ledger.NodeName {
	if len(s.names) != len(s.kubelets) {
		s.names = nil
		for _, k := range s.kubelets {
			s.names = append(s.names, k.node)
		}
	}
	return s.names
}

func (s *Sim) nodeID(n ledger.NodeName) string {
	node, _ := s.w.Drivers(n)
	for _, d := range node.Drivers {
		if d.Name == driver {
			return d.NodeID
		}
	}
	return ""
}

func volumeArg(v ledger.VolumeID) string {
	if v.Driver == driver {
		return v.Handle
	}
	return v.Driver + "^" + v.Handle
}

func volumeOf(arg string) ledger.VolumeID {
	if d, handle, other := strings.Cut(arg, "^"); other {
		return ledger.VolumeID{Driver: d, Handle: handle}
	}
	return ledger.VolumeID{Driver: driver, Handle: arg}
}

func stepText(s rules.Step) string {
	text := fmt.Sprintf("%s %s %s", s.Kind, volumeArg(s.Volume), s.Node)
	if s.Kind == rules.WriteHold {
		text += fmt.Sprintf(" %s next=%s transitions=%d", s.Hold.State, s.Hold.Next.Node, s.Hold.Transitions)
	}
	if s.Rule != "" {
		text += " by " + s.Rule
	}
	return text
}

func (s *Sim) broken() []string { return s.w.Judge.Faults }

func (s *Sim) Trace() []Action { return slices.Clone(s.trace) }
