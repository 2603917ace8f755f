// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// guards lists every scenario of Moorage's with a rule without which it must
// fail.
func guards() []guard {
	all := slices.Concat(standalone(), attached())
	for _, g := range standalone() {
		switch g.Scenario {
		case "rollout", "limit", "full-node":
			// The extender is another face of the same rule.
			g.Scenario = "extender-" + g.Scenario
			all = append(all, g)
		}
	}
	return all
}

// standalone lists the guards of the scenarios with Moorage's own scheduler.
func standalone() []guard {
	return slices.Concat(detaching(), placing(), gating(), asking(), failing(), installing(), dying(), speaking(), operating(), besides())
}

// detaching lists the guards of a volume's way to a node, from there, and back.
func detaching() []guard {
	return []guard{
		{
			Scenario: "path",
			Rule:     "I4: the VolumeAttachment is deleted only after the volume has left volumesAttached",
			Edits:    deleteFirst(),
			Expect:   []string{"looked at after the volume has left volumesAttached", "deleted after that", "every stage of the path was seen"},
		},
		{
			Scenario: "handover",
			Rule:     "I1: a volume counts where it may still be until its detach is over",
			Edits: []edit{{
				File: "internal/rules/plan.go",
				Old:  "if place.HasAttachments() || place.Reported { //mutant:free-too-early\n\t\treturn true",
				New:  "if place.HasAttachments() || place.Reported {\n\t\treturn false",
			}},
			Expect: []string{"two-nodes", "ControllerPublishVolume of the volume for", "promises the volume"},
		},
		{
			Scenario: "handover-failing",
			Rule:     "I9: a detach that failed frees nobody",
			Edits:    freeFailed(),
			Expect:   []string{"two-nodes", "ControllerPublishVolume of the volume for", "detach fails"},
		},
		{
			Scenario: "readd",
			Rule:     "I7: who waits is told that a detach fails",
			Edits: []edit{{
				File: "internal/rules/planattach.go",
				Old:  "if !va.DetachError.IsZero() {",
				New:  "if false {",
			}},
			Expect: []string{"the pod is told that the detach fails"},
		},
		{
			Scenario: "readd-half",
			Rule:     "I4: what is wanted is attached again, whatever happened before, though a kubelet waits for it already",
			Edits:    neverAgain(),
			Expect:   []string{"pod db runs"},
		},
		{
			Scenario: "readd-killed",
			Rule:     "I4, I8: the same, after a restart of the controller",
			Edits:    neverAgain(),
			Expect:   []string{"pod db runs"},
		},
	}
}

