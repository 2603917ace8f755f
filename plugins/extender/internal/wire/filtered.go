// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Filtered is the result of filter (extenderv1.ExtenderFilterResult).
type Filtered struct {
	Nodes                      *NodeList                 `json:",omitempty"`
	NodeNames                  *[]string                 `json:",omitempty"`
	FailedNodes                extenderv1.FailedNodesMap `json:",omitempty"`
	FailedAndUnresolvableNodes extenderv1.FailedNodesMap `json:",omitempty"`
	Error                      string                    `json:",omitempty"`
}

// NodeList is a corev1.NodeList of nodes as sent.
type NodeList struct {
	Items []json.RawMessage `json:"items"`
}

// Passed lets nodes pass, in the form in which they were sent.
func Passed(nodes []Node, named bool) Filtered {
	if named {
		names := make([]string, len(nodes))
		for i, node := range nodes {
			names[i] = node.Name
		}
		return Filtered{NodeNames: &names}
	}
	list := &NodeList{Items: make([]json.RawMessage, len(nodes))}
	for i, node := range nodes {
		list.Items[i] = node.Object
	}
	return Filtered{Nodes: list}
}

// Count is how many nodes pass.
func (f Filtered) Count() int {
	switch {
	case f.NodeNames != nil:
		return len(*f.NodeNames)
	case f.Nodes != nil:
		return len(f.Nodes.Items)
	}
	return 0
}
