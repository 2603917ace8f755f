// SPDX-License-Identifier: Apache-2.0

package verdicts_test

type section struct {
	title   string
	clauses []clause
	both    bool
}

func sections() []section {
	return []section{
		{"ReadWriteOnce", oneNode(), true},
		{"ReadWriteOncePod", onePod(), true},
		{"Shared and contradicting access modes", shared(), true},
		{"SELinux labels", seLinux(), true},
		{"Limits", limits(), true},
		{"Claims", claims(), true},
		{"Nominated pods, preemption, and what goes wrong meanwhile", meanwhile(), false},
		{"What has a pod tried again", again(), false},
		{"Groups, batching, scores, words", rest(), false},
		{"Duties of the plugins that the profile replaces or reorders", duties(), false},
		{"Extender", extender(), false},
		{"Configuration", configuration(), false},
	}
}

func oneNode() []clause {
	return []clause{
		{"free", "fits", []string{"verdict free", "verdict no volumes", "script path"}},
		{"held elsewhere by a live pod", "no; only the holder's node is looked at", []string{"verdict held elsewhere by a live pod", "verdict held elsewhere, and full",
			"test plugins/volumehold TestPreFilterNarrowsToTheHolder", "script rollout", "sandbox rollout"}},
		{"held elsewhere by an attachment only", "fits: it is detached there, and then attached", []string{"verdict held elsewhere by an attachment only", "script handover", "sandbox handover"}},
		{"reserved elsewhere for another pod", "no", []string{"verdict held elsewhere by a live pod", "test internal/ledger TestReserve"}},
		{"held elsewhere by a ticket of a user", "no", []string{"verdict attached by hand elsewhere", "verdict attached by hand here", "script manual", "sandbox tickets"}},
		{"held on this node", "fits", []string{"verdict held here", "script rollout"}},
		{"the holder's pods are all terminating", "fits: promised and bound at once, attached after the detach", []string{"verdict held elsewhere by pods that are going",
			"verdict held elsewhere by one that is going and one that stays", "script handover", "test plugins/scheduler TestPodsOfAStatefulSet"}},
		{"the holder is fenced", "fits", []string{"verdict held elsewhere at a node that is fenced", "script node-failure-taint", "sandbox node-failure"}},
		{"two new pods with one new claim at the same instant", "both on one node, where the class allows the volume", []string{"test plugins/scheduler TestTwoPodsOfOneNewClaim",
			"verdict bound on first use, shared with a pod here", "verdict bound on first use, held elsewhere", "script unbound"}},
		{"pods of a Deployment", "the new one goes where the volume is", []string{"sandbox rollout", "sandbox extender-rollout", "script rollout", "test plugins/scheduler TestPodsOfADeployment"}},
		{"pods of a StatefulSet", "the next one waits for the last to go", []string{"sandbox handover", "script handover", "test plugins/scheduler TestPodsOfAStatefulSet"}},
		{"pods of a Job", "one that has ended holds nothing", []string{"verdict held elsewhere by a pod that has ended", "script finished", "test plugins/scheduler TestPodsOfAJob"}},
		{"two claims of one volume", "one volume", []string{"verdict two claims of one volume", "script one-disk"}},
		{"held for another namespace", "no, and its pod is not named", []string{"verdict held for another namespace", "test internal/rules TestOtherNamespacesAreNotNamed", "script namespaces"}},
	}
}

func onePod() []clause {
	return []clause{
		{"in use here or elsewhere", "no; by preemption where it is", []string{"verdict one pod, free", "verdict one pod, here", "verdict one pod, elsewhere", "script rwop"}},
		{"by volume, not by claim", "another claim of the volume counts, the claim's name in another namespace doesn't", []string{"verdict one pod, by volume", "verdict one pod, another volume of the same claim name", "script rwop", "script namespaces"}},
		{"generic ephemeral volumes", "count as any other", []string{"verdict one pod, of an ephemeral volume", "script namespaces", "script claims"}},
		{"preemption", "frees it", []string{"test plugins/scheduler TestVolumeOfOnePodIsPreempted", "test plugins/extender TestPreemptAddsWhoeverHasTheVolume", "script namespaces"}},
	}
}