// placing lists the guards of where pods may go.
func placing() []guard {
	return []guard{
		{
			Scenario: "rollout",
			Rule:     "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Edits: []edit{{
				File: "internal/rules/access.go",
				Old:  "return a != ledger.AccessMany && a != ledger.AccessUnset",
				New:  "return false",
			}},
			Expect: []string{"and the volume on"},
		},
		{
			Scenario: "limit",
			Rule:     "I2: nothing is placed or granted past the driver's limit",
			Edits: []edit{{
				File: "internal/rules/limit.go",
				Old:  "return reason, after > limit",
				New:  "return reason, after > limit+1",
			}},
			Expect: []string{"pods have a node", "over-limit"},
		},
		{
			Scenario: "full-node",
			Rule:     "I2: each volume counts once: a request's own attachment is not counted against it",
			Edits: []edit{{
				File: "internal/rules/limit.go",
				Old:  "case !w.confirmed(p, driver):\n\t\t\tfresh++\n",
				New:  "case p.OccupiesSlot():\n\t\t\tfresh++\n\t\t\tmissing++\n\t\tcase !w.confirmed(p, driver):\n\t\t\tfresh++\n",
			}},
			Expect: []string{"it is refused", "bound to the full node"},
		},
		{
			Scenario: "drain",
			Rule:     "a drain evicts no pod for whose volumes there is no room elsewhere",
			Edits: []edit{{
				File: "internal/kubectl/facts/drain.go",
				Old:  "try.place(s); to != \"\" {\n\t\t\tout.Moves",
				New:  "try.place(s); to+node != \"\" {\n\t\t\tout.Moves",
			}},
			Expect: []string{"it finds no node", "it is"},
		},
		{
			Scenario: "no-room",
			Rule:     "I2: a node at which the driver has no room is full",
			Edits:    []edit{{File: "internal/ledger/apply_attachment.go", Old: "case a.AttachError.Code == ResourceExhausted &&", New: "case a.AttachError.Code < 0 &&"}},
			Expect:   []string{"db runs"},
		},
		{
			Scenario: "volume-kinds",
			Rule:     "I1: a volume is its driver and handle, whatever PersistentVolume names it",
			Edits: []edit{{
				File: "internal/convert/volume.go",
				Old:  "\t\tid, err = volumeID(source.CSI.Driver, source.CSI.VolumeHandle)\n\tcase source.ISCSI",
				New:  "\t\tid, err = namedVolume(pv)\n\tcase source.ISCSI",
			}, {
				File: "internal/convert/volume.go",
				Old:  "// volumeOfInline is the volume",
				New:  namedVolume + "// volumeOfInline is the volume",
			}},
			Expect: []string{"told who has the disk", "two-nodes"},
		},
		{
			Scenario: "volume-kinds",
			Rule:     "at a node whose kubelet mounts by SELinux label, pods share a volume only where their labels may be the same",
			Edits:    []edit{{File: "internal/convert/selinux.go", Old: "\t\treturn said == \"true\"\n", New: "\t\treturn said == \"\"\n"}},
			Expect:   []string{"with another SELinux label"},
		},
	}
}

// gating lists the guards of what the scheduler keeps from being tried.
func gating() []guard {
	return []guard{
		{
			Scenario: "volume-wait",
			Rule:     "a pod that no new node would help is gated",
			Edits: []edit{{
				File: "plugins/volumehold/gate.go",
				Old:  "\tif !p.core.requeuer.Gate(pod, fact) {\n\t\treturn nil",
				New:  "\tif p.core.requeuer.Gate(pod, fact); true {\n\t\treturn nil",
			}},
			Expect: []string{"is told VolumeWait", "the scheduler has not tried"},
		},
		{
			Scenario: "pod-groups",
			Rule:     "the slots of minMember pods are reserved all or none",
			Edits: []edit{{
				File: "plugins/volumehold/groups.go",
				Old:  "if !at.over && len(at.members)+g.countPlaced(at) >= at.group.minMember {",
				New:  "if !at.over && len(at.members) > 0 {",
			}},
			Expect: []string{"all pods of one of the groups"},
		},
	}
}

