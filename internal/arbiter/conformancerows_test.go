// SPDX-License-Identifier: Apache-2.0

package arbiter_test

// upstreamRows are what the attach/detach controller's own tests assert. RT is
// reconciler_test.go, CT attach_detach_controller_test.go, PT the populator's
// test, ST the status updater's, IT test/integration/volume, AT
// csi_attacher_test.go, E test/e2e/storage.
func upstreamRows() []conformance {
	return []conformance{
		{"1", "nothing wanted, nothing done (RT:59)", same, "", []string{"script empty"}},
		{"2", "one pod with one volume: exactly one attach, then reported (RT:98)", same, "", []string{"script path", "test controller TestPodWithoutTicket", "sandbox path"}},
		{"3", "pod gone, volume not in use: one detach (RT:153)", same, "", []string{"script path", "test controller TestPodWithoutTicket", "sandbox path"}},
		{"4", "pod gone, volume in use: no detach before maxWait; after it if the node is not Ready (RT:229)", same, "on a Ready node never, at no time", []string{"script in-use", "script node-failure-pods", "test controller TestVolumeInUseStays"}},
		{"5", "the write of the node's status fails before a detach: no detach, and the volume stays reported (RT:326, 658)", same, "", []string{"script write-refused", "test internal/execute TestUnreportIsRefused"}},
		{"6", "ReadWriteMany at two nodes: two attaches, two detaches, independent (RT:405)", same, "", []string{"script shared"}},
		{"7", "ReadWriteOnce at two nodes: one attach; the second only after the first is detached (RT:501)", same, "also the reason, on pod and hold, for whom it waits", []string{"script two-bound", "script handover", "test controller TestHandover", "sandbox handover"}},
		{"8", "the attach fails and has happened: tried again until attached and reported; after the pod is gone detached, then attached elsewhere (RT:595)", same, "", []string{"script attach-lies"}},
		{"9", "the detach fails, and a pod comes back to the node: attached and reported again, no further detach; a third pod elsewhere stays blocked, without writes (RT:722)", differs, "the deletion of a VolumeAttachment can't be undone, and the kubelet mounts nothing of one that is being deleted: the volume is attached anew once the detach has succeeded. Upstream's test has a fake plugin; with CSI it waits as well, and with a stale report. moorage-attacher ends the deletion at once where the volume is still there", []string{"script readd-elsewhere", "script readd", "test controller TestReaddAfterFailedDetach", "sandbox readd"}},
		{"10", "the attach times out, the pod comes back elsewhere: the first node is detached from, then the second attached (RT:804)", same, "", []string{"script attach-lies"}},
		{"11", "out-of-service taint, volume still mounted: detached at once, and counted (RT:876, IT:148)", same, "and the node's terminating pods are removed at once, not up to 20 s later, those without volumes too", []string{"script node-failure-taint", "script node-failure-taint-pods", "test internal/arbiter TestAbandoned", "test controller TestOutOfService", "test internal/execute TestRemovePod", "test internal/report TestMetrics", "sandbox node-failure"}},
		{"12", "no taint: no detach while mounted (RT:978)", same, "", []string{"script in-use", "script node-failure-pods", "sandbox node-failure-wait"}},
		{"13", "not Ready for longer than maxWait: detached by force, and counted; a Ready node never (RT:1056)", same, "the time counts from when the last pod object was gone, survives a change of leader, and can be set by an AttachPolicy", []string{"script node-failure-pods", "script node-failure-restart", "script force-again", "script force-shared", "script in-use", "test controller/attachment TestForcedDetachIsTold", "sandbox forced-detach"}},
		{"14", "force detach switched off: no time forces it, the taint does (RT:1159)", same, "by driver and StorageClass", []string{"script force-off", "test internal/translate TestPolicy"}},
		{"15", "the Multi-Attach event names pods of the own namespace and counts others, once per volume and node (RT:1294)", same, "as the reason on pod, ticket and event", []string{"test internal/arbiter TestOtherNamespacesAreNotNamed", "script two-bound"}},
		{"16", "recovery: pods that came while it was away are attached for, exactly what is missing; what is left over is detached (CT:252)", same, "and who comes meanwhile waits for none of it", []string{"script recovery", "script adoption", "test controller TestAdoption", "test controller TestAdoptionHoldsUpNobody", "sandbox adopt-and-leave"}},
		{"17", "started with an attached VolumeAttachment of nobody: detached (CT:493)", same, "", []string{"script recovery", "script adoption"}},
		{"18", "started with one that is not attached yet: detached (CT:503)", same, "", []string{"script recovery"}},
		{"19", "started with a pod of a migrated PersistentVolume: attached under the CSI driver's name (CT:513)", same, "", []string{"test controller TestMigratedVolume", "test internal/translate TestVolumesOfPersistentVolumes"}},
		{"20", "the same without the pod: detached under that name (CT:524)", same, "", []string{"test controller TestMigratedVolume"}},
		{"21", "a deletion learnt of late (tombstone) counts as one (CT:734)", same, "", []string{"test controller TestEventsAreLost"}},
		{"22", "the event of a pod's deletion is lost: found within a minute (IT:240, PT:37)", same, "with the next list, which follows a lost watch at once", []string{"test controller TestEventsAreLost"}},
		{"23", "a pod that has Succeeded or Failed wants nothing (IT:315)", same, "", []string{"script finished", "test internal/translate TestPodPhase"}},
		{"24", "the event of a pod's creation is lost: found within three minutes (IT:504)", same, "with the next list", []string{"test controller TestEventsAreLost"}},
		{"25", "a claim that is bound after its pod is placed: attached then; pods without claims untouched (IT:582)", same, "the slot counts from when the pod is placed", []string{"script bound-late", "script unbound"}},
		{"26", "a CSIDriver turns attachRequired off: no attachment any more, the pod keeps running (PT:145, E csi_attach_volume.go:111)", same, "", []string{"script attach-required"}},
		{"27", "a CSIDriver with attachRequired=false comes after the pod: it starts without an attachment (E csi_attach_volume.go:163)", same, "", []string{"script driver-late"}},
		{"28", "attachments for a driver that needs them, for generic ephemeral volumes, and without a CSIDriver; none for one that does not (E csi_attach_volume.go:55-69)", same, "", []string{"script attach-required", "script path", "test internal/translate TestClassAndDriver", "test webhook/pod TestMutate", "sandbox volume-kinds"}},
		{"29", "the status write of one node fails: the others are written, and it is tried again (ST:104, 142, 199)", same, "several changes of a node share a write", []string{"script write-refused", "test internal/execute TestChangesOfANodeShareAPatch", "test internal/execute TestPatchErrors"}},
		{"30", "what the driver says of a failed attach is told word for word; a broken source is an error (AT:128-193)", same, "on the pod, its ticket and the hold, too", []string{"script attach-error", "script blockers", "test internal/translate TestVolumesOfPersistentVolumes"}},
		{"31", "a kubelet's WaitForAttach: attached is fine, else it tries again (AT:339-608)", others, "it finds the volume reported only once it is attached, and so never backs off", []string{"script path", "script attach-lies", "sandbox path"}},
		{"32", "VolumesAreAttached: what somebody deleted behind its back is found within a minute (AT:664-757)", better, "found at once, by the watch", []string{"script stale-report", "script attach-required"}},
		{"33", "detach: done, already gone, refused by the API (AT:826-830)", same, "", []string{"script path", "script detach-not-found", "script write-refused", "test internal/execute TestDeleteAttachment"}},
		{"39", "VolumeAttachments of others, with names of their own, are left alone (E volume_attachment.go:61, 184)", same, "and they count: nobody attaches the volume elsewhere", []string{"script foreign"}},
		{"40", "kubelet restarts; pods deleted, or deleted by force, while it is down: cleaned up, volumes reused, nothing lost (E disruptive.go:152-233)", same, "", []string{"script kubelet-restart", "sandbox kubelet-restart"}},
		{"41", "non-graceful shutdown with the out-of-service taint: the pod runs elsewhere soon (E non_graceful_node_shutdown.go:79)", same, "", []string{"script node-failure-taint", "sandbox node-failure"}},
		{"42", "several volumes in a pod, several pods at a node, moves, shared volumes (E multivolume.go:141-451)", same, "one that is held up holds up no other; block devices are attached alike", []string{"test internal/translate TestVolumesOfPersistentVolumes", "script multi", "script shared", "sandbox volume-kinds"}},
		{"43", "many pods and volumes under churn, and nothing is left over (E volume_stress.go:189)", same, "with every component killed meanwhile", []string{"sandbox crash", "test internal/arbiter TestWorld", "sandbox chaos-short"}},
	}
}