func seLinux() []clause {
	return []clause{
		{"another label is mounted at the node, or granted there", "no, at that node; by preemption", []string{"verdict another SELinux label, here", "verdict another SELinux label, elsewhere",
			"verdict another SELinux label, of an exclusive volume", "script selinux", "test plugins/scheduler TestPodsWithAnotherSELinuxLabelWait"}},
		{"no label beside one", "no, at that node: a volume that is relabelled file by file is mounted without one", []string{"verdict a SELinux label beside none", "verdict no SELinux label beside one", "script selinux"}},
		{"labels that may be the same", "fits: only what surely conflicts counts", []string{"verdict the same SELinux label", "verdict a SELinux label that the node chooses", "script selinux"}},
		{"node or driver mounts without labels", "fits", []string{"verdict another SELinux label, and the node has no SELinux", "verdict another SELinux label, and the driver mounts without", "script selinux"}},
		{"the other pod goes", "fits when its containers have ended", []string{"verdict another SELinux label, of pods that are going", "verdict another SELinux label, of a pod that has ended", "script selinux"}},
	}
}

func shared() []clause {
	return []clause{
		{"ReadWriteMany, ReadOnlyMany, also with ReadWriteOnce", "free of exclusivity, and use a slot", []string{"verdict shared, in use elsewhere", "verdict full, and shared", "script shared"}},
		{"the PersistentVolume is being deleted", "as before: its attacher refuses it, or not", []string{"verdict shared, and its PersistentVolume is being deleted", "script volume-deleting-used"}},
		{"no access modes", "shared, as for the attach/detach controller", []string{"verdict shared, in use elsewhere", "script shared", "test internal/convert TestAccess"}},
	}
}

func limits() []clause {
	return []clause{
		{"attached, being attached, being detached", "a slot each", []string{"verdict full of attachments", "verdict full of attachments under way", "script limit", "sandbox limit", "sandbox extender-limit"}},
		{"of unknown state: the node's status names it", "a slot", []string{"verdict full of volumes that the node's status names", "script limit"}},
		{"foreign attachments", "a slot each", []string{"verdict full of attachments that nobody can place", "script foreign"}},
		{"reservations", "a slot each", []string{"verdict full of pods without attachments", "script limit", "script withdrawn"}},
		{"pods without attachments yet", "a slot for each volume", []string{"verdict full of pods without attachments", "script limit"}},
		{"one volume of many pods, claims or PersistentVolumes", "one slot", []string{"verdict one volume of many pods counts once", "verdict one volume of many claims counts once", "script one-disk"}},
		{"the pod's own attachment", "is not counted again", []string{"verdict full with the pod's own attachment", "verdict limit lowered under use, own attachment", "script full-node", "sandbox full-node", "sandbox extender-full-node"}},
		{"more volumes than slots", "no", []string{"verdict too few slots for all of the pod's", "script slots"}},
		{"limit of 0; no limit", "none; any number", []string{"verdict limit of 0", "verdict no limit", "script slots"}},
		{"no CSINode, or the driver is not in it", "fits, unless the CSIDriver says preventPodSchedulingIfMissing", []string{"verdict no CSINode", "verdict no CSINode, and the driver has to be there", "verdict two drivers, one of them absent that has to be there", "script slots"}},
		{"limit lowered under use", "nothing new", []string{"verdict limit lowered under use", "script slots", "test plugins/scheduler TestLimitLoweredUnderUse"}},
		{"headroom", "is kept free", []string{"verdict headroom", "script slots"}},
		{"the driver said ResourceExhausted", "no", []string{"verdict driver ran out of room", "test controller TestNodeExhausted", "script slots"}},
		{"several drivers in one pod", "each by its own limit", []string{"verdict two drivers, both with room", "verdict two drivers, one of them full", "verdict two drivers, one of them absent", "script drivers"}},
		{"migrated in-tree PersistentVolumes and inline volumes", "slots of the CSI driver", []string{"verdict a volume of the tree, which CSI serves", "verdict a volume of the tree, and its driver is full",
			"verdict a volume of the tree, and its driver is absent", "verdict a volume of the tree, and its driver is absent and has to be there", "test internal/convert TestVolumesOfPersistentVolumes", "test internal/convert TestInlineVolumes"}},
		{"attachRequired=false, and the node's CSINode states a limit", "a slot for each volume that pods use; reserved in the scheduler's memory", []string{
			"verdict a driver that does not attach, full of pods", "verdict a driver that does not attach, with room", "verdict a driver that does not attach, one volume of many pods",
			"verdict a driver that does not attach, of the pod's own volume", "verdict a driver that does not attach, bound on first use", "verdict a driver that does not attach, full of ephemeral volumes",
			"script limit-unattached", "test plugins/scheduler TestLimitOfADriverThatAttachesNothing"}},
		{"attachRequired=false, and no limit is stated; iSCSI and FC", "any number", []string{"verdict a driver that does not attach, without a limit", "script attach-required", "script noattach"}},
		{"volumes that no container mounts", "count: no pod of the verdicts has a container", []string{"verdict full of attachments", "script finished"}},
	}
}

