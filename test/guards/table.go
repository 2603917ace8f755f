// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

func guards() []guard {
	all := slices.Concat(standalone(), attached())
	for _, g := range standalone() {
		switch g.Scenario {
		case "rollout", "limit", "full-node":
			g.Scenario = "extender-" + g.Scenario
			all = append(all, g)
		}
	}
	return all
}

func standalone() []guard {
	return slices.Concat(detaching(), placing(), gating(), asking(), failing(), installing(), dying(), speaking(), operating(), besides())
}

func detaching() []guard {
	return []guard{
		{
			Scenario: "path",
			Rule:     "I4: the VolumeAttachment is deleted only after the volume has left volumesAttached",
			Breaks:   []breaks.Break{"internal/rules detachPlan.detach: if va != nil && !va.Deleting { step := p.detachStep(node, place, va, rule); step.Kind = DeleteAttachment; p.add(step); return }"},
			Expect:   []string{"has left volumesAttached before it is detached", "looked at after the volume has left volumesAttached", "deleted after that", "every stage of the path was seen"},
		},
		{
			Scenario: "handover",
			Rule:     "I1: a volume counts where it may still be until its detach is over",
			Breaks:   freeTooEarly,
			Expect:   []string{"two-nodes", "ControllerPublishVolume of the volume for", "promises the volume"},
		},
		{
			Scenario: "handover-failing",
			Rule:     "I9: a detach that failed frees nobody",
			Breaks:   freeFailed,
			Expect:   []string{"two-nodes", "ControllerPublishVolume of the volume for", "detach fails"},
		},
		{
			Scenario: "readd",
			Rule:     "I7: who waits is told that a detach fails",
			Breaks:   []breaks.Break{"internal/rules stuckAt: if va := place.Canonical(); va != nil && va.Deleting { return Reason{Code: Detaching, Volume: v.ID, Node: place.Node} }"},
			Expect:   []string{"the pod is told that the detach fails"},
		},
		{
			Scenario: "readd-half",
			Rule:     "I4: what is wanted is attached again, whatever happened before, though a kubelet waits for it already",
			Breaks:   neverAgain,
			Expect:   []string{"pod db runs"},
		},
		{
			Scenario: "readd-killed",
			Rule:     "I4, I8: the same, after a restart of the controller",
			Breaks:   neverAgain,
			Expect:   []string{"pod db runs"},
		},
	}
}

func placing() []guard {
	return []guard{
		{
			Scenario: "rollout",
			Rule:     "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Breaks:   shareAll,
			Expect:   []string{"and the volume on"},
		},
		{
			Scenario: "limit",
			Rule:     "I2: nothing is placed or granted past the driver's limit",
			Breaks:   slotTooMany,
			Expect:   []string{"pods have a node", "over-limit"},
		},
		{
			Scenario: "full-node",
			Rule:     "I2: each volume counts once: a request's own attachment is not counted against it",
			Breaks:   []breaks.Break{"internal/rules evaluation.takes: return false"},
			Expect:   []string{"it is refused", "bound to the full node"},
		},
		{
			Scenario: "drain",
			Rule:     "a drain evicts no pod for whose volumes there is no room elsewhere",
			Breaks:   []breaks.Break{`internal/kubectl/facts trial.place: return "elsewhere", nil`},
			Expect:   []string{"it finds no node", "a is evicted"},
		},
		{
			Scenario: "no-room",
			Rule:     "I2: a node at which the driver has no room is full",
			Breaks:   []breaks.Break{"internal/ledger Ledger.refuse: return"},
			Expect:   []string{"db runs"},
		},
		{
			Scenario: "volume-kinds",
			Rule:     "I1: a volume is its driver and handle, whatever PersistentVolume names it",
			Breaks:   []breaks.Break{`internal/convert volumeOfPV: if pv.Spec.CSI != nil && !strings.HasPrefix(pv.Name, "pvc-") { id, err = volumeID(pv.Spec.CSI.Driver, pv.Name); return pv, id, err }`},
			Expect:   []string{"told who has the disk", "two-nodes"},
		},
		{
			Scenario: "volume-kinds",
			Rule:     "at a node whose kubelet mounts by SELinux label, pods share a volume only where their labels may be the same",
			Breaks:   []breaks.Break{"internal/convert seLinuxMount: return false"},
			Expect:   []string{"with another SELinux label"},
		},
	}
}

