// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type Outcome string

const (
	Fits Outcome = "fits"
	// Evictable: fewer pods on the node would do (Unschedulable; an extender's FailedNodes).
	Evictable Outcome = "evictable"
	// Hopeless: fewer pods on the node would not help (UnschedulableAndUnresolvable; an extender's
	// FailedAndUnresolvableNodes).
	Hopeless Outcome = "hopeless"
)

type Row struct {
	Name  string
	Facts []ledger.Event
	Pod   *corev1.Pod
	Node  string
	Outcome
	// Message follows "0/3 nodes are available: 3 ".
	Message string
}

// Nodes are n1, n2 and n3, with two slots of driver each.
func Nodes() []ledger.Event {
	var list []ledger.Event
	for _, name := range []ledger.NodeName{"n1", "n2", "n3"} {
		list = append(list, ledger.NodeState{Name: name, UID: string(name), Ready: ledger.ReadyTrue, Managed: true, Reporting: true}, slots(name, 2))
	}
	return list
}

func Table() []Row { return slices.Concat(held(), onePod(), seLinux(), limits(), claims()) }

const (
	noSlot    = "node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 2 used)"
	heldAtN2  = "node(s) can't take volume data: n2 holds it for pod shop/holder"
	inUse     = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod: volume data serves one pod at a time (ReadWriteOncePod) and is in use for pod shop/holder"
	noDriver  = "disk.example.com CSI driver is not installed on the node: driver disk.example.com is not registered"
	labelled  = "node(s) unfit: volume data is used at n2 with another SELinux label for pod shop/holder: a kubelet mounts a volume with one label at a time"
	exhausted = "node(s) where driver disk.example.com has no room for another volume (it answered ResourceExhausted)"
)

func held() []Row {
	rwo, p := disk("data", ledger.AccessNode), pod("p", "data")
	return []Row{
		{"free", rwo, p, "n1", Fits, ""},
		{"no volumes", nil, pod("p"), "n1", Fits, ""},
		{"held elsewhere by a live pod", events(rwo, only(at("n2", "holder", "data"))), p, "n1", Hopeless, heldAtN2},
		{"held elsewhere, and full", events(rwo, full(), only(at("n2", "holder", "data"))), p, "n1", Hopeless, noSlot + ", " + heldAtN2},
		{"held here", events(rwo, only(at("n2", "holder", "data"))), p, "n2", Fits, ""},
		{"held elsewhere by pods that are going", events(rwo, only(terminating(at("n2", "holder", "data")))), p, "n1", Fits, ""},
		{"held elsewhere by one that is going and one that stays", events(rwo, only(terminating(at("n2", "gone", "data")), at("n2", "holder", "data"))),
			p, "n1", Hopeless, heldAtN2},
		{"held elsewhere by a pod that has ended", events(rwo, only(ended(at("n2", "job", "data")))), p, "n1", Fits, ""},
		{"held elsewhere at a node that is fenced", events(rwo, only(outOfService("n2"), at("n2", "holder", "data"))), p, "n1", Fits, ""},
		{"held elsewhere by an attachment only", events(rwo, only(attachment("data", "n2", nil))), p, "n1", Fits, ""},
		{"attached by hand elsewhere", events(rwo, only(ticket(ledger.TypeManual, ledger.TicketGranted, "n2", "keep", "data"))),
			p, "n1", Hopeless, "node(s) can't take volume data: n2 holds it for ticket shop/keep"},
		{"attached by hand here", events(rwo, only(ticket(ledger.TypeManual, ledger.TicketGranted, "n2", "keep", "data"))), p, "n2", Fits, ""},
		{"two claims of one volume", events(rwo, diskOf(driver, namespace, "alias", "data", ledger.AccessNode), only(at("n2", "holder", "data"))),
			pod("p", "alias"), "n1", Hopeless, "node(s) can't take volume alias: n2 holds it for pod shop/holder"},
		{"held for another namespace", events(rwo, diskOf(driver, "else", "data", "data", ledger.AccessNode), only(
			ledger.Pod{UID: "uid-secret", Namespace: "else", Name: "secret", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})),
			p, "n1", Hopeless, "node(s) can't take volume data: n2 holds it for somebody of another namespace"},
		{"shared, in use elsewhere", events(disk("data", ledger.AccessMany), only(at("n2", "holder", "data"))), p, "n1", Fits, ""},
		{"shared, and its PersistentVolume is being deleted", only(
			ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: ledger.VolumeID{Driver: driver, Handle: "data"}, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: namespace, Name: "data"}, Deleting: true},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: "data"}, UID: "claim", PersistentVolume: "pv", Bound: true, Access: ledger.AccessMany},
		), p, "n1", Fits, ""},
	}
}