func claims() []clause {
	return []clause{
		{"a claim to be provisioned by what is no CSI driver", "needs no attachment and no slot: no CSIDriver has the provisioner's name, and no node has registered it", []string{"verdict to be provisioned by what is no CSI driver", "script no-csi-driver"}},
		{"WaitForFirstConsumer", "a slot is reserved by the claim's UID before anything is provisioned, and stays without a gap", []string{"verdict bound on first use", "verdict bound on first use, full", "script unbound", "script slot-before-volume",
			"test internal/ledger TestReservedClaimBecomesAVolume", "test plugins/extender TestSlotsOfClaimsThatAreBeingProvisioned"}},
		{"Immediate, not bound yet", "waits", []string{"verdict not bound yet", "script unbound", "script claims"}},
		{"missing", "no node, until it comes", []string{"verdict no such claim", "sandbox volume-wait", "test plugins/scheduler TestMissingClaim", "script claims"}},
		{"of somebody else, by an ephemeral volume's name", "no node", []string{"verdict ephemeral, of somebody else", "script claims"}},
		{"being deleted; lost", "no node", []string{"verdict claim being deleted", "verdict claim lost", "script claims"}},
		{"bound to what is not seen", "waits", []string{"verdict claim bound to what is not seen", "script claims"}},
	}
}