// asking lists the guards of what people ask for, and are told.
func asking() []guard {
	return []guard{
		{
			Scenario: "kubectl",
			Rule:     "I7, for people: the command says that a volume is not safe to mount, and why",
			Edits: []edit{{
				File: "internal/kubectl/facts/pod.go",
				Old:  "out.SafeToMount = verdict.Allowed()",
				New:  "out.SafeToMount = true",
			}},
			Expect: []string{"explain pod db-0 says WaitsForVolumes Detaching"},
		},
		{
			Scenario: "tickets",
			Rule:     "section 4: an unwanted attachment stays for the policy's detachDelay",
			Edits: []edit{{
				File: "internal/rules/plandetach.go",
				Old:  "if left := p.delayed(p.hold, node, place); left > 0 {",
				New:  "if left := p.delayed(p.hold, node, place); left < 0 {",
			}},
			Expect: []string{"kept for the pod that comes back"},
		},
		{
			Scenario: "ticket-wherever",
			Rule:     "a ticket that waits asks where its volumes are",
			Edits: []edit{{
				File: "internal/protocol/decide.go",
				Old:  "if !t.Wherever || t.Phase != ledger.TicketPending ||",
				New:  "if !t.Wherever || t.Node != \"\" || t.Phase != ledger.TicketPending ||",
			}},
			Expect: []string{"ticket backup is at worker-2"},
		},
		{
			Scenario: "ticket-order",
			Rule:     "of all that wait for a volume, the one of the highest priority has it first",
			Edits: []edit{{
				File: "internal/rules/request.go",
				Old:  "cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.Created, b.Created)",
				New:  "cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(b.priority(), a.priority())",
			}},
			Expect: []string{"ticket restore is satisfied"},
		},
		{
			Scenario: "ticket-drain",
			Rule:     "a ticket that moves loses its grant at a node that is being emptied",
			Edits: []edit{{
				File: "internal/rules/grant.go",
				Old:  "reasons := slices.Concat(leaves(s, t, now), ledElsewhere(s, t))",
				New:  "reasons := slices.Concat(leaves(s, t, now)[:0], ledElsewhere(s, t))",
			}},
			Expect: []string{"ticket moves is asked to let go"},
		},
		{
			Scenario: "backup-mover",
			Rule:     "a ticket is asked before it loses its volumes",
			Edits: []edit{{
				File: "internal/protocol/decide.go",
				Old:  "case notice > 0 && !t.LetsGo && (t.YieldingSince == 0 || rules.NoticeLeft(s, t, now) > 0): //mutant:take-unasked",
				New:  "case false:",
			}},
			Expect: []string{"the mover is asked to let go", "unpublish-while-staged"},
		},
		{
			Scenario: "eviction-rebuild",
			Rule:     "a copy is not interrupted",
			Edits: []edit{{
				File: "internal/ledger/tickettype.go",
				Old:  "{TypeRebuild, 800, keeps,",
				New:  "{TypeRebuild, 800, yields,",
			}},
			Expect: []string{"db waits for the rebuild", "is not disturbed"},
		},
		{
			Scenario: "by-hand",
			Rule:     "a ticket with onDrain: End ends with the cordon of its node",
			Edits: []edit{{
				File: "internal/rules/ticketend.go",
				Old:  "t.OnDrain == ledger.EndOnDrain && n != nil && n.Exists && n.Draining &&",
				New:  "t.OnDrain == ledger.EndOnDrain && n != nil && !n.Exists && n.Draining &&",
			}},
			Expect: []string{"ticket node has ended"},
		},
		{
			Scenario: "salvage",
			Rule:     "a ticket ends when its time is over",
			Edits: []edit{{
				File: "controller/ticket/reconcile.go",
				Old:  "if left <= 0 {\n\t\treturn c.end",
				New:  "if left <= -time.Hour {\n\t\treturn c.end",
			}},
			Expect: []string{"ticket dies has ended"},
		},
		{
			Scenario: "salvage-health",
			Rule:     "a volume that a ticket keeps detached is attached nowhere",
			Edits:    detachedUnseen,
			Expect:   []string{"the disk is attached"},
		},
		{
			Scenario: "import",
			Rule:     "each of Longhorn's tickets becomes one of the matching type",
			Edits: []edit{{
				File: "internal/kubectl/facts/ticket.go",
				Old:  "ticket.Name, ticket.Spec.Type = longhornName(kind, t), v1alpha1.TicketType(kind)\n",
				New:  "ticket.Name = longhornName(kind, t)\n",
			}},
			Expect: []string{"without --apply the tickets are printed"},
		},
		{
			Scenario: "ticket-orphans",
			Rule:     "a ticket ends when its time is over",
			Edits: []edit{{
				File: "controller/ticket/reconcile.go",
				Old:  "if left <= 0 {\n\t\treturn c.end",
				New:  "if left <= -time.Hour {\n\t\treturn c.end",
			}},
			Expect: []string{"ticket client has ended"},
		},
		{
			Scenario: "ticket-detached",
			Rule:     "a volume that a ticket keeps detached is attached nowhere",
			Edits:    detachedUnseen,
			Expect:   []string{"is told that the volume is not detached yet"},
		},
	}
}

