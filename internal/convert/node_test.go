// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type reportingTest struct {
	name       string
	created    metav1.Time
	conditions []corev1.NodeCondition
	inUse      []corev1.UniqueVolumeName
	fields     []metav1.ManagedFieldsEntry
	want       bool
}

func (test reportingTest) run(t *testing.T) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: test.created, ManagedFields: test.fields},
		Status:     corev1.NodeStatus{Conditions: test.conditions, VolumesInUse: test.inUse},
	}
	if got := Node(node).Reporting; got != test.want {
		t.Errorf("%s: reporting %v, want %v", test.name, got, test.want)
	}
	for range 2 { // informers slim a first list twice
		node.ManagedFields = SlimFields(node)
		if got := Node(node).Reporting; got != test.want || len(node.ManagedFields) > 1 {
			t.Errorf("%s, slim: reporting %v, want %v, with %d entries of managedFields", test.name, got, test.want, len(node.ManagedFields))
		}
	}
}

var registered = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func condition(typ corev1.NodeConditionType, status corev1.ConditionStatus, heartbeat, transition metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: typ, Status: status, LastHeartbeatTime: heartbeat, LastTransitionTime: transition}
}

func TestReporting(t *testing.T) {
	later, after := metav1.NewTime(registered.Add(7*time.Second)), metav1.NewTime(registered.Add(time.Hour))
	made := fieldsNoted(after, fieldsRegistered)
	for _, test := range []reportingTest{
		{name: "no status at all"},
		{name: "registered", conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, registered, registered),
			condition(corev1.NodeReady, corev1.ConditionFalse, registered, registered)}},
		{name: "registered, never heard of, marked Unknown by the lifecycle controller", conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "made by the lifecycle controller with a clock that is behind", conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, later, registered)}},
		{name: "heard of again after the lifecycle controller marked it Unknown, with nothing to write since", conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, later),
			condition(corev1.NodeReady, corev1.ConditionTrue, later, later)}},
		{name: "became Ready", want: true, conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, later, later)}},
		{name: "a network provider's condition", conditions: []corev1.NodeCondition{
			condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, later, registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
		{name: "reports a volume in use within its first second", want: true, inUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/d^h"},
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
		{name: "became Ready in the second in which it was made", want: true, created: later, conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, later, registered)}},
		{name: "made from a file with a status", created: after, fields: made, conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, later, registered)}},
		{name: "made from a file in which volumes are in use", created: after, fields: made, inUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/d^h"}, conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, later, registered)}},
		{name: "made from a file without conditions", created: after, fields: made, inUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/d^h"}},
		{name: "made from a file, and a network provider has written since", created: after, fields: append(fieldsNoted(after, fieldsNetwork), made...), conditions: []corev1.NodeCondition{
			condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, metav1.NewTime(after.Add(time.Minute)), registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, later, registered)}},
		{name: "made from a file, and its kubelet has written since", want: true, created: after, fields: append(fieldsNoted(after, fieldsWritten), made...), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, metav1.NewTime(after.Add(time.Minute)), registered)}},
	} {
		test.run(t)
	}
}