func meanwhile() []clause {
	return []clause{
		{"nominated pods", "count at their node", []string{"test plugins/volumehold TestNominatedPodsCount", "test plugins/volumehold TestTriedAgainAfterANomination", "test plugins/extender TestNomineesCount", "script dry-run"}},
		{"dry runs of preemption", "a delta over the unchanged snapshot", []string{"test plugins/volumehold TestPreemptionCountsOnFreedSlots", "script dry-run"}},
		{"preemption frees a slot, and the detach takes time", "the pod waits for the detach; no other pod is preempted", []string{"test plugins/scheduler TestPreemptionWaitsForTheDetach", "script preempted"}},
		{"the pod is tried again meanwhile, for a change that another plugin waits for", "nothing more is evicted for it, for 3 minutes at most, and it says so", []string{"test plugins/scheduler TestNothingMoreIsEvictedWhileASlotIsDetached", "test plugins/scheduler TestNothingMoreIsEvictedWhereTheNominationIsNotWritten", "test plugins/extender TestPreemptWaitsForTheDetach", "test plugins/internal/requeuer TestAwaitFreed"}},
		{"preempted before it is bound", "it no longer counts, and the pod with the higher priority gets the slot", []string{"test plugins/scheduler TestPreemptedBeforeItIsBound"}},
		{"deleted before it is bound", "it no longer counts", []string{"test plugins/scheduler TestPodDeletedBeforeItIsBound", "test plugins/volumehold TestPodsThatAreGoneAreForgotten"}},
		{"scheduler killed or paused before or in the bind", "the next leader waits until no Binding is under way, then reads and places; the pod runs", []string{"sandbox crash", "test plugins/scheduler TestLeaderWaitsForTheLeaderBefore", "test plugins/internal/binding TestRequestsEndWithTheLease"}},
		{"leader change", "a new leader first reads the pods that the former leader has bound", []string{"test plugins/scheduler TestNextLeaderTakesOver",
			"test plugins/extender TestLeaderFirstReadsWhatIsBound", "sandbox crash"}},
		{"a term ends while a bind is under way", "the Lease is handed over once its outcome is known, or not at all", []string{"test plugins/scheduler TestStopSettlesThenHandsOver", "test plugins/scheduler TestUnsettledKeepsTheLease",
			"test plugins/extender TestTermEndsWhileABindIsUnderWay", "test plugins/scheduler TestOthersAreAnsweredUntilItHasSettled"}},
		{"a bind gets no answer", "it is sent again until its outcome is known, and the slot counts as taken", []string{"test plugins/internal/binding TestUnansweredRequestIsSettled", "test plugins/volumehold TestPodCountsUntilItsBindingIsSettled",
			"test plugins/extender TestBindWithoutAnAnswerIsSettled"}},
		{"the pod changes between its reservation and its bind", "the Binding names its version: the pod is read, and bound all the same", []string{"test plugins/extender TestBindOfAPodThatChanges", "test plugins/internal/binding TestAnswers"}},
		{"two schedulers on the same nodes", "each promises alone; the check before the attach decides between them", []string{"test plugins/scheduler TestSlotIsTakenBeforeTheBinding", "test plugins/volumehold TestBindJudgesTheNodeOnceMore",
			"test plugins/extender TestOneSlotForTwo", "test controller TestLimit", "script contention"}},
		{"a claim or node that the scheduler has not seen", "decided once it is: no ticket is refused for it", []string{"test internal/tickets TestTicketsOfANodeShareItsSlots", "test internal/write TestRefusalReadsTheClaim"}},
		{"the controller is down", "pods are placed as ever, and wait for their attach", []string{"test plugins/scheduler TestPodsOfADeployment"}},
		{"a ticket with other parameters has the volume at the pod's node", "the pod is bound, and told to wait until that ticket has let go of the volume", []string{"script parameters-yield"}},
	}
}

func again() []clause {
	return []clause{
		{"what lifts a reason", "only the affected pods are tried again; a table names the change that lifts each reason", []string{"test plugins/volumehold TestEveryReasonHasALift", "test plugins/volumehold TestLiftsWakeThePod",
			"test plugins/volumehold TestEventsWakeThePodsTheyConcern"}},
		{"what lifts nothing", "wakes nobody", []string{"test plugins/volumehold TestNoiseWakesNobody", "test plugins/volumehold TestReservedPodsSleep"}},
		{"a slot comes free", "tried on the confirmed detach, not at a flush", []string{"test plugins/scheduler TestPodsWaitForSlots"}},
		{"time alone lifts a reason", "the pod is tried again, though no object changes", []string{"test plugins/volumehold TestTimeWakesThePod", "test plugins/internal/requeuer TestTimeAloneWakesThePod"}},
		{"a change makes an eviction help that would not have helped before", "the pod is tried, and evicts", []string{"test plugins/internal/requeuer TestTriedWhenAnEvictionHelps"}},
		{"a change while the pod is being tried", "is not lost", []string{"test plugins/volumehold TestChangeDuringTheCycle"}},
		{"refused, with the extender", "tried on the change that lifts it", []string{"test plugins/extender TestRefusedPodsAreTriedAgain", "test plugins/extender TestOneNudgeIsEnough", "test plugins/extender TestNudgeOnlyWhoStillWaits"}},
		{"refused, with the extender, where only a part of the cluster was asked about", "tried again for further parts", []string{"test plugins/extender TestAskedAboutAPartOfTheCluster"}},
		{"kube-scheduler would place the pod, and no new node could lift the wait", "gated, reason VolumeWait: neither cluster-autoscaler nor Karpenter adds nodes", []string{"test plugins/volumehold TestWhoIsGated", "test plugins/scheduler TestGateVolumesAtTwoNodes",
			"test plugins/scheduler TestHolderDoesNotSuitThePod", "test internal/rules TestNewNodeTwin", "sandbox volume-wait"}},
		{"kube-scheduler's own plugins also refuse the pod", "Unschedulable, in their words", []string{"test plugins/scheduler TestWordsOfStock", "test plugins/scheduler TestMissingClaim", "test plugins/scheduler TestVolumeOfOnePodInUse", "sandbox volume-wait"}},
		{"a new node would lift it", "Unschedulable: nodes are added", []string{"test plugins/scheduler TestNoFreeSlotAddsNodes", "test plugins/volumehold TestGateOpensForANewNode"}},
	}
}