// failing lists the guards of nodes that do not answer.
func failing() []guard {
	return []guard{
		{
			Scenario: "node-failure",
			Rule:     "I3: a node that is not Ready and out of service is detached from without its kubelet's word",
			Edits: []edit{{
				File: "internal/rules/force.go",
				Old:  "return vouched(OutOfService, n, n.OutOfServiceAt, now)",
				New:  "return forcing{}",
			}},
			Expect: []string{" runs: not within"},
		},
		{
			Scenario: "node-failure-wait",
			Rule:     "I3, I9: that a node does not answer is no reason to detach, unless the policy sets a time",
			Edits: []edit{{
				File: "internal/rules/policy.go",
				Old:  "return setOr(p.AfterUnreachable, never)",
				New:  "return setOr(p.AfterUnreachable, 0)",
			}},
			Expect: []string{"unpublish-while-staged", "ControllerUnpublishVolume of the volume for", "told of the dead node"},
		},
		{
			Scenario: "forced-detach",
			Rule:     "I3: a time of the policy that is over frees what a dead node's pods have left",
			Edits: []edit{{
				File: "internal/rules/policy.go",
				Old:  "return *p.AfterPodGone",
				New:  "return never",
			}},
			Expect: []string{"rule AfterPodGone has come to"},
		},
		{
			Scenario: "forced-unreachable",
			Rule:     "I3: a policy's time since a node became unreachable frees what its pods have, Terminating or not",
			Edits: []edit{{
				File: "internal/rules/policy.go",
				Old:  "return setOr(p.AfterUnreachable, never)",
				New:  "return never",
			}},
			Expect: []string{"rule AfterUnreachable has come to"},
		},
		{
			Scenario: "many-unreachable",
			Rule:     "I3: the time of afterUnreachable takes nothing while too many nodes are unreachable at once",
			Edits: []edit{{
				File: "internal/rules/brake.go",
				Old:  "if brake := t.braked(s, n, policy); !brake.IsZero() {",
				New:  "if brake := t.braked(s, n, policy); false {",
			}},
			Expect: []string{"the hold says why no time runs"},
		},
		{
			Scenario: "share-manager",
			Rule:     "a ticket that leaves its node to the controller leaves one that is fenced",
			Edits: []edit{{
				File: "internal/rules/grant.go",
				Old:  "p.contested(t.Node) || t.Wherever && fenced(s, v, t.Node, now)",
				New:  "p.contested(t.Node) || t.Wherever && t.Node == \"\" && fenced(s, v, t.Node, now)",
			}},
			Expect: []string{"ticket server has left", "ticket server has the disk"},
		},
		{
			Scenario: "ticket-node-dies",
			Rule:     "I8: the time after which tickets end at a node that is gone survives a change of leader",
			Edits: []edit{{
				File: "internal/rules/ticketend.go",
				Old:  "if !time.whole && earlier != (ledger.Outage{}) && sameOutage(was, n) {",
				New:  "if time.whole && earlier != (ledger.Outage{}) && sameOutage(was, n) {",
			}},
			Expect: []string{"goes on from what the one before has counted"},
		},
		{
			Scenario: "node-deleted",
			Rule:     "I3: a Node that is gone proves nothing of its machine",
			Edits: []edit{{
				File: "internal/rules/evidence.go",
				Old:  "case n == nil || !n.Exists: //mutant:node-gone\n\t\te.usage = usageUnknown",
				New:  "case n == nil || !n.Exists: //mutant:node-gone\n\t\te.usage = usageNone",
			}},
			Expect: []string{"unpublish-while-staged", "the waiting pod is told", "ControllerUnpublish"},
		},
		{
			Scenario: "node-made-again",
			Rule:     "I3: what moorage-node has found at a Node made again by the same boot is staged there",
			Edits: []edit{{
				File: "internal/rules/evidence.go",
				Old:  "case n.SaysHas(v.ID) || n.MayBeUnstaged(v.ID):\n\t\treturn usageStaged\n",
				New:  "case n.MayBeUnstaged(v.ID):\n\t\treturn usageStaged\n",
			}},
			Expect: []string{"is told that its volume is staged"},
		},
		{
			Scenario: "dead-together",
			Rule:     "I8: the out-of-service taint counts that was set while nobody led",
			Edits: []edit{{
				File: "internal/rules/force.go",
				Old:  "return vouched(OutOfService, n, n.OutOfServiceAt, now)",
				New:  "return forcing{}",
			}},
			Expect: []string{"the detach from"},
		},
		{
			Scenario: "driver-down",
			Rule:     "I1: a volume counts where it may still be until its detach is over, also where its machine is known to be dead",
			Edits: []edit{{
				File: "internal/rules/plan.go",
				Old:  "if place.HasAttachments() || place.Reported { //mutant:free-too-early\n\t\treturn true",
				New:  "if place.HasAttachments() || place.Reported {\n\t\treturn false",
			}},
			Expect: []string{"two-nodes", "ControllerPublishVolume of the volume for"},
		},
		{
			Scenario: "name-reused",
			Rule:     "I3: another machine that has a node's name proves nothing of the first one",
			Edits: []edit{{
				File: "internal/ledger/boot.go",
				Old:  "return machine == \"\" || n.SystemUUID == machine && w.onlyOne(n)",
				New:  "return true",
			}, {
				File: "internal/rules/safety.go",
				Old:  "if replaced(n, va) {",
				New:  "if false {",
			}},
			Expect: []string{"ControllerUnpublishVolume of the volume for", "ControllerPublishVolume of the volume for"},
		},
		{
			Scenario: "reboot-in-grace",
			Rule:     "I3: no detach while the kubelet's last report has the volume in use, though the machine is off and its pod is deleted",
			Edits: []edit{{
				File: "internal/rules/evidence.go",
				Old:  "case p.InUse: //mutant:in-use",
				New:  "case false:",
			}, {
				File: "internal/protocol/node.go",
				Old:  "return !slices.Contains(node.InUse, c.Volume)",
				New:  "return true",
			}},
			Expect: []string{"ControllerUnpublishVolume of the volume for"},
		},
		{
			Scenario: "flapping",
			Rule:     "I3: the time of afterUnreachable begins anew when the node has been Ready",
			Edits: []edit{{
				File: "internal/ledger/apply_cluster.go",
				Old:  "rec.NotReady, rec.SawFail = time.Time{}, false\n\t\trec.forgetLease()",
				New:  "rec.SawFail = false\n\t\trec.forgetLease()",
			}},
			Expect: []string{"unpublish-while-staged", "VolumeAttachment of db is there", "ControllerUnpublishVolume of the volume for", "write-lost"},
		},
		{
			Scenario: "fenced-condition",
			Rule:     "I3: a condition of the Node that the policy names, set after the last sign of the node, frees what it has",
			Edits: []edit{{
				File: "internal/rules/force.go",
				Old:  "return vouched(FencedCondition, n, f.At, now)",
				New:  "return forcing{}",
			}},
			Expect: []string{" runs: not within"},
		},
		{
			Scenario: "network-fence",
			Rule:     "I3: a machine that a storage has cut off is let in only when nothing is mounted there",
			Edits: []edit{{
				File: "internal/rules/networkfence.go",
				Old:  "case m.Look == 0, m.LookSince != n.ReadySince, m.LookWord != n.Word.UID:\n\t\treturn AskBeforeUnfencing",
				New:  "case m.Look == 0, m.LookSince != n.ReadySince, m.LookWord != n.Word.UID:\n\t\treturn MayUnfence",
			}},
			Expect: []string{"let-in-mounted", "the machine is still cut off", "is not placed"},
		},
		{
			Scenario: "network-fence-fails",
			Rule:     "I3: nothing follows from a NetworkFence that the storage has not confirmed",
			Edits: []edit{{
				File: "internal/networkfence/decide.go",
				Old:  "return asked && f.Confirmed",
				New:  "return asked",
			}, {
				File: "internal/networkfence/decide.go",
				Old:  "case f.Succeeded && !f.Unfenced:\n\t\t\tact(Action{Do: Confirm, Machine: f.Machine})",
				New:  "case true:\n\t\t\tact(Action{Do: Confirm, Machine: f.Machine})",
			}},
			Expect: []string{"the NetworkFence is not confirmed yet"},
		},
		{
			Scenario: "network-fence-boot",
			Rule:     "I3: a machine that has booted is let in, whatever records are left",
			Edits: []edit{{
				File: "internal/rules/networkfence.go",
				Old:  "slices.ContainsFunc(n.Word.Mounted, of)",
				New:  "slices.ContainsFunc(n.Word.Has, of)",
			}},
			Expect: []string{"is let in"},
		},
		{
			Scenario: "kubelet-restart",
			Rule:     "I3: no detach while the kubelet reports the volume in use",
			Edits: []edit{{
				File: "internal/rules/evidence.go",
				Old:  "case p.InUse: //mutant:in-use",
				New:  "case false:",
			}, {
				File: "internal/protocol/node.go",
				Old:  "return !slices.Contains(node.InUse, c.Volume)",
				New:  "return true",
			}},
			Expect: []string{"still attached to worker-1", "unpublish-while-staged", "ControllerUnpublishVolume of the volume"},
		},
	}
}