// The silent node's times look new after the lifecycle controller's Unknown.
func TestReportingByFields(t *testing.T) {
	later, after := metav1.NewTime(registered.Add(7*time.Second)), metav1.NewTime(registered.Add(time.Hour))
	back := []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, later),
		condition(corev1.NodeReady, corev1.ConditionTrue, later, later)}
	for _, test := range []reportingTest{
		{name: "heard of again after the lifecycle controller marked it Unknown, having written before", want: true, created: registered, conditions: back, fields: fieldsNoted(later, fieldsRegistered, fieldsWritten)},
		{name: "the same, with a creation that took a while", want: true, created: registered, conditions: back, fields: append(
			fieldsNoted(metav1.NewTime(registered.Add(-20*time.Second)), fieldsRegistered), fieldsNoted(later, fieldsWritten)...)},
		{name: "marked Unknown, having written before", want: true, created: registered, fields: fieldsNoted(later, fieldsRegistered, fieldsHeartbeats, fieldsUnknown), conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionUnknown, registered, later),
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "registered, marked Unknown, and never heard of", created: registered, fields: fieldsNoted(later, fieldsRegistered, fieldsUnknown), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "registered, with managedFields", created: registered, fields: fieldsNoted(registered, fieldsRegistered), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionFalse, registered, registered)}},
		{name: "became Ready in the second in which it registered", want: true, created: registered, fields: fieldsNoted(registered, fieldsRegistered, fieldsReady), conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, registered, registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
		{name: "the same, of a condition that the lifecycle controller added", want: true, created: registered, fields: fieldsNoted(registered, fieldsAdded, fieldsReady), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
		{name: "a condition that the lifecycle controller added, and that nobody has written since", created: registered, fields: fieldsNoted(later, fieldsRegistered, fieldsAdded), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "the status of one condition is Unknown, and another one's has never been written", created: registered, fields: fieldsNoted(later, fieldsRegistered, fieldsReady), conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, registered, registered),
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "heard of for the first time, after the lifecycle controller added the conditions", want: true, created: registered, conditions: back, fields: fieldsNoted(later, fieldsAdded, fieldsWritten)},
		{name: "heard of again, with managedFields some of which are older than the Node", want: true, created: registered, conditions: back, fields: append(
			fieldsNoted(metav1.NewTime(registered.Add(-time.Hour)), fieldsRegistered), fieldsNoted(later, fieldsWritten)...)},
		{name: "heard of again, with managedFields without a time", created: registered, conditions: back, fields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(fieldsWritten)}}},
		{name: "heard of again, with managedFields that can't be read", created: registered, conditions: back, fields: fieldsNoted(later, fieldsWritten, `{"f:conditions"`)},
		{name: "heard of again, with managedFields that were taken away", created: registered, conditions: back, fields: []metav1.ManagedFieldsEntry{{Time: &later}}},
		{name: "fields of conditions that are gone", created: registered, fields: fieldsNoted(later, fieldsWritten), conditions: []corev1.NodeCondition{
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, later, later)}},
		{name: "a condition that was written, without one of another type", want: true, created: registered, fields: fieldsNoted(later, fieldsHeartbeats), conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, later)}},
		{name: "made from a file in which a kubelet had written", created: after, conditions: back, fields: append(fieldsNoted(later, fieldsRegistered, fieldsWritten), fieldsNoted(after, fieldsRegistered)...)},
		{name: "a volume is in use since the Node was made", want: true, created: after, conditions: back, fields: fieldsNoted(after, fieldsInUse), inUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/d^h"}},
		{name: "made from a file, by a kubelet's clock an hour later than the Node", created: after, fields: fieldsNoted(after, fieldsRegistered), conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, metav1.NewTime(after.Add(time.Hour)), registered)}},
	} {
		test.run(t)
	}
}

// The kubelet's clock may be hours off.
func TestReportingByAnyClock(t *testing.T) {
	for _, off := range []time.Duration{-3 * time.Hour, -time.Minute, 0, time.Minute, 3 * time.Hour} {
		began, later := metav1.NewTime(registered.Add(off)), metav1.NewTime(registered.Add(off+10*time.Second))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: registered, ManagedFields: fieldsNoted(registered, fieldsRegistered)}}
		node.Status.NodeInfo.BootID = "boot"
		node.Status.Conditions = []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, began, began), condition(corev1.NodeReady, corev1.ConditionFalse, began, began)}
		if got := Node(node); got.Reporting || got.BootID != "boot" {
			t.Errorf("%v off, registered: reporting %t, boot %q", off, got.Reporting, got.BootID)
		}
		node.ManagedFields = append(node.ManagedFields, fieldsNoted(metav1.NewTime(registered.Add(10*time.Second)), fieldsWritten)...)
		node.Status.Conditions = []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, began), condition(corev1.NodeReady, corev1.ConditionTrue, later, later)}
		if got := Node(node); !got.Reporting || got.BootID != "boot" {
			t.Errorf("%v off, ten seconds later: reporting %t, boot %q", off, got.Reporting, got.BootID)
		}
		node.ManagedFields = nil // they were taken away
		if got := Node(node); !got.Reporting || got.BootID != "boot" {
			t.Errorf("%v off, without managedFields: reporting %t, boot %q", off, got.Reporting, got.BootID)
		}
	}
}

