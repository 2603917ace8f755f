// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type world struct {
	snapshot func() ledger.Snapshot
	used     *prometheus.Desc
	reserved *prometheus.Desc
	limit    *prometheus.Desc
	tickets  *prometheus.Desc
	have     *prometheus.Desc
	oldest   *prometheus.Desc
	dropped  *prometheus.Desc
	listed   *prometheus.Desc
	podless  *prometheus.Desc
	loose    *prometheus.Desc
	volumes  *prometheus.Desc
	states   *prometheus.Desc
	fenced   *prometheus.Desc
	braked   *prometheus.Desc
	cutOff   *prometheus.Desc
	underWay *prometheus.Desc
	workers  *prometheus.Desc
	total    *prometheus.Desc
}

func newWorld(snapshot func() ledger.Snapshot) *world {
	return &world{
		snapshot: snapshot,
		used: prometheus.NewDesc("moorage_slots_used",
			"Slots of a driver that are taken at a node: attached, attaching, detaching, reserved or unknown.", []string{"node", "driver"}, nil),
		reserved: prometheus.NewDesc("moorage_slots_reserved",
			"Slots among moorage_slots_used that are promised to pods and tickets, and that nothing is attached in yet.", []string{"node", "driver"}, nil),
		limit: prometheus.NewDesc("moorage_slots_limit",
			"Slots of a driver that a node has, by its CSINode and the policy; none where there is no limit.", []string{"node", "driver"}, nil),
		tickets: prometheus.NewDesc("moorage_tickets",
			"VolumeTickets by type, phase and the reason of their condition Granted.", []string{"type", "phase", "reason"}, nil),
		have: prometheus.NewDesc("moorage_tickets_satisfied",
			"VolumeTickets that have their volumes attached at their node, by type.", []string{"type"}, nil),
		oldest: prometheus.NewDesc("moorage_tickets_oldest_pending_timestamp_seconds",
			"When the oldest ticket was made that is neither granted nor refused, in seconds since the epoch, by type and the reason that it waits for.", []string{"type", "reason"}, nil),
		dropped: prometheus.NewDesc("moorage_volumehold_fields_dropped",
			"1 while the API server drops fields from VolumeHolds: their CustomResourceDefinition is older than this controller.", nil, nil),
		listed: prometheus.NewDesc("moorage_volumes_in_use_unexplained",
			"Volumes that a node's kubelet reports in volumesInUse, and that have neither a VolumeAttachment nor a pod there. None where there are none.", []string{"node"}, nil),
		podless: prometheus.NewDesc("moorage_node_volumes_without_pod",
			"Volumes that a node itself says it has staged, mounted or published, and that no pod there uses. Only of nodes whose moorage-node owes no answer.", []string{"node"}, nil),
		loose: prometheus.NewDesc("moorage_node_volumes_without_attachment",
			"Volumes that a node itself says it has staged, mounted or published, and that no VolumeAttachment attaches there. Only of nodes whose moorage-node owes no answer.", []string{"node"}, nil),
		volumes: prometheus.NewDesc("moorage_volumes",
			"Volumes known.", nil, nil),
		states: prometheus.NewDesc("moorage_volumes_by_state",
			"Volumes by the state of their VolumeHold, and what it waits for. Attached or Free for volumes that many nodes may have.", []string{"state", "reason"}, nil),
		fenced: prometheus.NewDesc("moorage_fenced_volumes",
			"Volumes that were taken, or are being taken, from a node by a rule of force, and that it may not have again before it is known to be in order. None where there are none.", []string{"node"}, nil),
		braked: prometheus.NewDesc("moorage_nodes_unreachable_held",
			"Nodes that are unreachable in a zone where an AttachPolicy's afterUnreachable takes nothing from them, since they are too many. None where none holds.", []string{"region", "zone"}, nil),
		cutOff: prometheus.NewDesc("moorage_nodes_cut_off",
			"1 while a Node says that the storage of a driver has cut its machine off by a NetworkFence: no pod with a volume of that driver is placed there. None where it does not say so.", []string{"node", "driver"}, nil),
		underWay: prometheus.NewDesc("moorage_driver_operations",
			"Attaches and detaches of a driver that are under way: begun, and neither ended nor failed. None where there are none.", []string{"driver"}, nil),
		workers: prometheus.NewDesc("moorage_driver_workers",
			"How many attaches and detaches of a driver its AttachPolicy allows at a time (workers). None where it sets no limit.", []string{"driver"}, nil),
		total: prometheus.NewDesc("attachdetach_controller_total_volumes",
			"Number of volumes in A/D Controller", []string{"plugin_name", "state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (w *world) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{w.used, w.reserved, w.limit, w.tickets, w.have, w.oldest, w.dropped, w.listed, w.podless, w.loose, w.volumes, w.states, w.fenced, w.braked, w.cutOff, w.underWay, w.workers, w.total} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (w *world) Collect(ch chan<- prometheus.Metric) {
	s := w.snapshot()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		// A label that is not UTF-8 is an error. A panic in a collector's goroutine would end the process.
		if m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...); err == nil {
			ch <- m
		}
	}
	gauge(w.volumes, float64(s.Size()))
	dropped := 0.0
	if s.DropsHoldBoots() {
		dropped = 1
	}
	gauge(w.dropped, dropped)
	reserved, known := reservedSlots(s), knownDrivers(s)
	for n := range s.Nodes() {
		shown := 0
		for _, d := range n.Drivers {
			if !known(d.Name) || shown == maxDriversShown {
				continue
			}
			shown++
			at := slots{n.Name, d.Name}
			gauge(w.used, float64(d.Taken()), string(at.node), at.driver)
			gauge(w.reserved, float64(reserved[at]), string(at.node), at.driver)
			if n.IsCutOff(d.Name) {
				gauge(w.cutOff, 1, string(at.node), at.driver)
			}
			if limit := rules.Limit(d, rules.PolicyFor(s, d.Name, "")); d.Registered && limit != ledger.NoLimit {
				gauge(w.limit, float64(limit), string(at.node), at.driver)
			}
		}
	}
	w.collectTickets(s, gauge)
	w.collectVolumes(s, gauge)
	w.collectUnexplained(s, gauge)
	w.collectSaid(s, gauge)
	w.collectStates(s, gauge)
	w.collectBraked(s, gauge)
	w.collectOperations(s, gauge)
}

func (w *world) collectOperations(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	for driver, n := range s.UnderWayOf() {
		gauge(w.underWay, float64(n), driver)
	}
	for p := range s.Policies() {
		if rule := rules.PolicyFor(s, p.Driver, ""); rule.Name == p.Name && rule.Workers > 0 {
			gauge(w.workers, float64(rule.Workers), p.Driver)
		}
	}
}

func (w *world) collectBraked(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	braked := map[ledger.Zone]int32{}
	for p := range s.Policies() {
		for _, z := range rules.HeldZones(s, p.Driver, p.Class) {
			braked[z.Zone] = z.Unreachable
		}
	}
	for zone, unreachable := range braked {
		region, name := zone.Region, zone.Name
		if zone.Whole {
			region, name = "*", "*"
		}
		gauge(w.braked, float64(unreachable), region, name)
	}
}

func (w *world) collectStates(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	type kind struct {
		state  ledger.HoldState
		reason ledger.Code
	}
	count, fenced := map[kind]int{}, map[ledger.NodeName]int{}
	for v := range s.Volumes() {
		h := v.Record()
		if h.State == "" {
			h.State = unheld(v)
		}
		count[kind{h.State, h.Reason}]++
		for _, f := range h.Fences {
			fenced[f.Node]++
		}
	}
	for k, n := range count {
		gauge(w.states, float64(n), string(k.state), string(k.reason))
	}
	for n, volumes := range fenced {
		gauge(w.fenced, float64(volumes), string(n))
	}
}

func unheld(v *ledger.Volume) ledger.HoldState {
	for i := range v.OnNodes {
		if v.OnNodes[i].OccupiesSlot() {
			return "Attached"
		}
	}
	return ledger.HoldFree
}

// maxDriversShown bounds a node's drivers with series: a kubelet writes its CSINode as it likes.
const maxDriversShown = 64

// knownDrivers are registered by a node, or Kubernetes' own. Other names in a node's status make no time
// series.
func knownDrivers(s ledger.Snapshot) func(driver string) bool {
	registered := map[string]bool{}
	for n := range s.Nodes() {
		for _, d := range n.Drivers {
			if d.Registered {
				registered[d.Name] = true
			}
		}
	}
	return func(driver string) bool { return registered[driver] || (ledger.VolumeID{Driver: driver}).NoAttach() }
}

type slots struct {
	node   ledger.NodeName
	driver string
}

// reservedSlots counts the places with users where no volume is, or may be.
func reservedSlots(s ledger.Snapshot) map[slots]int {
	out := map[slots]int{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			// A kubelet lists a volume in volumesInUse as soon as its pod is bound.
			if p := &v.OnNodes[i]; len(p.Users) > 0 && !p.HasAttachments() && !p.Reported && !p.Sent && !p.Left {
				out[slots{p.Node, v.ID.Driver}]++
			}
		}
	}
	return out
}