func rest() []clause {
	return []clause{
		{"a PodGroup with fewer pods than minMember", "reserves nothing: its pods are not tried, and say how many are missing. A pod with scheduling gates does not count", []string{"test plugins/volumehold TestIncompleteGroup", "test plugins/scheduler TestIncompleteGroupReservesNothing", "test plugins/scheduler TestGroupComesAfterItsPods"}},
		{"PodGroups: minMember", "slots for all of its pods or for none, released together; a smaller minMember counts at once", []string{"test plugins/volumehold TestGroupGoesTogether", "test plugins/volumehold TestGroupIsReleasedTogether", "test plugins/volumehold TestGroupComesToNeedFewer", "sandbox pod-groups"}},
		{"two groups that each fit alone", "take turns", []string{"test plugins/volumehold TestHalfReservedGroupsDoNotDeadlock", "test plugins/scheduler TestGroupsTakeTurns", "sandbox pod-groups"}},
		{"a pod of a group has no node, and no other group is in its way", "all groups keep their nodes", []string{"test plugins/volumehold TestGatheringsKeepTheirNodes"}},
		{"a gang of Kubernetes' own PodGroups has no room", "none of its pods is bound, and it holds nothing", []string{"test plugins/scheduler TestGangThatDoesNotFitHoldsNothing"}},
		{"pod-group cycles of kube-scheduler 1.37", "simulate without a write", []string{"test plugins/volumehold TestPodGroupCyclesSimulate"}},
		{"all pods of a PodGroup", "get Moorage's scheduler, also those without volumes; a pod that names another scheduler keeps it", []string{"test webhook/pod TestMutate", "test webhook TestGroupsHaveOneScheduler"}},
		{"a gang of Kubernetes' own PodGroups outranks pods that have its slots or its volume", "evicts only as many pods as it needs, waits for their detach, and keeps the slots that come free first", []string{"test plugins/scheduler TestGangPreempts", "test plugins/scheduler TestGangWaitsForTheDetach", "test plugins/scheduler TestGangPreemptsTheUserOfItsVolume"}},
		{"many pods wait, and one slot comes free", "about one of them is tried, by priority and age. A pod that can't use the slot passes it on; a gated or deleted pod has no turn", []string{"test plugins/scheduler TestOneAttemptForOneSlot", "test plugins/scheduler TestWhoCanNotUseASlotPassesItOn", "test plugins/volumehold TestGatedPodsTakeNoTurn", "test plugins/volumehold TestDeletedPodsTakeNoTurn"}},
		{"batching (SignPod)", "on for pods without volumes", []string{"test plugins/volumehold TestSignPod", "test plugins/scheduler TestBatchingStaysOnForPodsWithoutVolumes"}},
		{"score", "the holder's node, attachments, balance of slots; from 0 to 100; by the args' weights", []string{"test internal/rules TestRank", "test plugins/volumehold TestScorePrefersWhereTheVolumeIs"}},
		{"a pod's claims are bound", "it goes on at once; upstream's VolumeBinding looks once a second", []string{"test plugins/promptbinding TestEndsWhenAllClaimsAreBound",
			"test plugins/promptbinding TestDoesNotEndBefore", "test plugins/promptbinding TestFailsAsUpstream"}},
		{"topology of a claim's class", "VolumeBinding decides it", []string{"test plugins/scheduler TestTwoPodsOfOneNewClaim"}},
		{"words", "grouped as by kube-scheduler, with the nodes that PreFilter left out; in condition, event and volume status", []string{"test plugins/scheduler TestPodsWaitForSlots", "test plugins/scheduler TestHolderDoesNotSuitThePod",
			"test plugins/volumehold TestGatedPodIsTold", "test controller/volumestatus TestUnplaced", "sandbox volume-wait"}},
	}
}