// Fields as API server 1.37 notes them: a kubelet's write, the node lifecycle controller's Unknown, and
// both.
const (
	fieldsRegistered = `{"f:metadata":{"f:annotations":{".":{},"f:volumes.kubernetes.io/controller-managed-attach-detach":{}},"f:labels":{".":{},"f:kubernetes.io/hostname":{}}}}`
	fieldsWritten    = `{"f:status":{"f:conditions":{"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}}}}`
	fieldsHeartbeats = `{"f:status":{"f:conditions":{"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{}}}}}`
	fieldsNetwork    = `{"f:status":{"f:conditions":{"k:{\"type\":\"NetworkUnavailable\"}":{"f:lastHeartbeatTime":{},"f:status":{}}}}}`
	fieldsInUse      = `{"f:status":{"f:volumesInUse":{}}}`
	fieldsReady      = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:message":{},"f:reason":{},"f:status":{}}}}}`
	fieldsUnknown    = `{"f:status":{"f:conditions":{"k:{\"type\":\"MemoryPressure\"}":{"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}},"k:{\"type\":\"Ready\"}":{"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}}}}`
	fieldsAdded      = `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"MemoryPressure\"}":{".":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:type":{}}}}}`
)

func fieldsNoted(at metav1.Time, all ...string) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, fields := range all {
		out = append(out, metav1.ManagedFieldsEntry{Manager: "anybody", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)})
	}
	return out
}

// A Node from a file (kubectl replace --force, a backup) has the file's status: mounts of the running boot
// stay.
func TestNodeMadeAgainFromAFileClearsNothing(t *testing.T) {
	then, now, disk := time.Unix(100_000, 0), time.Unix(200_000, 0), ledger.VolumeID{Driver: "disk", Handle: "data"}
	node := func(uid, version, boot string, created, heartbeat time.Time, inUse ...corev1.UniqueVolumeName) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: types.UID(uid), ResourceVersion: version, CreationTimestamp: metav1.NewTime(created), Annotations: map[string]string{annotationManaged: "true"},
		}}
		n.Status.NodeInfo.BootID, n.Status.VolumesInUse = boot, inUse
		n.ManagedFields = fieldsNoted(metav1.NewTime(created), fieldsRegistered)
		if !heartbeat.Before(created) {
			n.ManagedFields = append(n.ManagedFields, fieldsNoted(metav1.NewTime(heartbeat), fieldsWritten)...)
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(then), LastHeartbeatTime: metav1.NewTime(heartbeat)}}
		return n
	}
	l := ledger.New()
	safe := func(when string, want bool) {
		t.Helper()
		s := l.Snapshot()
		v := s.Volume(disk)
		if verdict, rule := (rules.Arbiter{}).SafeToDetach(s, v, v.OnNode("n"), now); verdict.Allowed() != want {
			t.Errorf("%s: safe to detach %v (rule %q), want %v", when, verdict.Allowed(), rule, want)
		}
	}
	for _, e := range []ledger.Event{
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: disk, Access: ledger.AccessNode},
		Node(node("first", "3", "second boot", then, now, UniqueName(disk))),
		ledger.Attachment{Name: ledger.AttachmentName(disk, "n"), UID: "a", Version: "5", Driver: "disk", Node: "n", PersistentVolume: "pv", Attached: true, Ours: true, NodeID: "n"},
		ledger.Complete{},
		ledger.NodeGone{Name: "n"},
		Node(node("second", "9", "first boot", now, then.Add(time.Hour))),
	} {
		l.Apply(now, e)
	}
	safe("made again from a file of before the last boot, when nothing was in use", false)
	l.Apply(now, Node(node("second", "10", "second boot", now, now.Add(time.Minute))))
	safe("its kubelet has reported, and may have forgotten the mount", false)
	l.Apply(now, Node(node("second", "11", "third boot", now, now.Add(time.Hour))))
	safe("the machine has booted anew", true)
}

func TestNodeLease(t *testing.T) {
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if got := NodeLease(lease); got != (ledger.NodeLease{Node: "n"}) {
		t.Errorf("a Lease that nobody has renewed is %+v", got)
	}
	lease.Spec.RenewTime = &renewed
	if got := NodeLease(lease); got != (ledger.NodeLease{Node: "n", Renewed: renewed.UnixNano() / 1000}) {
		t.Errorf("the Lease is %+v", got)
	}
}

