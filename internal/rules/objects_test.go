// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// The commands that make, change and delete objects.

// node makes a node and its machine, or changes the Node. "new" makes the Node again under a new UID: for
// another machine, or with "alive" for the present one. id= is the driver's name for a new machine;
// "driver" registers one driver there, see csinode; zone=… labels it. ready=unknown cuts the machine's
// network, ready=false breaks its runtime, ready=true ends both. boot=unsaid removes the Node's bootID,
// boot=said sets the machine's present boot, boot=never means none for good, and uuid=never no systemUUID.
// "another" makes a machine whose kubelet registers under the existing Node. by=MACHINE has the Node name
// another machine, whose kubelet writes it. fenced=NAME sets the condition of that name now, fenced= takes
// it away (fence). selinux=true has its kubelet mount with SELinux labels.
func (s *script) node(a args) {
	name := ledger.NodeName(a.word(1))
	n, exists := s.Node(name)
	fresh := !exists || a.flag("new")
	if fresh {
		n = ledger.NodeState{Name: name, UID: s.uid(string(name)), Ready: ledger.ReadyTrue, Managed: true, Reporting: !a.flag("new")}
	}
	m := s.machine(name)
	if m == nil || a.flag("another") || a.flag("new") && !a.flag("alive") {
		m = s.addMachine(a.get("id", s.machineID(name)), name)
		s.register(m)
	}
	m.NoUUID = m.NoUUID || a.get("uuid", "") == "never"
	if fresh || a.flag("another") {
		n.SystemUUID, n.BootID = m.SystemUUID(), m.BootID()
	}
	switch a.get("ready", "") {
	case "true":
		n.Ready, m.Process.Linked, m.Process.Broken = ledger.ReadyTrue, true, false
	case "false":
		n.Ready, m.Process.Broken = ledger.ReadyFalse, true
	case "unknown":
		n.Ready, m.Process.Linked = ledger.ReadyUnknown, false
	}
	switch a.get("boot", "") {
	case "unsaid": // the object's author is no kubelet
		n.BootID = ""
	case "never":
		m.NoBoot, n.BootID = true, ""
	case "said":
		n.BootID = m.BootID()
	}
	if by := s.Machines[a.get("by", "")]; by != nil {
		n.SystemUUID, n.BootID = by.SystemUUID(), by.BootID()
	}
	set := func(flag string, field *bool) {
		if v, ok := a.keys[flag]; ok {
			*field = v == "true"
		}
	}
	set("oos", &n.OutOfService)
	set("shutdown", &n.Shutdown)
	if n.Ready != ledger.ReadyUnknown && a.keys["ready"] != "" {
		n.Fenced = nil // the kubelet has written the condition Ready since
	}
	if v, ok := a.keys["fenced"]; ok {
		s.fence(&n, v, a)
	}
	if v, ok := a.keys["cutOff"]; ok {
		s.cutOff(&n, v)
	}
	if v, ok := a.keys["saysCutOff"]; ok { // but is not
		n.CutOff = []string{v}
	}
	set("managed", &n.Managed)
	set("selinux", &n.SELinuxMount)
	set("draining", &n.Draining)
	set("reporting", &n.Reporting)
	if zone := a.get("zone", ""); zone != "" {
		n.Labels = map[string]string{"zone": zone, "topology.kubernetes.io/zone": zone}
	}
	s.put(n)
	if a.keys["driver"] != "" {
		s.csinode(a)
	}
}

// fence sets the condition fenced.moorage.dev/NAME, or removes it without a name. ahead=DURATION is for a
// fast clock.
func (s *script) fence(n *ledger.NodeState, name string, a args) {
	n.Fenced = nil
	if name == "" {
		return
	}
	since := s.Now
	if d := a.duration("ahead"); d != nil {
		since = since.Add(*d)
	}
	n.Fenced = []ledger.FencedCondition{{Type: fencedPrefix + name, Since: since.Unix()}}
}

// cutOff has a driver's storage cut the node's machines off, or let them in without a driver.
func (s *script) cutOff(n *ledger.NodeState, driver string) {
	n.CutOff = nil
	if driver != "" {
		n.CutOff = []string{driver}
	}
	for _, m := range s.Machines {
		if m.Node == n.Name {
			m.Cut = driver != ""
		}
	}
}

// fencedPrefix begins the types of conditions that vouch that a machine writes no more.
const fencedPrefix = "fenced.moorage.dev/"