// Moorage's profile switches off NodeVolumeLimits and VolumeBinding, and comes before DefaultBinder.
func duties() []clause {
	words := "test plugins/scheduler TestWordsOfStock"
	return []clause{
		{"NodeVolumeLimits: the CSINode's count, for claims, generic ephemeral claims and migrated volumes", "as upstream, for all drivers; detaching and reserved volumes also count", []string{words,
			"verdict full of attachments", "verdict a driver that does not attach, full of ephemeral volumes", "verdict a volume of the tree, and its driver is full", "verdict full of pods without attachments"}},
		{"NodeVolumeLimits: a claim that is not bound counts for its class's provisioner", "as upstream", []string{"verdict bound on first use, full", "verdict a driver that does not attach, bound on first use"}},
		{"NodeVolumeLimits: CSI volumes that are written into the pod do not count", "as upstream", []string{"test internal/convert TestOwnCSIVolumes"}},
		{"NodeVolumeLimits: a volume that the node has already takes no further slot", "as upstream; the pod's own attachment takes no further slot", []string{"verdict one volume of many pods counts once", "verdict full with the pod's own attachment"}},
		{"NodeVolumeLimits: preventPodSchedulingIfMissing", "as upstream: only then a node without the driver is refused", []string{words, "verdict no CSINode", "verdict no CSINode, and the driver has to be there"}},
		{"NodeVolumeLimits: tried again when a CSINode states more, a pod or an attachment goes, a claim comes", "as upstream, and only the pods that it lets in", []string{"test plugins/volumehold TestEventsWakeThePodsTheyConcern", "test plugins/volumehold TestLiftsWakeThePod",
			"test plugins/scheduler TestLimitOfADriverThatAttachesNothing"}},
		{"NodeVolumeLimits: fewer pods on the node may help (Unschedulable): preemption", "as upstream, and waits for the detach", []string{"test plugins/volumehold TestPreemptionCountsOnFreedSlots", "test plugins/scheduler TestPreemptionWaitsForTheDetach"}},
		{"NodeVolumeLimits, VolumeBinding, VolumeRestrictions: pods already bound that are only resized are skipped", "as upstream", []string{"test plugins/volumehold TestBoundPodsAreSkipped"}},
		{"NodeVolumeLimits: pods that are placed at the same time count each other", "as upstream", []string{"test plugins/scheduler TestLimitOfADriverThatAttachesNothingAtOnce", "test plugins/scheduler TestPodsWaitForSlots"}},
		{"VolumeBinding: claims that are missing, lost, deleted, unbound or foreign", "as upstream, in its words: PromptVolumeBinding is it, and comes before VolumeZone", []string{words, "test manifests TestSchedulerConfiguration"}},
		{"VolumeBinding: the PersistentVolume's node affinity, and its zone (VolumeZone)", "as upstream", []string{words}},
		{"VolumeBinding: binds, provisions, fails and times out", "as upstream; goes on at once", []string{"test plugins/promptbinding TestEndsWhenAllClaimsAreBound", "test plugins/promptbinding TestDoesNotEndBefore", "test plugins/promptbinding TestFailsAsUpstream"}},
		{"VolumeRestrictions: ReadWriteOncePod, and its preemption", "as upstream, and by volume, not by claim", []string{words, "test plugins/scheduler TestVolumeOfOnePodInUse", "test plugins/scheduler TestVolumeOfOnePodIsPreempted", "verdict one pod, by volume"}},
		{"DefaultBinder: binds by the pod's UID", "as upstream for pods without volumes; else by UID and version", []string{"test plugins/volumehold TestBindCarriesVersionAndReservation", "test plugins/scheduler TestLimitOfADriverThatAttachesNothing"}},
		{"SignPod: pods with the same volumes share results", "not for pods with volumes: each reservation changes their nodes", []string{"test plugins/volumehold TestSignPod"}},
	}
}

