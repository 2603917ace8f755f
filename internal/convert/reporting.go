// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting says whether this Node object's own kubelet has written its status since the Node
// was made, so that an empty volumesInUse means that nothing is in use.
//
// A Node that is made from a file (kubectl replace --force, a backup) keeps the status in the file
// (pkg/registry/core/node, PrepareForCreate), and no time in that status shows it: the kubelet's clock
// may be behind the API server's, or ahead. managedFields show it, by the API server's clock alone. The
// API server notes at least the maker in them. A Node without any was stripped of them; then a volume
// in use counts, and the times of the kubelet's conditions.
func reporting(n *corev1.Node) bool {
	if len(n.ManagedFields) == 0 {
		return toldByStatus(n)
	}
	return writtenSince(n) != ""
}

// toldByStatus says whether a status tells by itself that a kubelet has written it after a
// registration: it lists a volume in use, or the times of a condition say so.
func toldByStatus(n *corev1.Node) bool { return len(n.Status.VolumesInUse) > 0 || toldByTimes(n) }

// toldByTimes says whether a condition has a heartbeat that is later than its transition. Both of its
// times are of the kubelet's clock: registration makes them equal (pkg/kubelet, initialNode), every
// later status write moves all heartbeats (nodestatus setters), and the transition stays. The node
// lifecycle controller writes Unknown, which is not looked at.
//
// Times have whole seconds: a write within the second of the registration does not show. Nor does a
// write of a kubelet that was silent until the node lifecycle controller wrote Unknown, and is back:
// all its transitions are of that moment, as after a registration, until it has written again, which
// takes up to nodeStatusReportFrequency.
func toldByTimes(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Status != corev1.ConditionUnknown && kubeletCondition(c.Type) && c.LastHeartbeatTime.After(c.LastTransitionTime.Time) {
			return true
		}
	}
	return false
}

// volumesInUse in the place of a condition says that a kubelet has written status.volumesInUse.
const volumesInUse corev1.NodeConditionType = "volumesInUse"

// writtenSince returns a condition, or volumesInUse, that a kubelet has written since the Node was
// made, by managedFields; none: there is none. The API server notes the writers of changed fields of a
// status; for the status that a Node is made with it notes none (pkg/registry/core/node,
// GetResetFields). The type of a kubelet's first condition has no writer, and its heartbeat becomes the
// kubelet's with the first status that it writes. It remains so when the node lifecycle controller
// writes Unknown, which moves no heartbeat. A first status within the second of the registration leaves
// the heartbeat unchanged; the status of a condition shows it: it has been written since, and only
// kubelets write True and False. A condition that was added later may be the node lifecycle
// controller's, which adds Unknown alone. Only kubelets write volumesInUse.
//
// Names of writers say nothing: kubelets of several distributions have others. A Node that was made
// from a file may have the managedFields of the Node before it. They are older than the Node, and do
// not count.
func writtenSince(n *corev1.Node) corev1.NodeConditionType {
	var added, written [len(kubeletConditions)]bool
	inUse := false
	for i := range n.ManagedFields {
		entry := &n.ManagedFields[i]
		if entry.Time == nil || entry.Time.Before(&n.CreationTimestamp) {
			continue
		}
		fields, err := ownedFields(entry.FieldsV1)
		if err != nil {
			return ""
		}
		inUse = inUse || fields.InUse != nil
		for c, name := range kubeletConditions {
			owned := fields.Conditions[conditionKey(name)]
			_, itself := owned["."]
			_, typed := owned["f:type"]
			_, heartbeat := owned["f:lastHeartbeatTime"]
			_, status := owned["f:status"]
			added[c] = added[c] || itself || typed
			written[c] = written[c] || heartbeat || status && known(n, name)
		}
	}
	if restored(n, added[:]) {
		return ""
	}
	if inUse {
		return volumesInUse
	}
	for c, name := range kubeletConditions {
		if written[c] && conditionOf(n, name) != nil && (!added[c] || known(n, name)) {
			return name
		}
	}
	return ""
}

// restored says whether a status written after the Node was made may be of an earlier object: a backup
// tool that restores the status adds each condition, with heartbeats from before the Node. A kubelet
// that fills in a Node made by others also adds them, and moves its heartbeats past the creation.
func restored(n *corev1.Node, added []bool) bool {
	for c, name := range kubeletConditions {
		condition := conditionOf(n, name)
		if added[c] && condition != nil && known(n, name) && condition.LastHeartbeatTime.Before(&n.CreationTimestamp) {
			return true
		}
	}
	return false
}

// fieldsOwned are the fields of a status that an entry of managedFields has: of conditions, by the
// condition's key.
type fieldsOwned struct {
	Conditions map[string]map[string]struct{} `json:"f:conditions"`
	InUse      *struct{}                      `json:"f:volumesInUse"`
}

func ownedFields(fields *metav1.FieldsV1) (fieldsOwned, error) {
	var owned struct {
		Status fieldsOwned `json:"f:status"`
	}
	if fields == nil {
		return owned.Status, nil
	}
	if text := fields.GetRawString(); !strings.Contains(text, `"f:conditions"`) && !strings.Contains(text, `"f:volumesInUse"`) {
		return owned.Status, nil
	}
	err := json.Unmarshal([]byte(fields.GetRawString()), &owned)
	return owned.Status, err
}

// conditionKey is how managedFields name a condition.
func conditionKey(name corev1.NodeConditionType) string { return `k:{"type":"` + string(name) + `"}` }

// SlimFields returns as much of a Node's managedFields as Node needs to make the same fact of it:
// nothing, where the status tells the same without them, as nearly always.
func SlimFields(n *corev1.Node) []metav1.ManagedFieldsEntry {
	name := writtenSince(n)
	if len(n.ManagedFields) == 0 || name != "" && toldByStatus(n) {
		return nil
	}
	slim := metav1.ManagedFieldsEntry{Time: &n.CreationTimestamp}
	switch name {
	case "": // an entry that tells nothing
	case volumesInUse:
		slim.FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:volumesInUse":{}}}`)
	default:
		slim.FieldsV1 = metav1.NewFieldsV1(fmt.Sprintf(`{"f:status":{"f:conditions":{%q:{"f:lastHeartbeatTime":{}}}}}`, conditionKey(name)))
	}
	return []metav1.ManagedFieldsEntry{slim}
}

// inherited says whether a Node may have the status of an object before it: its own kubelet has not
// written since the Node was made, and the status is not that of a registration, which has the same
// time for heartbeat and transition of each condition.
func inherited(n *corev1.Node) bool {
	if len(n.ManagedFields) == 0 || reporting(n) {
		return false
	}
	registered := false
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if !kubeletCondition(c.Type) {
			continue
		}
		if !c.LastHeartbeatTime.Equal(&c.LastTransitionTime) {
			return true
		}
		registered = true
	}
	return !registered
}

// kubeletConditions are the kubelets' conditions; others, such as NetworkUnavailable, are a network
// provider's.
var kubeletConditions = [...]corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

func kubeletCondition(t corev1.NodeConditionType) bool {
	for _, name := range kubeletConditions {
		if t == name {
			return true
		}
	}
	return false
}

// known says whether a condition is True or False. The node lifecycle controller writes
// Unknown alone (pkg/controller/nodelifecycle, tryUpdateNodeHealth).
func known(n *corev1.Node, t corev1.NodeConditionType) bool {
	c := conditionOf(n, t)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse)
}

// conditionOf is a condition of a Node, or nil.
func conditionOf(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}
