// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting: this Node object's own kubelet has written its status, and an empty volumesInUse means that
// nothing is in use.
//
// A Node made from a file (kubectl replace --force, a backup) keeps the file's status
// (pkg/registry/core/node, PrepareForCreate), and its times prove nothing: the kubelet's clock may differ.
// managedFields have the API server's clock alone, and note at least the maker. A Node without any was
// stripped of them: then a volume in use counts, and the conditions' times.
func reporting(n *corev1.Node) bool {
	if len(n.ManagedFields) == 0 {
		return toldByStatus(n)
	}
	return writtenSince(n) != ""
}

// toldByStatus: the status itself shows a kubelet's write after a registration: by a volume in use, or a
// condition's times.
func toldByStatus(n *corev1.Node) bool { return len(n.Status.VolumesInUse) > 0 || toldByTimes(n) }

// toldByTimes: a condition's heartbeat is later than its transition. Both are of the kubelet's clock:
// registration makes them equal (pkg/kubelet, initialNode), every later write moves all heartbeats
// (nodestatus setters), and the transition stays. Unknown does not count: the node lifecycle controller
// writes it.
//
// A write within the registration's second does not show, since times have whole seconds. A kubelet's
// return after Unknown does not show either: its transitions are of that moment until its next write, up to
// nodeStatusReportFrequency later.
func toldByTimes(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Status != corev1.ConditionUnknown && kubeletCondition(c.Type) && c.LastHeartbeatTime.After(c.LastTransitionTime.Time) {
			return true
		}
	}
	return false
}

// volumesInUse, as a condition, means that a kubelet has written status.volumesInUse.
const volumesInUse corev1.NodeConditionType = "volumesInUse"

// writtenSince returns a condition, or volumesInUse, that a kubelet has written since the Node was made, by
// managedFields; or none. A Node's first status has no writer (pkg/registry/core/node, GetResetFields), nor
// has the type of a kubelet's first condition. Its heartbeat becomes the kubelet's with the first status
// write, also under Unknown, which moves no heartbeat. A write within the registration's second leaves the
// heartbeat; then the status shows it, since only kubelets write True and False. A condition added later
// may be the node lifecycle controller's, which adds only Unknown. Only kubelets write volumesInUse.
//
// Writers' names say nothing: distributions differ. A Node made from a file may have its predecessor's
// managedFields. They are older than the Node, and do not count.
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

// restored: a status written after the Node was made may be an earlier object's: a backup tool adds each
// condition, with heartbeats before the Node. A kubelet that fills in others' Node also adds them, but
// moves its heartbeats past the creation.
func restored(n *corev1.Node, added []bool) bool {
	for c, name := range kubeletConditions {
		condition := conditionOf(n, name)
		if added[c] && condition != nil && known(n, name) && condition.LastHeartbeatTime.Before(&n.CreationTimestamp) {
			return true
		}
	}
	return false
}

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

func conditionKey(name corev1.NodeConditionType) string { return `k:{"type":"` + string(name) + `"}` }

// SlimFields returns the managedFields that Node needs for the same fact: nearly always none.
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

// inherited: the Node may have an earlier object's status: its kubelet has not written since the Node was
// made, and the status is not a registration's, with equal heartbeat and transition in each condition.
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

// kubeletConditions leave out network providers' conditions, such as NetworkUnavailable.
var kubeletConditions = [...]corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

func kubeletCondition(t corev1.NodeConditionType) bool {
	for _, name := range kubeletConditions {
		if t == name {
			return true
		}
	}
	return false
}

// known: a condition is True or False. The node lifecycle controller writes only Unknown
// (pkg/controller/nodelifecycle, tryUpdateNodeHealth).
func known(n *corev1.Node, t corev1.NodeConditionType) bool {
	c := conditionOf(n, t)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse)
}

func conditionOf(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}
