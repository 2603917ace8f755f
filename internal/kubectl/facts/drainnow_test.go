// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func left() Objects {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	o := Objects{Nodes: []*corev1.Node{node}}
	one(&o, node, "h")
	o.Pods, o.Attachments = nil, nil
	node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil
	return o
}

func holdAt(node string, conditions ...metav1.Condition) *v1alpha1.VolumeHold {
	return &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName(driver, "h"), UID: "hold"}, Spec: v1alpha1.VolumeHoldSpec{Driver: driver, Handle: "h"},
		Status: v1alpha1.VolumeHoldStatus{PersistentVolumes: []string{"pv-h"}, Transitions: 1, Holder: &v1alpha1.Holder{Node: node}, Conditions: conditions},
	}
}

func nodeHas(v v1alpha1.ReportedVolume) *v1alpha1.NodeMountReport {
	v.Path, v.Mode, v.Driver, v.Handle = "/staged", "Filesystem", driver, "h"
	return &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "word"}, Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{v}}}
}

func TestVolumesThere(t *testing.T) {
	const leftThere = "perhaps left there without"
	for name, test := range map[string]struct {
		change func(*Objects)
		want   string
	}{
		"nothing": {func(*Objects) {}, ""},
		"in use": {func(o *Objects) {
			o.Nodes[0].Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + driver + "^h"}
		}, "in use by the kubelet"},
		"made again in the same boot, and not reported in use": {func(o *Objects) {
			node, other := o.Nodes[0], Objects{}
			node.Status.NodeInfo.BootID = "boot"
			node.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
			node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon()) // its kubelet has reported
			one(&other, node, "h")
			node.Status.VolumesInUse, o.Attachments = nil, other.Attachments
			hold := holdAt("n")
			hold.Status.Holder.NodeUID, hold.Status.Holder.BootID = "before", "boot"
			o.Holds = append(o.Holds, hold)
		}, "perhaps mounted there, though its kubelet does not report it in use: its kubelet may have forgotten that it is mounted"},
		"left attached": {func(o *Objects) {
			o.Holds = append(o.Holds, holdAt("n", metav1.Condition{Type: v1alpha1.HoldAttached, Status: metav1.ConditionUnknown, Reason: "LeftAttached"}))
		}, leftThere},
		"attached and idle": {func(o *Objects) { o.Holds = append(o.Holds, holdAt("n")) }, ""},
		"granted, and needs no attachment": {func(o *Objects) {
			o.PersistentVolumes[0].Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "q"}}
			hold := holdAt("n")
			hold.Spec = v1alpha1.VolumeHoldSpec{Driver: "kubernetes.io/iscsi", Handle: "p:q:0"}
			hold.Name = v1alpha1.VolumeHoldName(hold.Spec.Driver, hold.Spec.Handle)
			o.Holds, o.Pods = append(o.Holds, hold), append(o.Pods, podWith("h", "n"))
		}, "granted there, and needs no attachment"},
		"kept by a ticket":                 {func(o *Objects) { o.Tickets = append(o.Tickets, manual(metav1.ConditionTrue)) }, "VolumeTicket shop/by-hand keeps it there"},
		"asked for by a ticket that waits": {func(o *Objects) { o.Tickets = append(o.Tickets, manual(metav1.ConditionFalse)) }, ""},
		"staged, and forgotten": {func(o *Objects) {
			o.NodeMountReports = append(o.NodeMountReports, nodeHas(v1alpha1.ReportedVolume{Forgotten: true, Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes}))
		}, "staged or mounted at /staged"},
		"mounted for a pod that is gone": {func(o *Objects) {
			o.NodeMountReports = append(o.NodeMountReports, nodeHas(v1alpha1.ReportedVolume{Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes,
				Published: []v1alpha1.PublishedPod{{PodUID: "gone", Mounted: v1alpha1.NodeYes}}}))
		}, "mounted for 1 pod gone from there"},
		"in use, and mounted for a pod that is gone": {func(o *Objects) {
			o.Nodes[0].Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + driver + "^h"}
			o.NodeMountReports = append(o.NodeMountReports, nodeHas(v1alpha1.ReportedVolume{Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes,
				Published: []v1alpha1.PublishedPod{{PodUID: "gone", Mounted: v1alpha1.NodeYes}}}))
		}, "in use by the kubelet"},
	} {
		o := left()
		test.change(&o)
		got := NewWorld(o, noon()).VolumesThere("n")
		switch {
		case test.want == "" && len(got) > 0, test.want != "" && len(got) != 1:
			t.Errorf("%s: %+v", name, got)
		case test.want != "" && (!strings.HasPrefix(got[0].Why, test.want) || got[0].Volume != "pv-h"):
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}

func manual(granted metav1.ConditionStatus) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-hand", UID: "by-hand"},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "h"}}}},
		Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: granted, Reason: "X"}}},
	}
}