// machineID is a driver's name for the next machine of a node.
func (s *script) machineID(n ledger.NodeName) string {
	id := "id-" + string(n)
	for s.Machines[id] != nil {
		id += "'"
	}
	return id
}

// register has the CSINode name a new machine, as its kubelet does.
func (s *script) register(m *world.Machine) {
	if d, exists := s.Drivers(m.Node); exists {
		d.Drivers = slices.Clone(d.Drivers)
		for i := range d.Drivers {
			d.Drivers[i].NodeID = s.calls(m)
		}
		s.put(d)
	}
}

// csinode writes a CSINode: driver=NAME limit=N, or "gone". id= sets the driver's name for the machine from
// here on.
func (s *script) csinode(a args) {
	name := ledger.NodeName(a.word(1))
	if a.flag("gone") {
		s.drop(world.NodeDrivers, string(name))
		return
	}
	d := ledger.NodeDrivers{Node: name}
	if id := a.get("id", ""); id != "" && a.words[0] == "csinode" {
		s.csi.names[s.machine(name).ID] = id
	}
	for _, driver := range a.list("driver") {
		d.Drivers = append(d.Drivers, ledger.DriverOnNode{
			Name: driver, NodeID: s.calls(s.machine(name)), Limit: int32(a.number("limit", int(ledger.NoLimit))),
		})
	}
	s.put(d)
}

func accessMode(word string) ledger.Access {
	switch word {
	case "RWO":
		return ledger.AccessNode
	case "RWOP":
		return ledger.AccessPod
	case "RWX", "ROX", "RWO+ROX":
		return ledger.AccessMany
	}
	return ledger.AccessUnknown
}

// volume makes a PersistentVolume, and with claim=NAME its bound claim; namespace= puts it into another
// namespace, zone= limits it to nodes of these zones.
func (s *script) volume(a args) {
	name := a.word(1)
	pv := s.pv(name)
	if pv.Name == "" {
		pv = ledger.PersistentVolume{
			Name: name, UID: s.uid(name), Access: accessMode(a.get("access", "RWO")), Class: a.get("class", ""),
			Volume: ledger.VolumeID{Driver: a.get("driver", "disk"), Handle: a.get("handle", "h-"+name)},
		}
	}
	if zone := a.list("zone"); zone != nil {
		pv.Affinity = ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeIn, Values: zone}}})
	}
	pv.Deleting = a.flag("deleting")
	if claim := a.get("claim", ""); claim != "" {
		pv.Claim = ledger.ClaimKey{Namespace: a.get("namespace", namespace), Name: claim}
		k := s.claimOf(pv.Claim)
		if k.UID == "" {
			k = ledger.Claim{Key: pv.Claim, UID: s.uid("claim-" + claim)}
		}
		k.Bound, k.PersistentVolume, k.Access, k.Class = true, name, pv.Access, pv.Class
		pv.ClaimUID = k.UID
		s.put(k)
	}
	s.put(pv)
}

// claim makes or changes a claim: "lost", "deleting", owner=POD for an ephemeral volume's.
func (s *script) claim(a args) {
	key := ledger.ClaimKey{Namespace: namespace, Name: a.word(1)}
	k := s.claimOf(key)
	if k.UID == "" {
		k = ledger.Claim{Key: key, UID: s.uid("claim-" + key.Name), Class: a.get("class", ""), Access: accessMode(a.get("access", "RWO"))}
	}
	k.Lost, k.Deleting = a.flag("lost"), a.flag("deleting")
	if p, ok := s.podNamed(a.get("owner", "")); ok {
		k.OwnerPod = p.UID
	}
	if pv := a.get("bound", ""); pv != "" {
		k.Bound, k.PersistentVolume = true, pv
	}
	if k.Lost {
		k.Bound = false
	}
	s.put(k)
}

func (s *script) class(a args) {
	s.put(ledger.StorageClass{Name: a.word(1), Driver: a.get("driver", "disk"), WaitForFirst: a.flag("wait")})
}

// driver makes or changes a CSIDriver: attach=false, needsNode=true, selinux=true.
func (s *script) driver(a args) {
	s.csi.trivial[a.word(1)] = a.flag("trivial")
	s.put(ledger.Driver{Name: a.word(1), AttachRequired: a.get("attach", "true") == "true", NeedsNode: a.get("needsNode", "") == "true", SELinuxMount: a.get("selinux", "") == "true"})
}

