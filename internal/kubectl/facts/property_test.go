// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
)

const driver = "disk.example.com"

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func draw(t *rapid.T) Objects {
	d := drawing{t}
	o := Objects{
		Classes: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: driver, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}},
	}
	if d.maybe("policy") {
		o.Policies = append(o.Policies, &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AttachPolicySpec{
			Driver: driver, DetachDelay: &metav1.Duration{Duration: time.Minute},
		}})
	}
	for i := range 3 {
		d.node(&o, fmt.Sprintf("n%d", i))
	}
	for i := range 4 {
		d.volume(&o, fmt.Sprint(i))
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		d.pod(&o, fmt.Sprintf("p%d", i))
	}
	return o
}

type drawing struct{ t *rapid.T }

func (d drawing) maybe(what string) bool { return rapid.Bool().Draw(d.t, what) }

func (d drawing) nodeName() string {
	return rapid.SampledFrom([]string{"n0", "n1", "n2", "gone"}).Draw(d.t, "node")
}

func (d drawing) node(o *Objects, name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if d.maybe("managed") {
		n.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	}
	ready := rapid.SampledFrom([]corev1.ConditionStatus{"True", "False", "Unknown"}).Draw(d.t, "ready")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for i := range 4 {
		name := corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/%s^v%d", driver, i))
		if d.maybe("in use") {
			n.Status.VolumesInUse = append(n.Status.VolumesInUse, name)
		}
		if d.maybe("reported") {
			n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
		}
	}
	if d.maybe("node exists") {
		o.Nodes = append(o.Nodes, n)
	}
	if d.maybe("driver registered") {
		entry := storagev1.CSINodeDriver{Name: driver, NodeID: name}
		if d.maybe("limit") {
			entry.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(2))}
		}
		o.NodeDrivers = append(o.NodeDrivers, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{entry}}})
	}
}

func (d drawing) volume(o *Objects, i string) {
	mode := rapid.SampledFrom([]corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"}).Draw(d.t, "mode")
	if d.maybe("volume exists") {
		o.PersistentVolumes = append(o.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv" + i}, Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{mode},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v" + i}},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "c" + i, UID: types.UID("c" + i)},
		}})
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c" + i, UID: types.UID("c" + i)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("disk"), AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
	if d.maybe("bound") {
		claim.Spec.VolumeName, claim.Status.Phase = "pv"+i, corev1.ClaimBound
	}
	if d.maybe("claim exists") {
		o.Claims = append(o.Claims, claim)
	}
	for _, node := range []string{"n0", "n1", "gone"} {
		if d.maybe("attachment") {
			d.attachment(o, i, node)
		}
	}
	if d.maybe("hold") {
		o.Holds = append(o.Holds, &v1alpha1.VolumeHold{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName(driver, "v"+i)}, Spec: v1alpha1.VolumeHoldSpec{Driver: driver, Handle: "v" + i},
			Status: v1alpha1.VolumeHoldStatus{
				Transitions: 1, Holder: &v1alpha1.Holder{Node: d.nodeName()},
				Conditions: []metav1.Condition{{Type: v1alpha1.HoldDetachPending, Status: "True", Reason: "InUse", Message: "in use"}},
			},
		})
	}
}

func (d drawing) attachment(o *Objects, i, node string) {
	pv := "pv" + i
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "v" + i}, ledger.NodeName(node)), UID: types.UID(i + node)},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: d.maybe("attached")},
	}
	if d.maybe("foreign") {
		va.Name = "foreign-" + i + node
	}
	if d.maybe("deleting") {
		at := metav1.NewTime(noon())
		va.DeletionTimestamp = &at
	}
	if d.maybe("failed") {
		va.Status.AttachError = &storagev1.VolumeError{Message: "no"}
	}
	o.Attachments = append(o.Attachments, va)
}

func (d drawing) pod(o *Objects, name string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	for i := range rapid.IntRange(0, 2).Draw(d.t, "volumes") {
		claim := fmt.Sprintf("c%d", rapid.IntRange(0, 4).Draw(d.t, "claim"))
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{"Pending", "Running", "Succeeded"}).Draw(d.t, "phase")
	if d.maybe("has a node") {
		p.Spec.NodeName = d.nodeName()
	} else if len(p.Spec.Volumes) > 0 && d.maybe("has a ticket") {
		ticket := &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: name, UID: types.UID(name)}}},
			Spec: v1alpha1.VolumeTicketSpec{Type: "Pod", NodeName: d.nodeName(), Volumes: []v1alpha1.TicketVolume{{
				Claim: &v1alpha1.ClaimReference{Name: p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName},
			}}},
		}
		if status := rapid.SampledFrom([]metav1.ConditionStatus{"", "True", "False"}).Draw(d.t, "granted"); status != "" {
			ticket.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: status, Reason: "NoFreeSlot"}}
		}
		o.Tickets = append(o.Tickets, ticket)
	}
	o.Pods = append(o.Pods, p)
}

// Nothing panics, slots add up to the controller's count, and every unsafe volume has a reason.
func TestAnyCluster(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := NewWorld(draw(t), noon())
		for _, s := range w.ListSlots() {
			if sum, counted := s.Used+s.Kept+s.Leaving+s.Unknown+s.Reserved, w.Snapshot.Node(ledger.NodeName(s.Node)).Driver(s.Driver).Taken(); sum != counted {
				t.Fatalf("%s: %d used, %d kept, %d leaving, %d unknown and %d reserved are not the %d slots that are counted", s.Node, s.Used, s.Kept, s.Leaving, s.Unknown, s.Reserved, counted)
			}
		}
		for _, p := range w.Pods {
			x := w.ExplainPod(p)
			if x.Answer == "" {
				t.Fatalf("%s: no answer: %+v", p.Name, x)
			}
			for _, v := range x.Volumes {
				if x.Node != "" && x.State == PodWaitsForVolumes && !v.SafeToMount && len(v.Reasons) == 0 {
					t.Fatalf("%s: volume %s is not safe to mount, and nothing says why", p.Name, v.Name)
				}
				for _, r := range v.Reasons {
					if r.Changes == "" || r.Do == "" {
						t.Fatalf("%s: reason %s says not what changes it, or what to do", p.Name, r.Code)
					}
				}
			}
			show(t, x)
		}
		for _, c := range w.Claims {
			show(t, w.ExplainClaim(c))
		}
		for _, pv := range w.PersistentVolumes {
			show(t, w.ExplainPersistentVolume(pv))
		}
		for _, n := range w.Nodes {
			plan := w.DrainPlan(n.Name)
			for _, p := range plan.Pods {
				if p.To == n.Name {
					t.Fatalf("pod %s would go to the node that is drained", p.Name)
				}
			}
			show(t, plan)
		}
		for _, v := range w.ListVolumes("") {
			if found, ok := w.VolumeOf(v.Key()); !ok || found.Handle != v.Handle || found.Driver != v.Driver {
				t.Fatalf("%s is found as %+v", v.Key(), found)
			}
		}
		if _, ok := w.VolumeOf("no-such-volume"); ok {
			t.Fatal("a volume that there is none of is found")
		}
		show(t, w.ListVolumes(""))
		show(t, w.ListTickets(""))
		show(t, w.ListWaits())
	})
}

func show(t *rapid.T, x any) {
	if _, err := json.Marshal(x); err != nil {
		t.Fatal(err)
	}
}