func onePod() []Row {
	rwop, p := disk("data", ledger.AccessPod), pod("p", "data")
	holder := at("n2", "holder", "data")
	return []Row{
		{"one pod, free", rwop, p, "n1", Fits, ""},
		{"one pod, here", events(rwop, only(holder)), p, "n2", Evictable, inUse},
		{"one pod, elsewhere", events(rwop, only(holder)), p, "n1", Hopeless, inUse},
		{"one pod, by volume", events(rwop, diskOf(driver, namespace, "alias", "data", ledger.AccessPod), only(holder)), pod("p", "alias"), "n2",
			Evictable, "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod: volume alias serves one pod at a time (ReadWriteOncePod) and is in use for pod shop/holder"},
		{"one pod, another volume of the same claim name", events(rwop, diskOf(driver, "else", "data", "theirs", ledger.AccessPod), only(
			ledger.Pod{UID: "uid-theirs", Namespace: "else", Name: "theirs", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})),
			p, "n1", Fits, ""},
		{"one pod, of an ephemeral volume", events(diskOf(driver, namespace, "holder-data", "data", ledger.AccessPod), rwop, only(
			ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: "holder-data"}, UID: "x", PersistentVolume: "pv-shop-holder-data", Bound: true, OwnerPod: "uid-holder", Access: ledger.AccessPod},
			ledger.Pod{UID: "uid-holder", Namespace: namespace, Name: "holder", Node: "n2", Volumes: []ledger.PodVolume{{Name: "data", Claim: "holder-data", Ephemeral: true}}})),
			p, "n2", Evictable, inUse},
	}
}

func seLinux() []Row {
	rwx, rwo := events(disk("data", ledger.AccessMany), byLabel()), events(disk("data", ledger.AccessNode), byLabel())
	p, holder := withLevel(pod("p", "data"), "s0:c1,c2"), at("n2", "holder", "data")
	other, same := only(labelledAs(holder, "s0:c3,c4")), only(labelledAs(holder, "s0:c1,c2"))
	return []Row{
		{"another SELinux label, here", events(rwx, other), p, "n2", Evictable, labelled},
		{"another SELinux label, elsewhere", events(rwx, other), p, "n1", Fits, ""},
		{"the same SELinux label", events(rwx, same), p, "n2", Fits, ""},
		{"a SELinux label beside none", events(rwx, only(holder)), p, "n2", Evictable, labelled},
		{"no SELinux label beside one", events(rwx, other), pod("p", "data"), "n2", Evictable, labelled},
		{"a SELinux label that the node chooses", events(rwx, other), withLevel(pod("p", "data"), ""), "n2", Fits, ""},
		{"another SELinux label, of an exclusive volume", events(rwo, other), p, "n2", Evictable, labelled},
		{"another SELinux label, of pods that are going", events(rwx, only(terminating(labelledAs(holder, "s0:c3,c4")))), p, "n2", Evictable, labelled},
		{"another SELinux label, of a pod that has ended", events(rwx, only(ended(labelledAs(holder, "s0:c3,c4")))), p, "n2", Fits, ""},
		{"another SELinux label, and the node has no SELinux", events(rwx, only(ledger.NodeState{Name: "n2", UID: "n2", Version: "3", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}), other), p, "n2", Fits, ""},
		{"another SELinux label, and the driver mounts without", events(disk("data", ledger.AccessMany), byLabel(), only(ledger.Driver{Name: driver, Version: "2", AttachRequired: true}), other), p, "n2", Fits, ""},
	}
}

