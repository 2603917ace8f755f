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

func events(lists ...[]ledger.Event) []ledger.Event { return slices.Concat(lists...) }

func only(list ...ledger.Event) []ledger.Event { return list }

func slots(node ledger.NodeName, limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: node, Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: string(node), Limit: limit}}}
}

// slotsOf: two slots of driver, and limit slots of other.
func slotsOf(node ledger.NodeName, limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: node, Drivers: []ledger.DriverOnNode{
		{Name: driver, NodeID: string(node), Limit: 2}, {Name: other, NodeID: string(node), Limit: limit}}}
}

// treeSlots is for the driver that serves in-tree volumes of AWS.
func treeSlots(limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: "ebs.csi.aws.com", NodeID: "n1", Limit: limit}}}
}

func outOfService(node ledger.NodeName) ledger.Event {
	return ledger.NodeState{Name: node, UID: string(node), Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, OutOfService: true}
}

func volumeOf(claim string) ledger.VolumeID {
	return ledger.VolumeID{Driver: driver, Handle: claim}
}

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

func claim(name string, with func(*ledger.Claim)) []ledger.Event {
	c := ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: name}, UID: "claim-" + namespace + name, Access: ledger.AccessNode}
	with(&c)
	return only(c)
}

func late(name string) []ledger.Event {
	return append(claim(name, func(c *ledger.Claim) { c.Class = "late" }),
		ledger.StorageClass{Name: "late", Driver: driver, WaitForFirst: true})
}

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

func full() []ledger.Event {
	return events(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(attachment("a", "n1", nil), attachment("b", "n1", nil)))
}

func unattached() []ledger.Event {
	return events(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), only(ledger.Driver{Name: driver, AttachRequired: false}))
}

func mustBeThere(driver string) ledger.Event {
	return ledger.Driver{Name: driver, AttachRequired: true, NeedsNode: true}
}

func ephemeralOf(name string) []ledger.Event {
	p := at("n1", name)
	p.Volumes = []ledger.PodVolume{{Name: "v", Claim: name + "-v", Ephemeral: true}}
	return append(diskOf(driver, namespace, name+"-v", name, ledger.AccessNode), p,
		ledger.Claim{Key: ledger.ClaimKey{Namespace: namespace, Name: name + "-v"}, UID: "x", PersistentVolume: "pv-" + namespace + "-" + name + "-v", Bound: true, OwnerPod: p.UID})
}

func pod(name string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

func inline(name string) *corev1.Pod {
	p := pod(name)
	p.Spec.Volumes = []corev1.Volume{{Name: "inline", VolumeSource: corev1.VolumeSource{
		AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"},
	}}}
	return p
}

func ephemeral(name, volume string) *corev1.Pod {
	p := pod(name)
	p.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{},
	}}}}
	return p
}

func at(node ledger.NodeName, name string, claims ...string) ledger.Pod {
	p := ledger.Pod{UID: "uid-" + name, Namespace: namespace, Name: name, Node: node}
	for _, c := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: c, Claim: c})
	}
	return p
}

func byLabel() []ledger.Event {
	list := only(ledger.Driver{Name: driver, Version: "1", AttachRequired: true, SELinuxMount: true})
	for _, node := range []ledger.NodeName{"n1", "n2"} {
		list = append(list, ledger.NodeState{Name: node, UID: string(node), Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SELinuxMount: true})
	}
	return list
}

func withLevel(p *corev1.Pod, level string) *corev1.Pod {
	c := corev1.Container{Name: "c", SecurityContext: &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t", Level: level}}}
	for _, v := range p.Spec.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name})
	}
	p.Spec.Containers = []corev1.Container{c}
	return p
}

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

func ticket(kind ledger.TicketType, phase ledger.TicketPhase, node ledger.NodeName, name string, claims ...string) ledger.Ticket {
	t := ledger.Ticket{
		ID: ledger.TicketID{Namespace: namespace, Name: name}, UID: "ticket-" + name, Type: kind, Node: node, Phase: phase, Created: 1,
	}
	for _, c := range claims {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: c, ClaimUID: "claim-" + namespace + c})
	}
	return t
}
