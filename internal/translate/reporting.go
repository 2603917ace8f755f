// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting says whether this Node object's own kubelet has written its status since it
// registered, so that an empty volumesInUse means that nothing is in use. A status that is
// older than the Node is not its kubelet's word, whatever is in it. Otherwise evidence is a
// volume in use, which only kubelets write, a condition whose times say so, or the fields
// of the conditions that were written.
func reporting(n *corev1.Node) bool {
	return !inherited(n) && (len(n.Status.VolumesInUse) > 0 || toldByTimes(n) || writtenSince(n) != "")
}

// toldByTimes says whether a condition has a heartbeat that is later than its transition.
// Both of its times are of one clock, the kubelet's: registration makes them equal
// (pkg/kubelet, initialNode), every later status write moves all heartbeats (nodestatus
// setters), and the transition stays. What the node lifecycle controller writes instead is
// Unknown, and is not looked at.
//
// Times have whole seconds, so that a write within the second of the registration is not
// told by them. Nor is one of a kubelet that was silent until the node lifecycle controller
// wrote Unknown, and is back: all its transitions are of that moment, as after a
// registration, until it has written again, which takes up to nodeStatusReportFrequency.
func toldByTimes(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Status != corev1.ConditionUnknown && kubeletCondition(c.Type) && c.LastHeartbeatTime.After(c.LastTransitionTime.Time) {
			return true
		}
	}
	return false
}

// fieldsAhead is by how much managedFields may be older than the Node that they belong to: the
// API server notes the fields of a creation before it asks the first webhook, which may take
// 30 s, and the time of the creation after the last one.
const fieldsAhead = time.Minute

// writtenSince returns a condition with which the Node was made, and which a kubelet has
// written since, as managedFields tell; none: they tell of none. The API server notes the
// writers of fields of a status, and of each only those fields that it changed; of the status
// with which a Node is made it notes none (pkg/registry/core/node, GetResetFields). So the
// type of a condition that a kubelet registered with is nobody's, and its heartbeat becomes
// the kubelet's with the first status that it writes. It remains so when the node lifecycle
// controller writes Unknown, which moves no heartbeat. A first status that is written within
// the second of the registration leaves the heartbeat as it is, and is told by the status of a
// condition: it has been written since, and only kubelets write True and False. A condition that was added later is
// somebody's, such as those that this controller adds to a Node without any, and tells nothing.
//
// Names of writers say nothing: kubelets of several distributions have others. A Node that
// was made from a file may have the managedFields of the Node before it, and these are older.
func writtenSince(n *corev1.Node) corev1.NodeConditionType {
	var added, written [len(kubeletConditions)]bool
	for i := range n.ManagedFields {
		entry := &n.ManagedFields[i]
		if entry.Time == nil || entry.Time.Time.Before(n.CreationTimestamp.Add(-fieldsAhead)) {
			return ""
		}
		conditions, err := ownedConditions(entry.FieldsV1)
		if err != nil {
			return ""
		}
		for c, name := range kubeletConditions {
			owned := conditions[conditionKey(name)]
			_, itself := owned["."]
			_, typed := owned["f:type"]
			_, heartbeat := owned["f:lastHeartbeatTime"]
			_, status := owned["f:status"]
			added[c] = added[c] || itself || typed
			written[c] = written[c] || heartbeat || status && known(n, name)
		}
	}
	for c, name := range kubeletConditions {
		if written[c] && !added[c] && conditionOf(n, name) != nil {
			return name
		}
	}
	return ""
}

// ownedConditions are the fields of a status' conditions that an entry of managedFields
// has, by the key of the condition.
func ownedConditions(fields *metav1.FieldsV1) (map[string]map[string]struct{}, error) {
	if fields == nil || !strings.Contains(fields.GetRawString(), `"f:conditions"`) {
		return nil, nil
	}
	var owned struct {
		Status struct {
			Conditions map[string]map[string]struct{} `json:"f:conditions"`
		} `json:"f:status"`
	}
	err := json.Unmarshal([]byte(fields.GetRawString()), &owned)
	return owned.Status.Conditions, err
}

// conditionKey is how managedFields name a condition.
func conditionKey(name corev1.NodeConditionType) string { return `k:{"type":"` + string(name) + `"}` }

// SlimFields returns as much of a Node's managedFields as Node needs to make the same fact
// of it: nothing, where the rest of the Node tells it, as nearly always.
func SlimFields(n *corev1.Node) []metav1.ManagedFieldsEntry {
	if len(n.Status.VolumesInUse) > 0 || toldByTimes(n) {
		return nil
	}
	name := writtenSince(n)
	if name == "" {
		return nil
	}
	fields := fmt.Sprintf(`{"f:status":{"f:conditions":{%q:{"f:lastHeartbeatTime":{}}}}}`, conditionKey(name))
	return []metav1.ManagedFieldsEntry{{Time: &n.CreationTimestamp, FieldsV1: metav1.NewFieldsV1(fields)}}
}

// inherited says whether a Node has the status of an object before it, since its own
// kubelet has written none: none of the heartbeats there is as late as the Node. The API
// server takes the status of a Node that somebody makes from a file (kubectl replace
// --force, a backup; pkg/registry/core/node, PrepareForCreate). A kubelet whose clock is
// behind the API server's is believed as much later. One whose clock is ahead may have
// written such a status as little before: then its boot is the one that runs, or the
// machine has booted within that time.
func inherited(n *corev1.Node) bool {
	last := n.CreationTimestamp.Time
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if kubeletCondition(c.Type) && !c.LastHeartbeatTime.Time.Before(last) {
			return false
		}
	}
	return !last.IsZero()
}

// kubeletConditions are those that kubelets write; others, such as NetworkUnavailable, are
// a network provider's.
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