func limits() []Row {
	data, p := disk("data", ledger.AccessNode), pod("p", "data")
	both := events(data, disk("more", ledger.AccessNode))
	far := diskOf(other, namespace, "far", "far", ledger.AccessNode)
	return []Row{
		{"full of attachments", events(data, full()), p, "n1", Evictable, noSlot},
		{"full, and shared", events(disk("data", ledger.AccessMany), full()), p, "n1", Evictable, noSlot},
		{"full with the pod's own attachment", full(), pod("p", "a"), "n1", Fits, ""},
		{"full of attachments under way", events(data, disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(
			attachment("a", "n1", func(a *ledger.Attachment) { a.Attached = false }),
			attachment("b", "n1", func(a *ledger.Attachment) { a.Deleting = true }))), p, "n1", Evictable, noSlot},
		{"full of attachments that nobody can place", events(data, only(
			attachment("x", "n1", func(a *ledger.Attachment) { a.Name, a.PersistentVolume, a.Ours = "foreign-1", "nowhere-1", false }),
			attachment("y", "n1", func(a *ledger.Attachment) { a.Name, a.PersistentVolume, a.Ours = "foreign-2", "nowhere-2", false }))), p, "n1", Evictable, noSlot},
		{"full of pods without attachments", events(data, disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(at("n1", "x", "a"), at("n1", "y", "b"))), p, "n1", Evictable, noSlot},
		{"full of volumes that the node's status names", events(data, disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(
			ledger.NodeState{Name: "n1", UID: "n1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true,
				InUse: []ledger.VolumeID{volumeOf("a")}, Reported: []ledger.VolumeID{volumeOf("b")}})), p, "n1", Evictable, noSlot},
		{"one volume of many pods counts once", events(data, disk("a", ledger.AccessMany), only(at("n1", "x", "a"), at("n1", "y", "a"), attachment("a", "n1", nil))), p, "n1", Fits, ""},
		{"one volume of many claims counts once", events(data, disk("a", ledger.AccessMany), diskOf(driver, namespace, "b", "a", ledger.AccessMany),
			only(at("n1", "x", "a"), at("n1", "y", "b"))), p, "n1", Fits, ""},
		{"too few slots for all of the pod's", events(both, disk("a", ledger.AccessNode), only(attachment("a", "n1", nil))), pod("p", "data", "more"), "n1",
			Evictable, "node(s) exceed max volume count: too few free slots of driver disk.example.com (1 of 2 used, 2 needed)"},
		{"limit of 0", events(data, only(slots("n1", 0))), p, "n1", Evictable, "node(s) exceed max volume count: no free slot of driver disk.example.com (0 of 0 used)"},
		{"no limit", events(data, full(), only(slots("n1", ledger.NoLimit))), p, "n1", Fits, ""},
		{"limit lowered under use", events(data, full(), only(slots("n1", 1))), p, "n1", Evictable, "node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 1 used)"},
		{"limit lowered under use, own attachment", events(full(), only(slots("n1", 1))), pod("p", "a"), "n1", Fits, ""},
		{"headroom", events(data, disk("a", ledger.AccessNode), only(attachment("a", "n1", nil), ledger.Policy{Name: "spare", Driver: driver, Headroom: 1})), p, "n1",
			Evictable, "node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 1 used, AttachPolicy spare sets that limit)"},
		{"no CSINode", events(data, only(ledger.NodeDriversGone{Node: "n1"})), p, "n1", Fits, ""},
		{"no CSINode, and the driver has to be there", events(data, only(ledger.NodeDriversGone{Node: "n1"}, mustBeThere(driver))), p, "n1", Hopeless, noDriver},
		{"two drivers, one of them absent", events(data, far), pod("p", "data", "far"), "n1", Fits, ""},
		{"two drivers, one of them absent that has to be there", events(data, far, only(mustBeThere(other))), pod("p", "data", "far"), "n1",
			Hopeless, "other.example.com CSI driver is not installed on the node: driver other.example.com is not registered"},
		{"two drivers, both with room", events(data, far, only(slotsOf("n1", 1))), pod("p", "data", "far"), "n1", Fits, ""},
		{"two drivers, one of them full", events(data, far, only(slotsOf("n1", 0))), pod("p", "data", "far"), "n1",
			Evictable, "node(s) exceed max volume count: no free slot of driver other.example.com (0 of 0 used)"},
		{"a volume of the tree, which CSI serves", only(treeSlots(1)), inline("p"), "n1", Fits, ""},
		{"a volume of the tree, and its driver is full", only(treeSlots(0)), inline("p"), "n1",
			Evictable, "node(s) exceed max volume count: no free slot of driver ebs.csi.aws.com (0 of 0 used)"},
		{"a volume of the tree, and its driver is absent", nil, inline("p"), "n1", Fits, ""},
		{"a volume of the tree, and its driver is absent and has to be there", only(mustBeThere("ebs.csi.aws.com")), inline("p"), "n1",
			Hopeless, "ebs.csi.aws.com CSI driver is not installed on the node: driver ebs.csi.aws.com is not registered"},
		{"a driver that does not attach, full of pods", events(data, unattached(), only(at("n1", "x", "a"), at("n1", "y", "b"))), p, "n1", Evictable, noSlot},
		{"a driver that does not attach, with room", events(data, unattached(), only(at("n1", "x", "a"))), p, "n1", Fits, ""},
		{"a driver that does not attach, one volume of many pods", events(data, unattached(), only(at("n1", "x", "a"), at("n1", "y", "a"))), p, "n1", Fits, ""},
		{"a driver that does not attach, of the pod's own volume", events(unattached(), only(at("n1", "x", "a"), at("n1", "y", "b"))), pod("p", "a"), "n1", Fits, ""},
		{"a driver that does not attach, without a limit", events(data, unattached(), only(at("n1", "x", "a"), at("n1", "y", "b"), slots("n1", ledger.NoLimit))), p, "n1", Fits, ""},
		{"a driver that does not attach, bound on first use", events(late("data"), unattached(), only(at("n1", "x", "a"), at("n1", "y", "b"))), p, "n1", Evictable, noSlot},
		{"a driver that does not attach, full of ephemeral volumes", events(data, unattached(), ephemeralOf("x"), ephemeralOf("y")), p, "n1", Evictable, noSlot},
		{"driver ran out of room", events(data, disk("a", ledger.AccessNode), only(attachment("a", "n1", func(a *ledger.Attachment) {
			a.Attached, a.AttachError = false, ledger.CallError{Code: ledger.ResourceExhausted}
		}))), p, "n1", Evictable, exhausted},
	}
}

