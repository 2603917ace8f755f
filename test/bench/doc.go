// SPDX-License-Identifier: Apache-2.0

// Package bench measures how long volumes take to attach and detach, and the cost to the API
// server, in Moorage and in upstream side by side, on clusters of package sandbox.
//
//	reads    the API server's audit log, the disk service's log, an observer's
//	         watches, and /proc for CPU time
//	decides  nothing about volumes: it makes load, and computes percentiles
//	writes   claims, pods and their deletion; a result file
//
// A Case is a load (how many pods, at once or spaced apart) on a shape of cluster (attach latency,
// the kubelets' status interval). A Setup is the attaching side: Moorage, or upstream with default
// or raised request limits. A Run is one case in one setup on a fresh cluster. Setups alternate,
// and their order rotates from case to case: a slow drift of the machine hits all.
//
// # The load
//
// Claims are bound before the clock starts: provisioning isn't measured. Every pod has an unused
// volume of its own. Pods are created, all run, they live on for the dwell time, then they are
// deleted in the same way in which they were created. "Spaced apart" is a ticker, and the dwell
// time a timer: both are part of the load, like the think time of a load generator. Every wait is
// for a condition.
//
// # Where each time comes from
//
// All processes run on one machine and read one clock.
//
//	created, deleted   audit log: the pod's POST and first DELETE were received
//	                   (requestReceivedTimestamp), so what admission takes counts
//	bound              audit log: the binding was answered (stageTimestamp)
//	publish called     disk service: the first ControllerPublish arrived
//	publish returned   disk service: the first successful one was answered
//	stage called       disk service: the first NodeStage arrived
//	attached           watch: the VolumeAttachment says attached
//	reported           watch: the volume is in node.status.volumesAttached
//	running            watch: the pod's phase is Running
//	detached           watch: the VolumeAttachment is gone
//
// A watch is seen a little after the write. This lag is measured as BindingSeen: the time from the
// answer to the binding until the observer's watch delivered the bound pod.
//
// # Writes
//
// Audit events of level Metadata between the first creation and the first deletion are the attach
// phase's, and later events the detach phase's. Leases, tokens and access reviews are left out, and
// the load's own requests; requests that were answered with an error count.
package bench