// speaking lists the guards of what moorage-node says.
func speaking() []guard {
	return []guard{
		{
			Scenario: "kubelet-hole",
			Rule:     "I3: no detach while moorage-node finds the volume staged",
			Edits:    askNobody(),
			Expect:   []string{"unpublish-while-staged", "is told that its volume is staged at worker-1"},
		},
		{
			Scenario: "kubelet-hole-stopped",
			Rule:     "I3: with requireNodeWord the silence of moorage-node counts as in use",
			Edits: []edit{{
				File: "internal/rules/nodeword.go",
				Old:  "return !v.ID.NoAttach() && policyOf(s, v).RequireNodeWord",
				New:  "return false",
			}},
			Expect: []string{"unpublish-while-staged", "is told that moorage-node does not answer"},
		},
		{
			Scenario: "kubelet-hole-repaired",
			Rule:     "I3: what may be unstaged is not put back into volumesAttached",
			Edits: []edit{
				{File: "internal/rules/planattach.go", Old: "if node.MayBeUnstaged(p.volume.ID) { //mutant:no-order-fence", New: "if false {"},
				{File: "internal/protocol/attach.go", Old: "case n.MayBeUnstaged(t.Step.Volume):", New: "case false:"},
			},
			Expect: []string{"worker-2 says that it has unstaged the volume"},
		},
	}
}

