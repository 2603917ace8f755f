// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// named is a PersistentVolume of the volume "x", with a claimRef to claim and the claim's UID "uid-"+claim.
func named(name, claim string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "pv"}, Status: corev1.PersistentVolumeStatus{Phase: phase}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: longhorn, VolumeHandle: "x"}}}}
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim, UID: "uid-" + types.UID(claim)}
	}
	return pv
}

func claimed(name, pv string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-" + types.UID(name)},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
}

// If several PersistentVolumes name a volume, the ticket is for a claimed one, then for the first by name,
// in any order of reading; the note says so.
func TestImportOfOneOfSeveral(t *testing.T) {
	const released, bound, free = corev1.VolumeReleased, corev1.VolumeBound, corev1.VolumeAvailable
	for name, c := range map[string]struct {
		pvs    []*corev1.PersistentVolume
		claims []*corev1.PersistentVolumeClaim
		want   string // claim or PersistentVolume
		says   string // empty: nothing
	}{
		"one":                   {[]*corev1.PersistentVolume{named("pv-a", "", free)}, nil, "pv-a", ""},
		"a claim has the last":  {[]*corev1.PersistentVolume{named("pv-a", "gone", bound), named("pv-b", "", free), named("pv-c", "data", released)}, []*corev1.PersistentVolumeClaim{claimed("data", "pv-c")}, "data", "3 PersistentVolumes name this volume (pv-a, pv-b, pv-c): its ticket is for pv-c"},
		"another claim by name": {[]*corev1.PersistentVolume{named("pv-a", "data", bound), named("pv-b", "data", released)}, []*corev1.PersistentVolumeClaim{claimed("data", "pv-b")}, "data", "its ticket is for pv-b"},
		"claims have two":       {[]*corev1.PersistentVolume{named("pv-a", "", bound), named("pv-b", "two", bound), named("pv-c", "data", bound)}, []*corev1.PersistentVolumeClaim{claimed("data", "pv-c"), claimed("two", "pv-b")}, "two", "its ticket is for pv-b"},
		"none has a claim":      {[]*corev1.PersistentVolume{named("pv-b", "gone", released), named("pv-a", "", free)}, nil, "pv-a", "its ticket is for pv-a"},
		"many":                  {[]*corev1.PersistentVolume{named("a", "", free), named("b", "", free), named("c", "", free), named("d", "", free), named("e", "", free), named("f", "", free)}, nil, "a", "6 PersistentVolumes name this volume (a, b, c, d and 2 more): its ticket is for a"},
	} {
		for range len(c.pvs) {
			c.pvs = append(c.pvs[1:], c.pvs[0])
			objects := Objects{}
			objects.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "node"}})
			objects.Add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "node"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: longhorn, NodeID: "w1"}}}})
			for _, pv := range c.pvs {
				objects.Add(pv)
			}
			for _, claim := range c.claims {
				objects.Add(claim)
			}
			list := NewWorld(objects, time.Unix(1000, 0)).LonghornImports([]LonghornTicket{{Volume: "x", Key: "k", Type: "longhorn-api", Node: "w1"}}, longhorn, "moorage-system", 60)
			if len(list) != 1 || list[0].Ticket == nil {
				t.Fatalf("%s: %+v", name, list)
			}
			if got := askedFor(list[0].Ticket); got != c.want {
				t.Errorf("%s: the ticket is for %s, not %s", name, got, c.want)
			}
			if note := list[0].Note; !strings.Contains(note, c.says) || c.says == "" && note != "" {
				t.Errorf("%s: it says %q, not %q", name, note, c.says)
			}
		}
	}
}

func askedFor(t *v1alpha1.VolumeTicket) string {
	v := t.Spec.Volumes[0]
	if v.Claim != nil {
		return v.Claim.Name
	}
	return v.PersistentVolume
}

// Three notes come together: for a volume with several names, attached without a device, with a ticket that
// has to wait.
func TestImportNotesTogether(t *testing.T) {
	objects := Objects{}
	for _, node := range []string{"w1", "w2"} {
		objects.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "node"}})
	}
	objects.Add(named("pv-a", "", corev1.VolumeAvailable))
	objects.Add(named("pv-b", "", corev1.VolumeAvailable))
	objects.Tickets = append(objects.Tickets, &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "mine", UID: "mine"},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "w1", TTLSeconds: new(int64(600)), Volumes: []v1alpha1.TicketVolume{{PersistentVolume: "pv-b"}}},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: "Granted", Status: metav1.ConditionTrue}}},
	})
	list := NewWorld(objects, time.Unix(1000, 0)).LonghornImports([]LonghornTicket{{Volume: "x", Key: "k", Type: "longhorn-api", Node: "w2", Parameters: map[string]string{"disableFrontend": "true"}}}, longhorn, "moorage-system", 60)
	parts := strings.Split(list[0].Note, "; ")
	for _, says := range []string{"2 PersistentVolumes name this volume", "without a device", "its ticket is not granted"} {
		if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, says) }) {
			t.Errorf("%q does not say %q", fmt.Sprint(parts), says)
		}
	}
}