// Room is kept for an ending pod that is made again.
func TestComesBack(t *testing.T) {
	owned := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "h", UID: "set", Controller: new(true)}}
	ending := func(o *Objects) *corev1.Pod {
		p := podWith("h", "n")
		p.OwnerReferences = owned
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(noon().Add(time.Minute))), new(int64(90))
		o.Pods = append(o.Pods, p)
		return p
	}
	next := func(o *Objects, made time.Time) {
		p := podWith("next", "")
		p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "h"
		p.OwnerReferences, p.CreationTimestamp = owned, metav1.NewTime(made)
		o.Pods = append(o.Pods, p)
	}
	for name, test := range map[string]struct {
		change func(*Objects, *corev1.Pod)
		want   bool
	}{
		"it is ending":          {func(*Objects, *corev1.Pod) {}, true},
		"it is not ending":      {func(_ *Objects, p *corev1.Pod) { p.DeletionTimestamp = nil }, false},
		"nobody makes it again": {func(_ *Objects, p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"it is a DaemonSet's":   {func(_ *Objects, p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }, false},
		"it has no node":        {func(_ *Objects, p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"its node is not ready": {func(o *Objects, _ *corev1.Pod) { o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"it should have ended two minutes ago": {func(_ *Objects, p *corev1.Pod) {
			p.DeletionTimestamp = new(metav1.NewTime(noon().Add(-2 * time.Minute)))
		}, true},
		"it should have ended longer ago": {func(_ *Objects, p *corev1.Pod) {
			p.DeletionTimestamp = new(metav1.NewTime(noon().Add(-2*time.Minute - time.Second)))
		}, false},
		"its next one is there":           {func(o *Objects, _ *corev1.Pod) { next(o, noon().Add(-20*time.Second)) }, false},
		"another one was there before it": {func(o *Objects, _ *corev1.Pod) { next(o, noon().Add(-time.Minute)) }, true},
	} {
		owned[0].Kind = "StatefulSet"
		o := left()
		p := ending(&o)
		test.change(&o, p)
		w := NewWorld(o, noon())
		if got := w.comesBack(p); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWaitsForNode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"it is new":          {func(*corev1.Pod) {}, true},
		"nobody looks at it": {func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour)) }, false},
		"its volumes wait": {func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonVolumeWait, Message: "no room"}}
		}, true},
		"its volumes wait, says another scheduler": {func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 node(s) exceed max volume count."}}
		}, true},
		"it has a gate":       {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }, false},
		"it is being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(noon())) }, false},
		"it has ended":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"it has no volume":    {func(p *corev1.Pod) { p.Spec.Volumes = nil }, false},
		"there is no CPU for it": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient cpu."}}
		}, false},
	} {
		o := left()
		p := podWith("h", "")
		p.CreationTimestamp = metav1.NewTime(noon())
		test.change(p)
		o.Pods = append(o.Pods, p)
		if got := NewWorld(o, noon()).waitsForNode(p); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestVolumesThereHavePods(t *testing.T) {
	o := left()
	o.Nodes[0].Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + driver + "^h"}
	o.Pods = append(o.Pods, podWith("h", "n"))
	if got := NewWorld(o, noon()).VolumesThere("n"); len(got) != 1 || !slices.Equal(got[0].Pods, []types.UID{"h"}) {
		t.Errorf("%+v", got)
	}
}