// askNobody has nodes not be asked what they have.
func askNobody() []edit {
	return []edit{{
		File: "internal/rules/nodeword.go",
		Old:  "case p.volume.ID.NoAttach() || node == nil || node.Word == nil:",
		New:  "case true:",
	}}
}

// installing lists the guards of what is there before Moorage, and beside it.
func installing() []guard {
	return []guard{
		{
			Scenario: "adopt-and-leave",
			Rule:     "I8: a controller that begins to lead looks at everything, also at what it has never seen",
			Edits:    lookAtNothing(),
			Expect:   []string{"the VolumeHold says that"},
		},
		{
			Scenario: "adopt-many",
			Rule:     "I8: a controller that begins to lead looks at everything, also at what never changes",
			Edits:    lookAtNothing(),
			Expect:   []string{"every volume has its VolumeHold"},
		},
		{
			Scenario: "path-1-36",
			Rule:     "the scheduler leaves out what the API server does not serve",
			Edits:    []edit{{File: "plugins/scheduler/command.go", Old: "\theedServed(command)\n", New: ""}},
			Expect:   []string{"Moorage to serve and to lead"},
		},
		{
			Scenario: "stock-returns",
			Rule:     "section 7: attachments that somebody else makes in Standalone mode are told",
			Edits: []edit{{
				File: "controller/truth/truth.go",
				Old:  "if !c.config.Arbiter.Cooperative {",
				New:  "if false {",
			}},
			Expect: []string{"reported as somebody else's"},
		},
	}
}