func gating() []guard {
	return []guard{
		{
			Scenario: "volume-wait",
			Rule:     "a pod that no new node would help is gated",
			Breaks:   []breaks.Break{"plugins/volumehold VolumeHold.PreEnqueue: return nil"},
			Expect:   []string{"is told VolumeWait", "the scheduler has not tried"},
		},
		{
			Scenario: "pod-groups",
			Rule:     "the slots of minMember pods are reserved all or none",
			Breaks:   []breaks.Break{"plugins/volumehold groups.step: if !at.over && len(at.members) > 0 { g.allow(at); return }"},
			Expect:   []string{"all pods of one of the groups"},
		},
	}
}

func asking() []guard {
	return []guard{
		{
			Scenario: "kubectl",
			Rule:     "I7, for people: the command says that a volume is not safe to mount, and why",
			Breaks:   []breaks.Break{`internal/kubectl/facts World.podVolume: if at != "" && !w.Arbiter.Explain(w.Snapshot, need, at, w.Now).Allowed() { return PodVolume{Name: need.Name, Volume: w.Volume(need.Volume), SafeToMount: true} }`},
			Expect:   []string{"explain pod db-0 says WaitsForVolumes Detaching"},
		},
		{
			Scenario: "tickets",
			Rule:     "section 4: an unwanted attachment stays for the policy's detachDelay",
			Breaks:   []breaks.Break{"internal/rules planning.delayed: return 0"},
			Expect:   []string{"kept for the pod that comes back"},
		},
		{
			Scenario: "ticket-wherever",
			Rule:     "a ticket that waits asks where its volumes are",
			Breaks:   []breaks.Break{`internal/protocol place: if t.Node != "" { return Task{}, false }`},
			Expect:   []string{"ticket backup is at worker-2"},
		},
		{
			Scenario: "ticket-order",
			Rule:     "of all that wait for a volume, the one of the highest priority has it first",
			Breaks:   []breaks.Break{"internal/rules CompareRequests: if a.Created != b.Created { return cmp.Compare(a.Created, b.Created) }"},
			Expect:   []string{"ticket restore is satisfied"},
		},
		{
			Scenario: "ticket-drain",
			Rule:     "a ticket that moves loses its grant at a node that is being emptied",
			Breaks:   []breaks.Break{"internal/rules leaves: return nil"},
			Expect:   []string{"ticket moves is asked to let go"},
		},
		{
			Scenario: "backup-mover",
			Rule:     "a ticket is asked before it loses its volumes",
			Breaks:   []breaks.Break{"internal/rules YieldNotice: return 0"},
			Expect:   []string{"the mover is asked to let go", "unpublish-while-staged"},
		},
		{
			Scenario: "eviction-rebuild",
			Rule:     "a copy is not interrupted",
			Breaks:   []breaks.Break{"internal/ledger TicketType.Yields: if t == TypeRebuild { return true }"},
			Expect:   []string{"db waits for the rebuild", "is not disturbed"},
		},
		{
			Scenario: "by-hand",
			Rule:     "a ticket with onDrain: End ends with the cordon of its node",
			Breaks:   []breaks.Break{"internal/rules EndOf: if n := s.Node(t.Node); n != nil && n.Draining { return TicketEnd{} }"},
			Expect:   []string{"ticket node has ended"},
		},
		{
			Scenario: "salvage",
			Rule:     "a ticket ends when its time is over",
			Breaks:   neverExpire,
			Expect:   []string{"ticket dies has ended"},
		},
		{
			Scenario: "salvage-health",
			Rule:     "a volume that a ticket keeps detached is attached nowhere",
			Breaks:   detachedUnseen,
			Expect:   []string{"the disk is attached"},
		},
		{
			Scenario: "import",
			Rule:     "each attached volume that no pod uses gets a ticket",
			Breaks:   []breaks.Break{`internal/kubectl/facts World.UnusedAttachments: return nil`},
			Expect:   []string{"without --apply the tickets are printed"},
		},
		{
			Scenario: "ticket-orphans",
			Rule:     "a ticket ends when its time is over",
			Breaks:   neverExpire,
			Expect:   []string{"ticket client has ended"},
		},
		{
			Scenario: "ticket-detached",
			Rule:     "a volume that a ticket keeps detached is attached nowhere",
			Breaks:   detachedUnseen,
			Expect:   []string{"is told that the volume is not detached yet"},
		},
	}
}

