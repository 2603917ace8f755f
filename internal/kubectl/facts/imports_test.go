// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const longhorn = "driver.longhorn.io"

// All volumes are attached to w1: data, bare without a claim, used with a pod, gone without its
// PersistentVolume.
func importing(t *testing.T) *World {
	t.Helper()
	objects := Objects{}
	for _, name := range []string{"w1", "w2"} {
		objects.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node"}})
	}
	for _, name := range []string{"data", "bare", "used"} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "pv"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: longhorn, VolumeHandle: name}},
		}}
		if name != "bare" {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: name, UID: "claim"}
			objects.Add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "claim"},
				Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv.Name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		}
		objects.Add(pv)
	}
	for _, name := range []string{"data", "bare", "used", "gone"} {
		objects.Add(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: longhorn, Handle: name}, "w1"), UID: "va"},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: longhorn, NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-" + name)}},
			Status:     storagev1.VolumeAttachmentStatus{Attached: true},
		})
	}
	objects.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Spec: corev1.PodSpec{NodeName: "w1",
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"}}}}}})
	return NewWorld(objects, time.Unix(1000, 0))
}

func TestUnusedAttachments(t *testing.T) {
	w := importing(t)
	got := map[string]*v1alpha1.VolumeTicket{}
	notes := 0
	for _, i := range w.UnusedAttachments("moorage-system", 60) {
		if i.Ticket == nil {
			notes++
			if i.Note == "" {
				t.Errorf("%s has neither a ticket nor a reason", i.From)
			}
			continue
		}
		name := i.Ticket.Spec.Volumes[0].PersistentVolume
		if c := i.Ticket.Spec.Volumes[0].Claim; c != nil {
			name = c.Name
		}
		got[name] = i.Ticket
		if i.Ticket.Spec.Type != v1alpha1.TicketManual || i.Ticket.Spec.NodeName != "w1" || *i.Ticket.Spec.TTLSeconds != 60 {
			t.Errorf("ticket %+v", i.Ticket.Spec)
		}
	}
	if len(got) != 2 || got["data"] == nil || got["data"].Namespace != "shop" || got["pv-bare"] == nil || got["pv-bare"].Namespace != "moorage-system" {
		t.Errorf("tickets for %v", got)
	}
	if notes > 1 {
		t.Errorf("%d attachments without a ticket", notes)
	}
}

func released(objects *Objects) {
	objects.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "node"}})
	objects.Add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: longhorn, NodeID: "w1"}}}})
	objects.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-x", UID: "pv"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ClaimRef: &corev1.ObjectReference{Namespace: "old", Name: "x", UID: "old"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: longhorn, VolumeHandle: "x"}}}})
	objects.Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: longhorn, Handle: "x"}, "w1"), UID: "va"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: longhorn, NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-x")}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true}})
}

// A ticket by its gone claim is never granted: it names the volume, in Moorage's namespace.
func TestImportOfReleased(t *testing.T) {
	for says, of := range map[string]struct {
		claims []metav1.ObjectMeta
		byName bool
	}{
		"the claim is gone":          {nil, true},
		"the claim is another":       {[]metav1.ObjectMeta{{Namespace: "old", Name: "x", UID: "new"}}, true},
		"the claim is the volume's":  {[]metav1.ObjectMeta{{Namespace: "old", Name: "x", UID: "old"}}, false},
		"the namesake is not of old": {[]metav1.ObjectMeta{{Namespace: "other", Name: "x", UID: "old"}}, true},
	} {
		objects := Objects{}
		released(&objects)
		for _, c := range of.claims {
			objects.Add(&corev1.PersistentVolumeClaim{ObjectMeta: c, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-x"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		}
		w := NewWorld(objects, time.Unix(1000, 0))
		list := w.UnusedAttachments("moorage-system", 60)
		if len(list) != 1 || list[0].Ticket == nil || list[0].Note != "" {
			t.Fatalf("%s: %+v", says, list)
		}
		ticket := list[0].Ticket
		if byName := ticket.Spec.Volumes[0].PersistentVolume == "pv-x"; byName != of.byName || byName != (ticket.Namespace == "moorage-system") {
			t.Errorf("%s: a ticket in namespace %s for %+v", says, ticket.Namespace, ticket.Spec.Volumes)
		}
	}
}

// Without the right to list claims, the volume's claimRef counts.
func TestManualTicketWithoutClaims(t *testing.T) {
	objects := Objects{}
	released(&objects)
	w := NewWorld(objects, time.Unix(1000, 0))
	w.Unseen = []Unseen{{Resource: "persistentvolumeclaims", Message: "forbidden"}}
	ticket, err := w.ManualTicket("pv-x", "w1", "moorage-system", 60)
	if err != nil || ticket.Namespace != "old" || ticket.Spec.Volumes[0].Claim == nil || ticket.Spec.Volumes[0].Claim.UID != "old" {
		t.Errorf("%+v, %v", ticket, err)
	}
}

func TestImportThatWaits(t *testing.T) {
	objects := Objects{}
	released(&objects)
	objects.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w2", UID: "node"}})
	objects.Tickets = append(objects.Tickets, &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "mine", UID: "mine"},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "w2", TTLSeconds: new(int64(600)), Volumes: []v1alpha1.TicketVolume{{PersistentVolume: "pv-x"}}},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: "Granted", Status: metav1.ConditionTrue}}},
	})
	list := NewWorld(objects, time.Unix(1000, 0)).UnusedAttachments("moorage-system", 60)
	if len(list) != 1 || list[0].Ticket == nil || !strings.Contains(list[0].Note, "its ticket is not granted") {
		t.Errorf("%+v", list)
	}
}

func TestImportsAreOneLine(t *testing.T) {
	handle := "x\n---\nkind: ClusterRoleBinding\u2028#"
	objects := Objects{}
	released(&objects)
	objects.PersistentVolumes[0].Spec.CSI.VolumeHandle = handle
	objects.Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: handle, UID: "odd"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: longhorn, NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-x")}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true}})
	w := NewWorld(objects, time.Unix(1000, 0))
	list := w.UnusedAttachments("moorage-system", 60)
	made := 0
	for _, i := range list {
		if strings.ContainsAny(i.From, "\n\r\u0085\u2028\u2029") {
			t.Errorf("more than a line: %q", i.From)
		}
		if i.Ticket != nil {
			made++
		}
	}
	if made < 1 {
		t.Errorf("%d tickets of %+v", made, list)
	}
}