func (s *script) policy(a args) {
	p := ledger.Policy{
		Name: a.word(1), Driver: a.get("driver", "disk"), Class: a.get("class", ""), Headroom: int32(a.number("headroom", 0)),
		AfterPodGone: a.duration("afterPodGone"), AfterUnreachable: a.duration("afterUnreachable"),
		LiveMigration: a.flag("liveMigration"), UnpublishFences: a.flag("unpublishFences"),
	}
	if name := a.get("fencedCondition", ""); name != "" {
		p.FencedCondition = fencedPrefix + name
	}
	p.NetworkFence = ledger.NetworkFence{Class: a.get("networkFence", "")}
	if d := a.duration("detachDelay"); d != nil {
		p.DetachDelay = *d
	}
	if n := a.number("max", -1); n >= 0 {
		limit := int32(n)
		p.MaxSlots = &limit
	}
	s.put(p)
}

// pod makes a pod, or a second of that name if the last is gone or with "again"; or changes one:
// phase=terminating|finished. selinux=LEVEL, with user=USER, is the label for mounts of its volumes;
// selinux=? is unknown.
func (s *script) pod(a args) {
	name := a.word(1)
	p, exists := s.podNamed(name)
	if !exists || a.flag("again") {
		p = ledger.Pod{UID: s.uid(name), Namespace: a.get("namespace", namespace), Name: name, Created: s.Now.Unix(), Node: ledger.NodeName(a.get("node", "")), OptedOut: a.flag("optedOut")}
		for _, volume := range a.list("ephemeral") {
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: volume, Claim: name + "-" + volume, Ephemeral: true})
		}
		for _, claim := range append(a.list("claims"), a.list("claim")...) {
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: "v-" + claim, Claim: claim})
		}
		for i, inline := range a.list("inline") {
			id := s.volumeNamed(inline)
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: fmt.Sprintf("inline-%d", i), Inline: id, Access: accessMode(a.get("access", ""))})
		}
		for i := range p.Volumes {
			p.Volumes[i].SELinux = seLinux(a)
		}
	}
	if a.get("phase", "") == "finished" {
		p.Phase = ledger.PodFinished
	}
	s.put(p)
	if a.get("phase", "") == "terminating" {
		s.DeletePod(p.UID)
		s.sync()
	}
}

func seLinux(a args) ledger.SELinux {
	switch level := a.get("selinux", ""); level {
	case "":
		return ledger.SELinuxNone
	case "?":
		return ledger.SELinuxUnknown
	default:
		return ledger.SELinuxLabel(a.get("user", ""), level)
	}
}

// reserve lets the scheduler place a pod: node=NAME, or the choice of Nodes, Fit and Rank.
func (s *script) reserve(a args) {
	p, ok := s.podNamed(a.get("pod", a.word(1)))
	if !ok {
		s.trace("no such pod")
		return
	}
	snap := s.snapshot()
	at := ledger.NodeName(a.get("node", ""))
	if at == "" {
		at = s.choose(snap, p)
	}
	if at == "" {
		s.trace("no node fits %s", p.Name)
		return
	}
	if v := s.arb.Fit(snap, rules.PodRequest(snap, &p), at, s.Now); !v.Allowed() {
		s.trace("%s: %s%s", at, v.Outcome, because(v))
		return
	}
	s.trace("reserved %s for %s", at, p.Name)
	s.ledger.Reserve(s.Now, p, at)
}

func (s *script) choose(snap ledger.Snapshot, p ledger.Pod) ledger.NodeName {
	r := rules.PodRequest(snap, &p)
	only, narrowed := s.arb.Nodes(snap, r, s.Now)
	best, score := ledger.NodeName(""), int64(-1)
	for _, node := range list[ledger.NodeState](s.cluster, world.Nodes) {
		n := node.Name
		if narrowed && n != only || !s.arb.Fit(snap, r, n, s.Now).Allowed() {
			continue
		}
		if rank := s.arb.Rank(snap, r, n, rules.Weights{}); rank > score {
			best, score = n, rank
		}
	}
	return best
}

