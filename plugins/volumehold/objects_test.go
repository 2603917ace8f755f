// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func kubeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podWith(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{SchedulerName: profile},
	}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name:         claim,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
		})
	}
	return pod
}

func boundTo(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func terminating(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	return pod
}

func slotsAt(node string, limit int32, others ...string) ledger.Event {
	drivers := []ledger.DriverOnNode{{Name: driver, NodeID: node, Limit: limit}}
	for _, other := range others {
		drivers = append(drivers, ledger.DriverOnNode{Name: other, NodeID: node, Limit: 99})
	}
	return ledger.NodeDrivers{Node: ledger.NodeName(node), Drivers: drivers}
}

func readyNode(name string) ledger.Event {
	return ledger.NodeState{Name: ledger.NodeName(name), UID: name, Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
}

func volume(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: driver, Handle: handle} }

func disk(claim string, access ledger.Access) []ledger.Event {
	return diskOf(driver, claim, access)
}

func diskOf(driver, claim string, access ledger.Access) []ledger.Event {
	key := ledger.ClaimKey{Namespace: "shop", Name: claim}
	return []ledger.Event{
		ledger.PersistentVolume{Name: "pv-" + claim, UID: "pv-" + claim, Volume: ledger.VolumeID{Driver: driver, Handle: claim}, Access: access, Claim: key},
		ledger.Claim{Key: key, UID: "claim-" + claim, PersistentVolume: "pv-" + claim, Bound: true, Access: access},
	}
}

func pending(claim string) []ledger.Event {
	return []ledger.Event{
		ledger.StorageClass{Name: "late", Driver: driver, WaitForFirst: true},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: claim}, UID: "claim-" + claim, Class: "late", Access: ledger.AccessNode},
	}
}

func attached(claim, node string) ledger.Event {
	return ledger.Attachment{
		Name: ledger.AttachmentName(volume(claim), ledger.NodeName(node)), UID: "va-" + claim + node,
		Driver: driver, Node: ledger.NodeName(node), PersistentVolume: "pv-" + claim, Attached: true, Ours: true,
	}
}

func detached(claim, node string) ledger.Event {
	return ledger.AttachmentGone{Name: ledger.AttachmentName(volume(claim), ledger.NodeName(node))}
}

func all(lists ...[]ledger.Event) []ledger.Event {
	var events []ledger.Event
	for _, list := range lists {
		events = append(events, list...)
	}
	return events
}

func one(events ...ledger.Event) []ledger.Event { return events }

func objectName(pod *corev1.Pod) cache.ObjectName {
	return cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name}
}
