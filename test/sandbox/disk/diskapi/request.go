// SPDX-License-Identifier: Apache-2.0

package diskapi

type Request struct {
	Call   Call   `json:"call"`
	Volume string `json:"volume,omitempty"`
	Node   string `json:"node,omitempty"`
	Args
}

const DriverVersion = "1.0.0"

// Answer is the service's answer to a Request. A refusal is an Answer; an error means that the service
// could not be asked.
type Answer struct {
	ID        uint64            `json:"id"`
	Code      string            `json:"code"`
	Message   string            `json:"message,omitempty"`
	Volume    string            `json:"volume,omitempty"`
	SizeBytes int64             `json:"sizeBytes,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Snapshots []Snapshot        `json:"snapshots,omitempty"`
	Group     string            `json:"group,omitempty"`
	Context   map[string]string `json:"context,omitempty"`
	Slots     int               `json:"slots,omitempty"`
	// Hold names a fault of action hang-done: the node does its part, tells the service, and answers only
	// after the service.
	Hold string `json:"hold,omitempty"`
}

type Problem struct {
	Message string `json:"message"`
}
