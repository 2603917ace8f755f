// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A detached VolumeAttachment with a foreign finalizer does not wait for the driver (I7): external-attacher
// has written attached=false (csi_handler.go, markAsDetached).
func TestFinalizerOfSomebodyElseIsTold(t *testing.T) {
	now, disk := time.Unix(1000, 0), ledger.VolumeID{Driver: "disk", Handle: "data"}
	key, pv := ledger.ClaimKey{Namespace: "shop", Name: "data"}, "pv"
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(disk, "a"), UID: "va", ResourceVersion: "10", Finalizers: []string{AttacherFinalizer("disk"), "example.com/audit"}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "disk", NodeName: "a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
	fact := func() ledger.Event { a, _ := Attachment(va); return a }
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "a", UID: "a", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, BootID: "b"},
		ledger.NodeState{Name: "b", UID: "b", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, BootID: "c"},
		ledger.NodeDrivers{Node: "b", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "b", Limit: 4}}},
		ledger.PersistentVolume{Name: pv, Version: "3", Volume: disk, Access: ledger.AccessNode, Claim: key, ClaimUID: "claim"},
		ledger.Claim{Key: key, UID: "claim", Version: "4", Bound: true, PersistentVolume: pv, Access: ledger.AccessNode},
		ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "5", Node: "a", NodeUID: "a", BootID: "b", State: ledger.HoldHeld, Transitions: 1, PVs: []string{pv}}},
		ledger.Pod{UID: "db", Version: "6", Namespace: "shop", Name: "db", Node: "b", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
		fact(), ledger.Complete{},
	} {
		l.Apply(now, e)
	}
	deleted := metav1.NewTime(now)
	va.DeletionTimestamp, va.ResourceVersion = &deleted, "11"
	l.Apply(now, fact())
	va.ResourceVersion, va.Finalizers, va.Status = "12", []string{"example.com/audit"}, storagev1.VolumeAttachmentStatus{}
	l.Apply(now.Add(time.Second), fact())
	now = now.Add(10 * time.Minute)
	s := l.Snapshot()
	reason := (rules.Arbiter{}).Explain(s, rules.PodRequest(s, s.Pod("db")).Needs[0], "b", now).First()
	if reason.Code != rules.KeptByFinalizer || !strings.Contains(reason.Message(), "example.com/audit") {
		t.Errorf("the driver has detached it, only example.com/audit keeps the VolumeAttachment, and the pod is told: %s", reason.Message())
	}
}
