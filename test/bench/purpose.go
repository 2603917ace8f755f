// SPDX-License-Identifier: Apache-2.0

package bench

import "strings"

type reason struct {
	who  string // end of the user name; nodes are "node:*"
	what string // verb and resource
	buys string
}

func reasons() []reason {
	return []reason{
		{"kube-scheduler", "create pods/binding", "the pod has a node"},
		{"kube-scheduler", "create events", "people see where it was placed"},
		{"kube-scheduler", "patch pods/status", "people see why no node fits"},
		{"node:*", "patch pods/status", "phase, conditions and addresses of the pod"},
		{"node:*", "patch nodes/status", "volumesInUse: what the kubelet may be using"},
		{"node:*", "create events", "people see what the kubelet did"},
		{"node:*", "patch events", "the same event again, counted"},
		{"node:*", "delete pods", "the pod object goes once its containers are gone"},
		{"csi-attacher", "patch persistentvolumes", "finalizer: the volume stays while it is attached; once in its life"},
		{"csi-attacher", "patch volumeattachments", "finalizer and node ID; at the end the finalizer again"},
		{"csi-attacher", "patch volumeattachments/status", "attached, with the driver's metadata; the error of a failed try"},
		{"attachdetach-controller", "create volumeattachments", "the order to attach"},
		{"attachdetach-controller", "delete volumeattachments", "the order to detach"},
		{"attachdetach-controller", "patch nodes/status", "volumesAttached: the kubelet may mount, or may not any more"},
		{"attachdetach-controller", "create events", "people see that it is attached"},
		{"node-controller", "create events", "none of the pods' business: background"},
		{"pvc-protection-controller", "update persistentvolumeclaims/status", "condition Unused of the claim"},
		{"moorage-scheduler", "create pods/binding", "the pod has a node"},
		{"moorage-scheduler", "create events", "people see where it was placed"},
		{"moorage-scheduler", "patch pods/status", "nominatedNodeName, which kube-scheduler writes before a wait in Permit; or why no node fits"},
		{"moorage-scheduler", "create volumetickets", "the reservation: what is to be at the node before the pod is"},
		{"moorage-scheduler", "delete volumetickets", "a reservation is given up"},
		{"moorage-controller", "create volumeholds", "who holds the volume; its number of transitions"},
		{"moorage-controller", "update volumeholds", "holder and next holder change by compare-and-swap"},
		{"moorage-controller", "patch volumeholds", "holder and next holder change by compare-and-swap"},
		{"moorage-controller", "delete volumeholds", "nobody holds the volume, and nothing is to be remembered"},
		{"moorage-controller", "update volumetickets/status", "Granted: the commit of a grant; then Satisfied"},
		{"moorage-controller", "patch volumetickets/status", "Granted: the commit of a grant; then Satisfied"},
		{"moorage-controller", "delete volumetickets", "the pod is its own ticket from here on"},
		{"moorage-controller", "create volumeattachments", "the order to attach"},
		{"moorage-controller", "patch volumeattachments", "a DELETE still in flight fails, before the volume is put back"},
		{"moorage-controller", "delete volumeattachments", "the order to detach"},
		{"moorage-controller", "patch nodes/status", "volumesAttached: the kubelet may mount, or may not any more"},
		{"moorage-controller", "patch pods/status", "safeToMount, safeToDetach and the reason, for people and tools"},
		{"moorage-controller", "create events", "people see what happened to the volume"},
		{"generic-garbage-collector", "delete volumetickets", "the ticket goes with its pod"},
		{"generic-garbage-collector", "patch volumetickets", "the ticket's owner is gone"},
	}
}

// It is empty for an unexplained write.
func purpose(w Write) string {
	for _, r := range reasons() {
		if r.what == w.Verb+" "+w.Resource && (w.User == r.who || strings.HasSuffix(w.User, ":"+r.who)) {
			return r.buys
		}
	}
	return ""
}