func failing() []guard {
	return []guard{
		{
			Scenario: "node-failure",
			Rule:     "I3: a node that is not Ready and out of service is detached from without its kubelet's word",
			Breaks:   []breaks.Break{"internal/rules outOfService: return forcing{}"},
			Expect:   []string{" runs: not within"},
		},
		{
			Scenario: "node-failure-wait",
			Rule:     "I3, I9: that a node does not answer is no reason to detach, unless the policy sets a time",
			Breaks:   []breaks.Break{"internal/rules afterUnreachable: if p.AfterUnreachable == nil { return 0 }"},
			Expect:   []string{"unpublish-while-staged", "ControllerUnpublishVolume of the volume for", "told of the dead node"},
		},
		{
			Scenario: "forced-detach",
			Rule:     "I3: a time of the policy that is over frees what a dead node's pods have left",
			Breaks:   []breaks.Break{"internal/rules afterPodGone: return never"},
			Expect:   []string{"rule AfterPodGone has come to"},
		},
		{
			Scenario: "forced-unreachable",
			Rule:     "I3: a policy's time since a node became unreachable frees what its pods have, Terminating or not",
			Breaks:   []breaks.Break{"internal/rules afterUnreachable: return never"},
			Expect:   []string{"rule AfterUnreachable has come to"},
		},
		{
			Scenario: "many-unreachable",
			Rule:     "I3: the time of afterUnreachable takes nothing while too many nodes are unreachable at once",
			Breaks:   []breaks.Break{"internal/rules timing.braked: return Brake{}"},
			Expect:   []string{"the hold says why no time runs"},
		},
		{
			Scenario: "share-manager",
			Rule:     "a ticket that leaves its node to the controller leaves one that is fenced",
			Breaks:   []breaks.Break{"internal/rules Arbiter.Keeps: bound := *t; bound.Wherever = false; t = &bound"},
			Expect:   []string{"ticket server has left", "ticket server has the disk"},
		},
		{
			Scenario: "node-deleted",
			Rule:     "I3: a Node that is gone proves nothing of its machine",
			Breaks:   []breaks.Break{"internal/rules Arbiter.evidenceOf: if n, rule := s.Node(p.Node), force(s, v, p, now); (n == nil || !n.Exists) && !rule.over() { return evidence{usageNone, rule} }"},
			Expect:   []string{"unpublish-while-staged", "the waiting pod is told", "ControllerUnpublish"},
		},
		{
			Scenario: "node-made-again",
			Rule:     "I3: what moorage-node has found at a Node made again by the same boot is staged there",
			Breaks:   []breaks.Break{"internal/rules Arbiter.evidenceOf: if s.IsUnknown(v, p) && s.Node(p.Node).SaysHas(v.ID) { return evidence{usage: usageNone} }"},
			Expect:   []string{"is told that its volume is staged"},
		},
		{
			Scenario: "dead-together",
			Rule:     "I8: the out-of-service taint counts that was set while nobody led",
			Breaks:   []breaks.Break{"internal/rules outOfService: return forcing{}"},
			Expect:   []string{"the detach from"},
		},
		{
			Scenario: "driver-down",
			Rule:     "I1: a volume counts where it may still be until its detach is over, also where its machine is known to be dead",
			Breaks:   freeTooEarly,
			Expect:   []string{"two-nodes", "ControllerPublishVolume of the volume for"},
		},
		{
			Scenario: "name-reused",
			Rule:     "I3: another machine that has a node's name proves nothing of the first one",
			Breaks: []breaks.Break{
				"internal/ledger facts.bootOver: return true",
				"internal/rules replaced: return false",
			},
			Expect: []string{"ControllerUnpublishVolume of the volume for", "ControllerPublishVolume of the volume for"},
		},
		{
			Scenario: "reboot-in-grace",
			Rule:     "I3: no detach while the kubelet's last report has the volume in use, though the machine is off and its pod is deleted",
			Breaks:   notInUse,
			Expect:   []string{"ControllerUnpublishVolume of the volume for"},
		},
		{
			Scenario: "flapping",
			Rule:     "I3: the time of afterUnreachable begins anew when the node has been Ready",
			Breaks:   []breaks.Break{"internal/ledger NodeState.apply: if was := l.facts.nodes.get(s.Name); was != nil && !was.NotReady.IsZero() { defer func(at time.Time) { l.node(s.Name).NotReady = at }(was.NotReady) }"},
			Expect:   []string{"unpublish-while-staged", "VolumeAttachment of db is there", "ControllerUnpublishVolume of the volume for", "write-lost"},
		},
		{
			Scenario: "fenced-condition",
			Rule:     "I3: a condition of the Node that the policy names, set after the last sign of the node, frees what it has",
			Breaks:   []breaks.Break{"internal/rules fencedBy: return forcing{}"},
			Expect:   []string{" runs: not within"},
		},
		{
			Scenario: "network-fence",
			Rule:     "I3: a machine that a storage has cut off is let in only when nothing is mounted there",
			Breaks:   []breaks.Break{"internal/rules MayUnfenceMachine: if n := s.Node(m.Node); ready(n) && n.BootID == m.BootID { return MayUnfence }"},
			Expect:   []string{"let-in-mounted", "the machine is still cut off", "is not placed"},
		},
		{
			Scenario: "network-fence-fails",
			Rule:     "I3: nothing follows from a NetworkFence that the storage has not confirmed",
			Breaks:   []breaks.Break{"internal/networkfence decider.leaving: for i := range d.Fences { d.Fences[i].Succeeded = true }"},
			Expect:   []string{"the NetworkFence is not confirmed yet"},
		},
		{
			Scenario: "network-fence-boot",
			Rule:     "I3: a machine that has booted is let in, whatever records are left",
			Breaks:   []breaks.Break{"internal/rules MayUnfenceMachine: if n := s.Node(m.Node); ready(n) && n.Answers() && slices.ContainsFunc(n.Word.Has, func(v ledger.VolumeID) bool { return v.Driver == m.Driver }) { return StaysFenced }"},
			Expect:   []string{"is let in"},
		},
		{
			Scenario: "kubelet-restart",
			Rule:     "I3: no detach while the kubelet reports the volume in use",
			Breaks:   notInUse,
			Expect:   []string{"still attached to worker-1", "unpublish-while-staged", "ControllerUnpublishVolume of the volume"},
		},
	}
}