func extender() []clause {
	return []clause{
		{"the same verdicts as the plugin", "one table", []string{"test plugins/extender TestVerdicts", "test plugins/volumehold TestVerdictsAsStatuses"}},
		{"filter, with and without nodeCacheCapable", "as asked", []string{"test plugins/extender TestFilterByNameAndByNode", "test plugins/extender TestStockSchedulerUnderstands"}},
		{"a filter that no bind follows", "leaves nothing behind", []string{"test plugins/extender TestFilterReservesNothing"}},
		{"prioritize", "as the plugin's score", []string{"test plugins/extender TestPrioritizePrefersWhereTheVolumeIs"}},
		{"a slot that the plugin or the extender has reserved", "is taken for the other at once", []string{"test plugins/scheduler TestPluginAndExtenderSeeEachOther"}},
		{"bind", "reservation and binding; all or nothing, whether or not the client waits", []string{"test plugins/extender TestBindIsOneWrite", "test plugins/extender TestBindThatComesToNothing",
			"test plugins/extender TestBindOutlivesItsClient"}},
		{"the same bind again", "is harmless", []string{"test plugins/extender TestBindAgain", "test plugins/extender TestBindTwiceAtOnce", "test plugins/extender TestBindWhoseAnswerIsLost"}},
		{"preempt", "nodes where it helps, and the pods that have slots or volume", []string{"test plugins/extender TestPreemptLeavesTheNodesWhereItHelps", "test plugins/extender TestPreemptAddsWhoeverHasTheSlots"}},
		{"malformed, huge, slow, hostile requests", "a clear error, bounded memory, no panic", []string{"test plugins/extender TestBadRequestsGetAClearError", "test plugins/extender TestFilterOfALargeCluster", "test plugins/extender TestVerbsOfALargeCluster",
			"test plugins/extender TestLargeRequestsTakeTurns", "test plugins/extender TestClientsThatDawdle", "test plugins/extender FuzzVerbs"}},
		{"TLS with client authentication", "only schedulers", []string{"test plugins/extender TestOnlySchedulersMayConnect", "test plugins/extender TestCertificatesAreReloadedWithoutARestart"}},
		{"stock kube-scheduler 1.37 with the extender and without NodeVolumeLimits", "the outcome of the plugin", []string{"sandbox extender-rollout", "sandbox extender-limit", "sandbox extender-full-node"}},
	}
}

func configuration() []clause {
	return []clause{
		{"typed, defaulted, validated args", "bad ones are refused at start-up", []string{"test plugins/volumehold TestDecodeArgs", "test plugins/scheduler TestBadArgsAreRefused", "test api/config/v1alpha1 TestDefaults", "test api/config/v1alpha1 TestValidate"}},
		{"second profile, and only scheduler", "both in manifests and chart", []string{"test manifests TestSchedulerConfiguration"}},
		{"a profile that also has NodeVolumeLimits", "refused at start-up, with the fix", []string{"test plugins/scheduler TestProfilesThatAreRefused"}},
		{"VolumeHold before VolumeBinding in preBind, or at some of its extension points only, scores apart", "refused at start-up, with the fix", []string{"test plugins/scheduler TestProfilesThatAreRefused"}},
		{"both PromptVolumeBinding and VolumeBinding", "refused at start-up, with the fix", []string{"test plugins/scheduler TestProfilesThatAreRefused"}},
		{"pods of other profiles", "are not gated, and their volumes count", []string{"test plugins/scheduler TestStockProfileIsNotGated"}},
	}
}