// ticket makes a ticket: NAME type=… node=…|wherever|detached onDrain=End|Move claims=…|pvs=… parameters=…;
// "granted" for a ticket that claims its grant.
func (s *script) ticket(a args) {
	t := ledger.Ticket{
		ID: ledger.TicketID{Namespace: namespace, Name: a.word(1)}, Type: ledger.TicketType(a.get("type", "Manual")),
		Node: ledger.NodeName(a.get("node", "")), Created: s.Now.Unix() - int64(a.number("age", 0)),
		Parameters: a.get("parameters", ""), Wherever: a.flag("wherever"), OnDrain: map[string]ledger.OnDrain{"End": ledger.EndOnDrain, "Move": ledger.MoveOnDrain}[a.get("onDrain", "")],
	}
	if a.flag("detached") {
		t.Node = ledger.Detached
	}
	for _, claim := range a.list("claims") {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: claim})
	}
	for _, pv := range a.list("pvs") {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{PersistentVolume: pv})
	}
	t.UID = s.uid("ticket-" + t.ID.Name)
	if a.flag("granted") {
		t.Phase = ledger.TicketGranted
	}
	s.put(t)
}

// holder has the user of a ticket's volumes learn of them, or let go of them as asked: NAME
// satisfied|lets-go.
func (s *script) holder(a args) {
	known, ok := s.ticketNamed(a.word(1))
	if !ok {
		s.trace("no such ticket")
		return
	}
	t := *known
	switch {
	case a.flag("satisfied"):
		t.SatisfiedSince = s.Now.Unix()
	case a.flag("lets-go"):
		t.LetsGo = true
	}
	s.put(t)
}

// satisfied prints whether a ticket has its volumes, or why not.
func (s *script) satisfied(a args) {
	t, ok := s.ticketNamed(a.get("ticket", ""))
	if !ok {
		s.trace("no such ticket")
		return
	}
	v := s.arb.Satisfied(s.snapshot(), t, s.Now)
	s.trace("%s: %s%s", t.ID.Name, v.Outcome, because(v))
}

// forgeHold writes a hold as another actor would: PV node=…, or no node. The judge judges Moorage.
func (s *script) forgeHold(a args) {
	v := s.volumeNamed(a.word(1))
	h, _ := s.Hold(v)
	h.Node, h.Requesters, h.Next = ledger.NodeName(a.get("node", "")), nil, ledger.Promise{}
	if a.flag("copied") {
		h = copiedHold(h.Version, h.Node, ledger.NodeName(a.get("next", "")), ledger.NodeName(a.get("taken", "")))
	}
	faults := s.Judge.Faults
	s.put(ledger.HoldSeen{Volume: v, Hold: h})
	s.Judge.Faults = faults
}

// copiedHold is a hold restored by a backup tool from another cluster, or from earlier: no UID in it
// exists.
func copiedHold(version string, node, next, taken ledger.NodeName) ledger.Hold {
	gone := ledger.Requester{Namespace: namespace, Name: "gone", UID: "gone"}
	h := ledger.Hold{
		Version: version, Node: node, NodeUID: "before", BootID: "before", SystemUUID: "before", Requesters: []ledger.Requester{gone},
		Transitions: 7, PVs: []string{"pv-of-before"}, State: ledger.HoldHeld, Waiting: []ledger.Requester{gone},
		Force: &ledger.Force{Rule: rules.AfterPodGone, Node: node, NodeUID: "before", Elapsed: 359 * time.Second, Since: 1},
	}
	if next != "" {
		gone.Ticket = true
		h.Next = ledger.Promise{Node: next, To: gone}
	}
	if taken != "" {
		h.Fences = []ledger.Fence{{Node: taken, NodeUID: "before", BootID: "before", SystemUUID: "before", Attachment: "before", Rule: rules.AfterPodGone, InUse: true}}
	}
	return h
}

// attachment makes a foreign VolumeAttachment, or Moorage's with "ours": volume=PV node=…, name=… for its
// own name, "bare" without an attacher's finalizer, for=PV to name another PersistentVolume.
func (s *script) attachment(a args) {
	v, n := s.volumeNamed(a.get("volume", "")), ledger.NodeName(a.get("node", ""))
	va := ledger.Attachment{
		Name: a.get("name", ledger.AttachmentName(v, n)), UID: s.UID(), Driver: a.get("driver", v.Driver), Node: n,
		PersistentVolume: a.get("for", a.get("volume", "")), Attached: a.flag("attached"), Ours: a.flag("ours"), Stamped: !a.flag("bare"),
	}
	if strings.Contains(va.PersistentVolume, "^") {
		va.PersistentVolume, va.Inline = "", v
	}
	if m := s.machine(n); m != nil {
		va.NodeID = s.calls(m)
		if va.Attached {
			s.Publish(v, m.ID)
		}
	}
	s.put(va)
}