func (w *world) collectUnexplained(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	count := map[ledger.NodeName]int{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			if p := &v.OnNodes[i]; rules.Unexplained(s, p) {
				count[p.Node]++
			}
		}
	}
	for n, volumes := range count {
		gauge(w.listed, float64(volumes), string(n))
	}
}

// collectSaid counts volumes that nodes report and nothing in the API explains. Mounts of another boot are
// gone.
func (w *world) collectSaid(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	for n := range s.Nodes() {
		if n.Word == nil || !n.AskedAt.IsZero() {
			continue // its report may be old
		}
		podless, loose := 0, 0
		for _, v := range n.Word.Has {
			if !n.SaysHas(v) || !s.AttachRequired(v.Driver) {
				continue
			}
			at := s.Volume(v).OnNode(n.Name)
			if !at.UsedByPod() {
				podless++
			}
			if !at.HasAttachments() {
				loose++
			}
		}
		gauge(w.podless, float64(podless), string(n.Name))
		gauge(w.loose, float64(loose), string(n.Name))
	}
}

func (w *world) collectTickets(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	type kind struct{ typ, phase, reason string }
	type wait struct{ typ, reason string }
	count, oldest := map[kind]int{}, map[wait]int64{}
	have := map[ledger.TicketType]int{}
	for t := range s.Tickets() {
		count[kind{string(t.Type), t.Phase.String(), t.Reason}]++
		if t.SatisfiedSince != 0 {
			have[t.Type]++
		}
		if t.Phase == ledger.TicketPending {
			key := wait{string(t.Type), t.Reason}
			if first, ok := oldest[key]; !ok || t.Created < first {
				oldest[key] = t.Created
			}
		}
	}
	for k, n := range count {
		gauge(w.tickets, float64(n), k.typ, k.phase, k.reason)
	}
	for kind, n := range have {
		gauge(w.have, float64(n), string(kind))
	}
	for k, created := range oldest {
		gauge(w.oldest, float64(created), k.typ, k.reason)
	}
}