func claims() []Row {
	p := pod("p", "data")
	return []Row{
		{"no such claim", nil, p, "n1", Hopeless, `persistentvolumeclaim "data" not found`},
		{"claim being deleted", append(disk("data", ledger.AccessNode), claim("data", func(c *ledger.Claim) {
			c.PersistentVolume, c.Bound, c.Deleting = "pv-shop-data", true, true
		})...), p, "n1", Hopeless, `persistentvolumeclaim "data" is being deleted`},
		{"claim lost", claim("data", func(c *ledger.Claim) { c.PersistentVolume, c.Lost = "pv-shop-data", true }), p, "n1",
			Hopeless, `persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-shop-data"`},
		{"claim bound to what is not seen", claim("data", func(c *ledger.Claim) { c.PersistentVolume, c.Bound = "pv-shop-data", true }), p, "n1",
			Hopeless, `persistentvolume "pv-shop-data" not found: claim data is bound to it`},
		{"not bound yet", claim("data", func(*ledger.Claim) {}), p, "n1", Hopeless, "pod has unbound immediate PersistentVolumeClaims: claim data is not bound yet"},
		{"bound on first use", late("data"), p, "n1", Fits, ""},
		{"bound on first use, full", events(late("data"), full()), p, "n1", Evictable, noSlot},
		{"bound on first use, shared with a pod here", events(late("data"), disk("a", ledger.AccessNode), only(attachment("a", "n1", nil)),
			only(at("n1", "holder", "data"))), p, "n1", Fits, ""},
		{"bound on first use, held elsewhere", events(late("data"), only(at("n2", "holder", "data"))), p, "n1", Hopeless, heldAtN2},
		{"to be provisioned by what is no CSI driver", events(claim("data", func(c *ledger.Claim) { c.Class = "local" }),
			only(ledger.StorageClass{Name: "local", Driver: "rancher.io/local-path", WaitForFirst: true})), p, "n1", Fits, ""},
		{"ephemeral, of somebody else", disk("p-data", ledger.AccessNode), ephemeral("p", "data"), "n1",
			Hopeless, "claim p-data exists, and is another one than is meant: it has another owner than the pod, or another UID than the ticket names"},
	}
}