func (s *script) bind(a args) {
	p, _ := s.podNamed(a.get("pod", a.word(1)))
	p.Node = ledger.NodeName(a.get("node", ""))
	s.put(p)
}

// delete asks for a deletion: pod= (terminating, "force" for at once), ticket=, node=, pv= ("unnoticed" by
// the binder), claim=, attachment= of PV at node, hold=.
func (s *script) delete(a args) {
	defer s.sync()
	key := func(name string) string { return ledger.ClaimKey{Namespace: namespace, Name: name}.String() }
	switch {
	case a.keys["pod"] != "" && a.flag("force"):
		p, _ := s.podNamed(a.keys["pod"])
		s.Drop(world.Pods, p.UID)
	case a.keys["pod"] != "":
		p, _ := s.podNamed(a.keys["pod"])
		s.DeletePod(p.UID)
	case a.keys["ticket"] != "":
		if t, ok := s.ticketNamed(a.keys["ticket"]); ok {
			s.Drop(world.Tickets, t.ID.String())
		}
	case a.keys["attachment"] != "":
		s.deleteVA(a)
	case a.keys["node"] != "":
		s.Drop(world.Nodes, a.keys["node"])
	case a.keys["pv"] != "" && a.flag("unnoticed"): // by the binder, which would mark its claim as lost
		s.Drop(world.PersistentVolumes, a.keys["pv"])
	case a.keys["pv"] != "":
		s.Vanish(a.keys["pv"])
	case a.keys["claim"] != "":
		s.Drop(world.Claims, key(a.keys["claim"]))
	case a.keys["hold"] != "":
		s.Drop(world.Holds, s.volumeNamed(a.keys["hold"]).String())
	case a.keys["class"] != "":
		s.Drop(world.Classes, a.keys["class"])
	case a.keys["driver"] != "":
		s.Drop(world.Drivers, a.keys["driver"])
	case a.keys["words"] != "":
		s.drop(world.NodeWords, a.keys["words"])
	}
}

// deleteVA deletes a VolumeAttachment as another actor: "stripped" of its finalizer.
func (s *script) deleteVA(a args) {
	name := a.keys["attachment"]
	if n := a.keys["node"]; n != "" {
		name = ledger.AttachmentName(s.volumeNamed(name), ledger.NodeName(n))
	}
	if a.flag("stripped") { // of its finalizer, so that no attacher detaches
		s.drop(world.Attachments, name)
		return
	}
	if s.ask(world.Request{Do: world.DropAttachment, Key: name, Manager: true}).Code != world.OK {
		s.trace("no such attachment")
	}
}

// kubelet starts a node's kubelet and its machine. "down" ends the kubelet, and "off" the machine's power;
// "restart" and "reboot" do both in turn, "reboot down" without the kubelet; "renews" renews its Lease once
// in any state. forgets=VOLUME kills it between NodeUnpublish and NodeUnstage, and restarts it;
// unstages=VOLUME is a person who unmounts a forgotten volume by hand, and "detaches" it. machine=ID is an
// earlier machine of the node's name.
func (s *script) kubelet(a args) {
	m := s.machine(ledger.NodeName(a.word(1)))
	if former := s.Machines[a.get("machine", "")]; former != nil {
		m = former
	}
	k := s.Kubelet(m.ID)
	if v, given := a.keys["stuck"]; given { // from now on this volume can't be unmounted there; empty: all can
		m.Stuck = nil
		if v != "" {
			m.Stuck = append(m.Stuck, s.volumeNamed(v))
		}
		return
	}
	switch {
	case a.get("forgets", "") != "":
		s.forgets(m, s.volumeNamed(a.get("forgets", "")))
		return
	case a.get("unstages", "") != "":
		m.Unstage(s.volumeNamed(a.get("unstages", "")))
		if a.flag("detaches") {
			s.Unpublish(s.volumeNamed(a.get("unstages", "")), m.ID)
		}
		return
	case a.flag("renews"):
		up, linked := k.Up, k.Linked
		k.Up, k.Linked = true, true
		k.Renew()
		k.Up, k.Linked = up, linked
		return
	case a.flag("reboot"), a.flag("off"):
		m.PowerOff()
	case a.flag("restart"), a.flag("down"):
		k.Kill()
	}
	switch {
	case a.flag("reboot") && a.flag("down"):
		m.PowerOn()
	case !a.flag("down") && !a.flag("off"):
		k.Linked = true
		if !k.Up {
			k.Start()
		}
	}
}