// dying lists the guards of processes that may die at any instant.
func dying() []guard {
	return []guard{
		{
			Scenario: "crash",
			Rule:     "I8: a controller that begins to lead looks at everything, not only at what changes from then on",
			Edits:    lookAtNothing(),
			Expect:   []string{"all pods run", "a pod is"},
		},
		{
			Scenario: "chaos-short",
			Rule:     "I9: a detach that failed frees nobody",
			Edits:    freeFailed(),
			Expect:   []string{"two-nodes", "every pod runs"},
		},
	}
}

// deleteFirst deletes the VolumeAttachment before the volume has left
// volumesAttached, and takes it out afterwards.
func deleteFirst() []edit {
	return []edit{{
		File: "internal/rules/plandetach.go",
		Old:  "case place.Reported || va == nil || proof == ledger.ProofNone:",
		New:  "case va == nil || va.Deleting:",
	}, {
		File: "internal/rules/plandetach.go",
		Old:  "rule != \"\" && rule != AfterPodGone && step.Former == \"\" || !p.required ||",
		New:  "rule != \"no such rule\" ||",
	}}
}

// neverAgain takes a volume for attached that a kubelet has in volumesInUse, as
// it does while it waits for the attach.
func neverAgain() []edit {
	return []edit{{
		File: "internal/rules/planattach.go",
		Old:  "case va == nil && p.mayCreate(node, place) && p.gone(place):",
		New:  "case va == nil && !place.InUse && p.mayCreate(node, place) && p.gone(place):",
	}}
}

// lookAtNothing has a controller that begins to lead wait for what changes.
func lookAtNothing() []edit {
	return []edit{{File: "controller/run.go", Old: "\tstages.wake.all()\n", New: ""}}
}

// freeFailed takes a volume for gone from where its detach has failed.
func freeFailed() []edit {
	return []edit{{
		File: "internal/rules/plan.go",
		Old:  "if place.HasAttachments() || place.Reported {",
		New:  "if va := place.Own(); va != nil && va.DetachError.IsZero() || place.Reported {",
	}}
}

// namedVolume takes a PersistentVolume that no provisioner has made for a volume
// of its own, whatever disk it names.
const namedVolume = `func namedVolume(pv *corev1.PersistentVolume) (ledger.VolumeID, error) {
	handle := pv.Name
	if strings.HasPrefix(pv.Name, "pvc-") {
		handle = pv.Spec.CSI.VolumeHandle
	}
	return volumeID(pv.Spec.CSI.Driver, handle)
}

`

// detachedUnseen has a ticket be told that its volumes are detached while they are attached.
var detachedUnseen = []edit{{
	File: "internal/rules/detached.go",
	Old:  "is := attachedAt(place) || place.Left || p.unproved(place) || p.mayBeInUse(place) && (!told || unused(p.snapshot, place)) //mutant:detached-while-attached",
	New:  "is := false",
}, {
	File: "internal/rules/detached.go",
	Old:  "case p.hold.Version == \"\" || p.hold.Node != ledger.Detached: //mutant:detached-without-hold",
	New:  "case p.hold.Version == \"\":",
}}