func speaking() []guard {
	return []guard{
		{
			Scenario: "kubelet-hole",
			Rule:     "I3: no detach while moorage-node finds the volume staged",
			Breaks:   []breaks.Break{"internal/rules detachPlan.asksNode: return false"},
			Expect:   []string{"unpublish-while-staged", "is told that its volume is staged at worker-1"},
		},
		{
			Scenario: "kubelet-hole-stopped",
			Rule:     "I3: if its report is required, the silence of moorage-node counts as in use",
			Breaks:   []breaks.Break{"internal/rules Arbiter.requiresWord: return false"},
			Expect:   []string{"unpublish-while-staged", "is told that moorage-node does not answer"},
		},
	}
}

func installing() []guard {
	return []guard{
		{
			Scenario: "adopt-and-leave",
			Rule:     "I8: a controller that begins to lead looks at everything, also at what it has never seen",
			Breaks:   lookAtNothing,
			Expect:   []string{"has the volume"},
		},
		{
			Scenario: "adopt-many",
			Rule:     "I8: a controller that begins to lead looks at everything, also at what never changes",
			Breaks:   lookAtNothing,
			Expect:   []string{"every volume has its VolumeHold"},
		},
		{
			Scenario: "path-1-36",
			Rule:     "the scheduler leaves out what the API server does not serve",
			Breaks:   []breaks.Break{"plugins/scheduler heedServed: return"},
			Expect:   []string{"Moorage to serve and to lead"},
		},
		{
			Scenario: "stock-returns",
			Rule:     "section 7: attachments that somebody else makes in Standalone mode are told",
			Breaks:   []breaks.Break{"controller/truth Checker.strangers: return nil"},
			Expect:   []string{"reported as somebody else's"},
		},
	}
}

func dying() []guard {
	return []guard{
		{
			Scenario: "crash",
			Rule:     "I8: a controller that begins to lead looks at everything, not only at what changes from then on",
			Breaks:   lookAtNothing,
			Expect:   []string{"all pods run", "a pod is"},
		},
		{
			Scenario: "chaos-short",
			Rule:     "I9: a detach that failed frees nobody",
			Breaks:   freeFailed,
			Expect:   []string{"two-nodes", "every pod runs"},
		},
	}
}

var (
	freeTooEarly = []breaks.Break{"internal/rules planning.mayBeAttached: if place.HasAttachments() || place.Reported { return false }"}
	freeFailed   = []breaks.Break{"internal/rules planning.mayBeAttached: if va := place.Own(); va != nil && !va.DetachError.IsZero() && !place.Reported { return false }"}
	// A kubelet lists a volume in volumesInUse while it waits for the attach.
	neverAgain    = []breaks.Break{"internal/rules attachPlan.mayCreate: if place.InUse { return false }"}
	lookAtNothing = []breaks.Break{"controller wake.all: return"}
	shareAll      = []breaks.Break{"internal/rules exclusive: return false"}
	slotTooMany   = []breaks.Break{"internal/rules Limit: if state.Limit != ledger.NoLimit { state.Limit++ }"}
	notInUse      = []breaks.Break{
		"internal/rules Arbiter.evidenceOf: if rule := force(s, v, p, now); p.InUse && !rule.over() { return evidence{usageNone, rule} }",
		`internal/protocol Change.fits: if !c.Add && c.Rule == "" { return node.UID == c.NodeUID }`,
	}
	neverExpire    = []breaks.Break{"controller/ticket Controller.expire: return 0, nil"}
	detachedUnseen = []breaks.Break{"internal/rules Arbiter.detached: return nil"}
)
