// SPDX-License-Identifier: Apache-2.0

package diskapi

// Request is a CSI call as it reaches the service: from its own CSI endpoint,
// or from a node plugin over the admin API.
type Request struct {
	Call   Call   `json:"call"`
	Volume string `json:"volume,omitempty"`
	Node   string `json:"node,omitempty"`
	Args
}

// DriverVersion is the version of the CSI driver, which its controller part and its node part state.
const DriverVersion = "1.0.0"

// Answer is what the service says to a Request. A refusal is an Answer, not an
// error: an error means that the service could not be asked.
type Answer struct {
	// ID is the sequence number of the call's arrival in the log.
	ID uint64 `json:"id"`
	// Code is the gRPC code's name; "OK" for success.
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Volume and SizeBytes are set for CreateVolume, SizeBytes also for ControllerExpandVolume.
	Volume    string `json:"volume,omitempty"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	// Zone is set for CreateVolume if the disk is in a zone.
	Zone string `json:"zone,omitempty"`
	// Snapshots are set for CreateSnapshot and for the calls that make or read a group, with the handle
	// Group.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	Group     string     `json:"group,omitempty"`
	// Context is the publish context of ControllerPublish.
	Context map[string]string `json:"context,omitempty"`
	// Slots is set for NodeGetInfo.
	Slots int `json:"slots,omitempty"`
	// Hold names a fault of action hang-done that hit the call: the node does its own part, tells the
	// service, and answers only after the service.
	Hold string `json:"hold,omitempty"`
}

// Problem is the body of an admin API answer that is not a success.
type Problem struct {
	// Message names the fault and its remedy.
	Message string `json:"message"`
}