func TestNode(t *testing.T) {
	v1 := ledger.VolumeID{Driver: "d", Handle: "1"}
	v2 := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "p:i:1"}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7", Annotations: map[string]string{annotationManaged: "true"}},
		Spec: corev1.NodeSpec{Unschedulable: true, ProviderID: "cloud://n", Taints: []corev1.Taint{
			{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{
			Conditions:   []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:     corev1.NodeSystemInfo{SystemUUID: "machine", BootID: "boot"},
			VolumesInUse: []corev1.UniqueVolumeName{UniqueName(v1), UniqueName(v1), "other/plugin"},
			VolumesAttached: []corev1.AttachedVolume{
				{Name: UniqueName(v2)}, {Name: UniqueName(v2), DevicePath: "/dev/x"}, {Name: "other/plugin"}},
		},
	}
	got := Node(node)
	if got.Name != "n" || got.UID != "u" || got.Version != "7" || got.Ready != ledger.ReadyTrue ||
		!got.OutOfService || !got.Managed || !got.Draining || !got.Reporting {
		t.Errorf("the node is %+v", got)
	}
	if got.SystemUUID != "machine" || got.BootID != "boot" || got.ProviderID != "cloud://n" {
		t.Errorf("the machine is %q %q %q", got.SystemUUID, got.BootID, got.ProviderID)
	}
	// The ledger compares lengths: doubled entries count once.
	if !slices.Equal(got.InUse, []ledger.VolumeID{v1}) || !slices.Equal(got.Reported, []ledger.VolumeID{v2}) {
		t.Errorf("in use %v, reported %v", got.InUse, got.Reported)
	}
	empty := Node(&corev1.Node{})
	if empty.Ready != ledger.ReadyUnknown || empty.Managed || empty.OutOfService || empty.Draining || empty.Reporting {
		t.Errorf("an empty node is %+v", empty)
	}
}

// The condition must be later than the kubelet's last Ready, by both objects' times.
func TestFencedConditions(t *testing.T) {
	fenced := func(name string, status corev1.ConditionStatus, since int64) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeConditionType(name), Status: status, LastTransitionTime: metav1.Unix(since, 0)}
	}
	heard := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastHeartbeatTime: metav1.Unix(100, 0), LastTransitionTime: metav1.Unix(150, 0)}
	const ipmi, array = "fenced.moorage.dev/ipmi", "fenced.moorage.dev/array"
	for name, test := range map[string]struct {
		conditions []corev1.NodeCondition
		want       []ledger.FencedCondition
	}{
		"none":                          {[]corev1.NodeCondition{heard}, nil},
		"later":                         {[]corev1.NodeCondition{heard, fenced(ipmi, "True", 101)}, []ledger.FencedCondition{{Type: ipmi, Since: 101}}},
		"in the same second":            {[]corev1.NodeCondition{heard, fenced(ipmi, "True", 100)}, nil},
		"before":                        {[]corev1.NodeCondition{fenced(ipmi, "True", 99), heard}, nil},
		"without a time":                {[]corev1.NodeCondition{{Type: ipmi, Status: "True"}, heard}, nil},
		"False":                         {[]corev1.NodeCondition{fenced(ipmi, "False", 101), heard}, nil},
		"Unknown":                       {[]corev1.NodeCondition{fenced(ipmi, "Unknown", 101), heard}, nil},
		"another prefix":                {[]corev1.NodeCondition{fenced("example.com/ipmi", "True", 101), heard}, nil},
		"nobody says when it was heard": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: "Unknown"}, fenced(ipmi, "True", 101)}, nil},
		"no condition Ready":            {[]corev1.NodeCondition{fenced(ipmi, "True", 101)}, nil},
		"two, sorted":                   {[]corev1.NodeCondition{fenced(ipmi, "True", 101), heard, fenced(array, "True", 102)}, []ledger.FencedCondition{{Type: array, Since: 102}, {Type: ipmi, Since: 101}}},
		"one twice":                     {[]corev1.NodeCondition{fenced(ipmi, "True", 102), heard, fenced(ipmi, "True", 101)}, []ledger.FencedCondition{{Type: ipmi, Since: 101}}},
	} {
		if got := Node(&corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions}}).Fenced; !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestNodeDrivers(t *testing.T) {
	got := NodeDrivers(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "none", NodeID: "i-1"},
		{Name: "nil", Allocatable: &storagev1.VolumeNodeResources{}},
		{Name: "zero", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](0)}},
		{Name: "ten", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](10)}},
	}}})
	want := []ledger.DriverOnNode{
		{Name: "none", NodeID: "i-1", Limit: ledger.NoLimit}, {Name: "nil", Limit: ledger.NoLimit},
		{Name: "zero", Limit: 0}, {Name: "ten", Limit: 10},
	}
	if !slices.Equal(got.Drivers, want) {
		t.Errorf("drivers %+v, want %+v", got.Drivers, want)
	}
}