// hazardRows are what the source of the attach/detach controller, the kubelet
// and external-attacher shows, as far as it concerns attach and detach.
func hazardRows() []conformance {
	return []conformance{
		{"1", "iSCSI and FC attach without a VolumeAttachment, and their pods wait for volumesAttached all the same", same, "reported without one, at one node if exclusive; FlexVolumes are refused at the start, since nobody could attach them", []string{"script noattach", "script noattach-dead", "test internal/translate TestUniqueNames", "test controller TestFlexVolumes"}},
		{"2", "a Node made again under its name has empty lists: what nobody wants there is detached at once, mounted or not", stricter, "in use is unknown until the new object's own kubelet has reported", []string{"script node-new", "test internal/translate TestReporting"}},
		{"3", "a Node that is deleted: six minutes, then no check at all", same, "it proves nothing, and counts as unreachable", []string{"script node-gone", "test internal/execute TestUnreportWithoutNode"}},
		{"4", "kubelet dead, pod Terminating: no detach ever, and nobody is told", better, "told on the waiting pod, its claim and the hold, with the ways out; afterUnreachable if a policy sets it", []string{"script node-failure-pods", "script node-failure-unreachable", "sandbox node-failure-wait", "sandbox forced-unreachable"}},
		{"5", "a detach that failed or timed out does not keep a volume from another node", stricter, "nobody gets it until the VolumeAttachment is gone", []string{"script readd-elsewhere", "sandbox handover-failing"}},
		{"6", "external-attacher handles two attachments of one volume at the same time", stricter, "the second is created when the first is gone", []string{"script handover", "test controller TestHandover"}},
		{"7", "an attachError stays, and holds up the attach for up to two minutes after it would succeed", better, "never created before it can succeed: the error never comes to be. One that another controller has left stays until the attacher tries again", []string{"script attach-error-sticks", "script blockers", "script handover"}},
		{"8", "an attachment that is made before its pod is bound counts twice against the limit, and keeps its PersistentVolume from being deleted", better, "counts once; given back as soon as its claim or its PersistentVolume is to be deleted", []string{"script full-node", "script volume-deleted", "script slots", "sandbox full-node"}},
		{"9", "restarted between an early attachment and the bind, it detaches", better, "in Standalone mode nobody else detaches; beside it, the attachment is made again while the ticket is granted", []string{"script manual", "script cooperative-early", "sandbox manager-restarts"}},
		{"10", "it overwrites the whole of volumesAttached with what it knows", stricter, "single entries, with a test of the rest; a policy denies others' writes, and without it the controller writes nothing at all; beside that controller it writes none", []string{"test internal/execute TestUnreport", "test controller TestGuard", "test controller TestGuardIsKept", "test controller TestNothingIsWrittenUnguarded", "sandbox stock-returns", "script cooperative", "script cooperative-reports"}},
		{"11", "a PersistentVolume that vanishes leaves its attachment for ever, and nobody says so", better, "still held, still counted, told; never stripped", []string{"script lost"}},
		{"12", "two PersistentVolumes of one disk: the access mode of whichever came last, and the detach breaks when the first is deleted", stricter, "one volume, of the strictest mode", []string{"script one-disk", "script lost", "sandbox volume-kinds"}},
		{"13", "an inline volume's attachment is forgotten by a restart, and leaks", better, "kept and detached like any other", []string{"test controller TestMigratedInlineVolume", "test internal/execute TestCreateAttachmentOfInlineVolume"}},
		{"14", "a handle with ^ can never be detached", better, "driver and handle are parted at the first ^", []string{"script one-disk", "test internal/translate TestUniqueNames"}},
		{"15", "a CSIDriver that flips, goes or comes late: without one, volumes that needed no attachments get some", better, "nothing in use is touched; one that is made again within half a minute, as upgrades do, changes nothing", []string{"script attach-required", "script driver-late", "test internal/observe TestDriversThatAreMadeAgain"}},
		{"16", "no CSINode, or no driver in it: no limit at all, and attaches that fail", stricter, "no slot until it is known; a driver that goes and comes back holds up no attach", []string{"script attach-error-sticks", "script slots", "script blockers"}},
		{"17", "a limit that shrinks below what is used", same, "nothing new, and nothing is evicted; ResourceExhausted makes the node full until its CSINode changes, a slot comes free, or a minute is over", []string{"script slots", "script exhausted", "test controller TestNodeExhausted"}},
		{"18", "pods that no scheduler of ours placed", same, "they count from when they are bound, oldest first", []string{"script two-bound", "test controller TestPodsOfEveryOrigin"}},
		{"19", "nodes without the controller-managed annotation are ignored", same, "", []string{"script blockers", "test internal/translate TestNode"}},
		{"20", "a pod that is being deleted and of which no container status is known counts as ended", stricter, "it has not ended: only reports of every container end it", []string{"test internal/translate TestPodPhase", "script finished"}},
		{"21", "an entry that is missing from volumesAttached while a kubelet restarts makes it believe that the volume is not attached", stricter, "what is wanted and attached is in the list throughout, and put back whatever happened before", []string{"script kubelet-restart", "script write-refused", "script stale-report"}},
		{"22", "a pod that comes back to its node between unmount and detach finds the volume gone", better, "an undecided ticket keeps it; detachDelay keeps it for longer", []string{"script returns", "script detach-delay", "script detach-delay-slot", "sandbox tickets"}},
		{"23", "a volume that no container mounts is never reported in use, and so detached at once", same, "", []string{"script detach-not-found", "script path"}},
		{"24", "one status write for each detach", better, "what comes while a node's status is being written shares the next write; a lone change waits for nothing", []string{"test internal/execute TestWindow", "test internal/execute TestChangesOfANodeShareAPatch"}},
		{"25", "an old leader deletes by name, without preconditions", stricter, "UID and version; every write's deadline lies inside the lease", []string{"test internal/execute TestDeleteAttachment", "test internal/execute TestLease", "test controller TestTakeOver"}},
		{"26", "the six minutes start anew with the process", better, "durations are kept in the hold, and in the ticket; at most one step of them is waited for again, but for a Node that is deleted. Of a volume that many may share and that waits at several such nodes, the longest is kept, and the others start anew", []string{"script node-failure-restart", "script node-failure-unreachable", "script force-shared", "script force-shared-several", "script force-again", "test controller/ticket TestTimeToLiveSurvivesTheLeader", "sandbox forced-detach"}},
		{"27", "an attachment that can't be deleted, as its driver is gone, is told in a log", better, "on the pod that waits and on the hold: what its driver says, or since when it says nothing, and the way out; how to end it by hand is in operate/troubleshooting.md", []string{"script detach-unanswered", "script readd-elsewhere", "script lost", "test controller/mountgate TestWaitThatDoesNotPass"}},
		{"28", "access modes: none, ROX with RWO", same, "none is shared unless a policy says otherwise; ROX with RWO, which no attacher can attach, is refused with that reason", []string{"script shared", "test internal/translate TestAccess"}},
		{"29", "ReadWriteOncePod is kept by claim and by node", stricter, "by disk, across claims and nodes", []string{"script rwop"}},
		{"30", "a mount that stays busy keeps the volume in use", same, "and its node", []string{"script in-use"}},
		{"31", "a reservation whose pod goes away, or whose scheduler dies", better, "ends when a consistent read shows the pod gone", []string{"script ghosts", "test controller TestReservationOfAPodThatIsGone"}},
		{"32", "a claim that is deleted with its pod must not be kept by a reservation", same, "", []string{"script unbound"}},
		{"33", "the out-of-service taint forces a detach from a Ready node, too", stricter, "never from a Ready node, nor are its pods removed", []string{"script node-failure-taint", "script node-failure-taint-pods", "test controller TestOutOfService"}},
		{"34", "what is mounted is remembered from the last node event", stricter, "nothing is remembered: the write itself proves volumesInUse", []string{"test internal/execute TestUnreport", "script adoption"}},
		{"35", "attachments of others", same, "adopted only under the name that volume and node lead to", []string{"script foreign"}},
	}
}
