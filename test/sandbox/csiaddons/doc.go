// SPDX-License-Identifier: Apache-2.0

// Package csiaddons plays csi-addons (github.com/csi-addons/kubernetes-csi-addons, v0.14.0) for
// the driver of the sandbox: its controllers of NetworkFences and CSIAddonsNodes, and the
// sidecars that make CSIAddonsNodes. The definitions of the objects are csi-addons' own, and so
// is the gRPC by which the driver is called.
//
//	reads   NetworkFences, NetworkFenceClasses, CSIAddonsNodes, Nodes
//	decides nothing of its own
//	writes  status.result and status.message of NetworkFences, with the real one's words;
//	        CSIAddonsNodes and their status; calls of the driver's FenceController
//
// As the real one does, it writes the whole object when it sets its finalizer, with the empty
// fields that its Go types can't leave out, so that metadata.generation may rise; it never says
// of which generation a status is; it fences anew whatever asks for it when it starts; a
// NetworkFence that is deleted leaves the clients fenced; a failure is tried again after 5 ms,
// doubled each time; a CSIAddonsNode is looked at when it is made, when csi-addons starts and
// once an hour, and deleted when it can't be reached four times in 14 s.
//
// That calls fail, hang or are answered late is up to the faults of the disk service.
//
// It leaves out: secrets, parameters and capabilities; the election of a leading sidecar, for
// which the driver's controller socket stands; pods and addresses of sidecars: one is reached
// while its node's plugin answers and the Node is not Unknown, as no network is here for a
// partition to cut; the CSIAddonsNodes' finalizer and annotations; every other kind of object.
package csiaddons
