// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	driver    = "disk.example.com"
	other     = "other.example.com"
	namespace = "shop"
)

// events joins lists of events.
func events(lists ...[]ledger.Event) []ledger.Event { return slices.Concat(lists...) }

func only(list ...ledger.Event) []ledger.Event { return list }

// slots is a node's CSINode with so many slots of driver.
func slots(node ledger.NodeName, limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: node, Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: string(node), Limit: limit}}}
}

// slotsOf is a node's CSINode with two slots of driver, and so many of other.
func slotsOf(node ledger.NodeName, limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: node, Drivers: []ledger.DriverOnNode{
		{Name: driver, NodeID: string(node), Limit: 2}, {Name: other, NodeID: string(node), Limit: limit}}}
}

// treeSlots is the CSINode of n1 with so many slots of the driver that serves
// in-tree volumes of AWS.
func treeSlots(limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: "ebs.csi.aws.com", NodeID: "n1", Limit: limit}}}
}

// outOfService is a node that is known to be switched off, and that the node
// controller has not heard of for long.
func outOfService(node ledger.NodeName) ledger.Event {
	return ledger.NodeState{Name: node, UID: string(node), Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, OutOfService: true}
}

func volumeOf(claim string) ledger.VolumeID {
	return ledger.VolumeID{Driver: driver, Handle: claim}
}

// disk is a claim that is bound to a volume of driver, whose handle is the
// claim's name.
func disk(claim string, access ledger.Access) []ledger.Event {
	return diskOf(driver, namespace, claim, claim, access)
}

func diskOf(driver, namespace, claim, handle string, access ledger.Access) []ledger.Event {
	key := ledger.ClaimKey{Namespace: namespace, Name: claim}
	pv := "pv-" + namespace + "-" + claim
	return only(
		ledger.PersistentVolume{Name: pv, UID: pv, Volume: ledger.VolumeID{Driver: driver, Handle: handle}, Access: access, Claim: key},
		ledger.Claim{Key: key, UID: "claim-" + namespace + claim, PersistentVolume: pv, Bound: true, Access: access},
	)
}

// claim is one of the namespace, changed by with.
func claim(name string, with func(*ledger.Claim)) []ledger.Event {
	c := ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: name}, UID: "claim-" + namespace + name, Access: ledger.AccessNode}
	with(&c)
	return only(c)
}

// late is a claim that is bound when its first pod is scheduled.
func late(name string) []ledger.Event {
	return append(claim(name, func(c *ledger.Claim) { c.Class = "late" }),
		ledger.StorageClass{Name: "late", Driver: driver, WaitForFirst: true})
}

// attachment is the VolumeAttachment of a disk at a node, changed by with.
func attachment(claim string, node ledger.NodeName, with func(*ledger.Attachment)) ledger.Event {
	a := ledger.Attachment{
		Name: ledger.AttachmentName(volumeOf(claim), node), UID: "va-" + claim + string(node),
		Driver: driver, Node: node, PersistentVolume: "pv-" + namespace + "-" + claim, Attached: true, Ours: true,
	}
	if with != nil {
		with(&a)
	}
	return a
}

// full takes both slots of n1 with the attachments of two disks, a and b.
func full() []ledger.Event {
	return events(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(attachment("a", "n1", nil), attachment("b", "n1", nil)))
}

// unattached has driver attach nothing, and volumes a and b of it.
func unattached() []ledger.Event {
	return events(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(ledger.Driver{Name: driver, AttachRequired: false}))
}

// mustBeThere is a driver that keeps pods from nodes where it is not registered.
func mustBeThere(driver string) ledger.Event {
	return ledger.Driver{Name: driver, AttachRequired: true, NeedsNode: true}
}

// ephemeralOf is a pod at n1 with a generic ephemeral volume.
func ephemeralOf(name string) []ledger.Event {
	p := at("n1", name)
	p.Volumes = []ledger.PodVolume{{Name: "v", Claim: name + "-v", Ephemeral: true}}
	return append(diskOf(driver, namespace, name+"-v", name, ledger.AccessNode), p,
		ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: name + "-v"}, UID: "x", PersistentVolume: "pv-" + namespace + "-" + name + "-v", Bound: true, OwnerPod: p.UID})
}

// pod asks for claims of its namespace; none is mounted by a container.
func pod(name string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

// inline asks for a volume that is in the pod itself.
func inline(name string) *corev1.Pod {
	p := pod(name)
	p.Spec.Volumes = []corev1.Volume{{Name: "inline", VolumeSource: corev1.VolumeSource{
		AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"},
	}}}
	return p
}

// ephemeral asks for a generic ephemeral volume, whose claim is named after pod
// and volume.
func ephemeral(name, volume string) *corev1.Pod {
	p := pod(name)
	p.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{},
	}}}}
	return p
}

// at is a pod that runs at a node and uses claims.
func at(node ledger.NodeName, name string, claims ...string) ledger.Pod {
	p := ledger.Pod{UID: "uid-" + name, Namespace: namespace, Name: name, Node: node}
	for _, c := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: c, Claim: c})
	}
	return p
}

// byLabel has driver and the kubelets of n1 and n2 mount with SELinux labels.
func byLabel() []ledger.Event {
	list := only(ledger.Driver{Name: driver, Version: "1", AttachRequired: true, SELinuxMount: true})
	for _, node := range []ledger.NodeName{"n1", "n2"} {
		list = append(list, ledger.NodeState{Name: node, UID: string(node), Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SELinuxMount: true})
	}
	return list
}

// withLevel has a container mount all volumes of a pod, with a SELinux level or one that is the node's.
func withLevel(p *corev1.Pod, level string) *corev1.Pod {
	c := corev1.Container{Name: "c", SecurityContext: &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t", Level: level}}}
	for _, v := range p.Spec.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name})
	}
	p.Spec.Containers = []corev1.Container{c}
	return p
}

// labelledAs has a pod's volumes mounted with a SELinux level.
func labelledAs(p ledger.Pod, level string) ledger.Pod {
	p.Volumes = slices.Clone(p.Volumes)
	for i := range p.Volumes {
		p.Volumes[i].SELinux = ledger.SELinuxLabel("", level)
	}
	return p
}

func terminating(p ledger.Pod) ledger.Pod {
	p.Phase = ledger.PodTerminating
	return p
}

func ended(p ledger.Pod) ledger.Pod {
	p.Phase = ledger.PodFinished
	return p
}

// ticket asks for claims at a node.
func ticket(kind ledger.TicketType, phase ledger.TicketPhase, node ledger.NodeName, name string, claims ...string) ledger.Ticket {
	t := ledger.Ticket{
		ID: ledger.TicketID{Namespace: namespace, Name: name}, UID: "ticket-" + name, Type: kind, Node: node, Phase: phase, Created: 1,
	}
	for _, c := range claims {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: c, ClaimUID: "claim-" + namespace + c})
	}
	return t
}