// forgets kills a kubelet between NodeUnpublish and NodeUnstage of a volume, and restarts it: it finds
// nothing of the volume.
func (s *script) forgets(m *world.Machine, v ledger.VolumeID) {
	for _, pod := range slices.Clone(m.Mounts[v]) {
		delete(m.Containers, pod)
		m.Unpublish(v, pod)
	}
	k := s.Kubelet(m.ID)
	k.Kill()
	s.Forgetful = true
	k.Start()
	s.Forgetful = false
}

// agent starts the moorage-node of a node; "stopped" ends it. "remade": its NodeMountReport was deleted, and it
// makes another. "prompt": it answers before its question is known to be sent; "slow" ends that. "unread="
// are PersistentVolumes with a half-written pod record, "torn=" volumes with a half-written staging record.
func (s *script) agent(a args) {
	m := s.machine(ledger.NodeName(a.word(1)))
	if a.flag("prompt") || a.flag("slow") {
		s.prompt = a.flag("prompt")
		return
	}
	m.StopAgent()
	m.Agent.Runs, m.Agent.Blind, m.Agent.Unread, m.Agent.Torn = !a.flag("stopped"), a.flag("blind"), a.list("unread"), nil
	for _, name := range a.list("torn") {
		m.Agent.Torn = append(m.Agent.Torn, s.volumeNamed(name))
	}
	if a.flag("remade") {
		s.drop(world.NodeWords, a.word(1))
		s.speak(m)
	}
}

// fail plants a fault: attach|detach volume=… code=…; "ok" removes it. An attach that "lies" happens and
// reports a failure; a detach that "hangs" gets no answer.
func (s *script) fail(a args) {
	book, text := s.csi.failAttach, "the cloud said no"
	if a.flag("detach") {
		book = s.csi.failDetach
	}
	v := s.volumeNamed(a.get("volume", ""))
	s.csi.lies[v], s.csi.hangs[v] = a.flag("lies"), a.flag("hangs")
	if a.flag("hangs") {
		return
	}
	if a.flag("ok") {
		delete(book, v)
		return
	}
	book[v] = ledger.CallError{Code: int32(a.number("code", 13)), Message: text}
}

// refuse has the API server refuse a kind of write at one node or all: write=ACTION node=…; "ok" ends that.
func (s *script) refuse(a args) {
	write := strings.TrimSpace(a.get("write", "") + " " + a.get("node", ""))
	s.refuses[write] = !a.flag("ok")
}

// reportNode writes a node's lists as another actor: inUse=, attached=.
func (s *script) reportNode(a args) {
	n, _ := s.Node(ledger.NodeName(a.word(1)))
	list := func(key string, field *[]ledger.VolumeID) {
		if _, ok := a.keys[key]; !ok {
			return
		}
		*field = nil
		for _, name := range a.list(key) {
			*field = append(*field, s.volumeNamed(name))
		}
	}
	list("inUse", &n.InUse)
	list("attached", &n.Reported)
	s.put(n)
}

// show prints the controller's view of a volume or a node.
func (s *script) show(a args) {
	snap := s.snapshot()
	if name := a.keys["node"]; name != "" {
		n := snap.Node(ledger.NodeName(name))
		if n == nil {
			s.trace("unknown")
			return
		}
		for _, d := range n.Drivers {
			s.trace("%s: used %d of %d registered=%t exhausted=%t", d.Name, d.Used, d.Limit, d.Registered, d.Exhausted)
		}
		return
	}
	v := snap.Volume(s.volumeNamed(a.get("volume", "")))
	if v == nil {
		s.trace("unknown")
		return
	}
	if v.Hold != nil {
		s.trace("hold: node=%s%s", v.Hold.Node, holdText(*v.Hold))
	}
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		s.trace("at %s: attachments=%d users=%d reported=%t inUse=%t proof=%s mount=%t", p.Node, len(p.Attachments()), len(p.Users),
			p.Reported, p.InUse || snap.IsUnknown(v, p), p.Proof.Stage, s.arb.SafeToMount(snap, v.ID, p.Node))
	}
}
