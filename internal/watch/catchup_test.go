// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// CatchUp must not depend on the informers.
func TestCatchUpReadsWhatInformersHaveNotShown(t *testing.T) {
	server := apitest.Start(t)
	v := disk(server, "data")
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}})
	o := start(t, server, true)
	server.Lag(true)
	server.Put("pods", pod("db", "u1", "n1", "data"))
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	server.Put("volumeattachments", attachment("a", "n2", "data"))
	server.Put("volumetickets", ticket("u2", "backup", "n3", "data"))
	server.Put("volumeholds", &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName(v.Driver, v.Handle)},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: v.Driver, Handle: v.Handle},
	})
	more := disk(server, "more")
	if err := o.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := o.Snapshot()
	for what, known := range map[string]bool{
		"pod":              s.Pod("u1") != nil,
		"Node":             s.Node("n1").Ready == ledger.ReadyTrue,
		"VolumeAttachment": s.Volume(v).OnNode("n2") != nil,
		"ticket":           s.Ticket(ledger.TicketID{Namespace: "shop", Name: "u2"}) != nil,
		"VolumeHold":       s.Volume(v).Hold != nil,
		"PersistentVolume": s.PersistentVolume("more") != nil && s.PersistentVolume("more").Volume == more,
	} {
		if !known {
			t.Errorf("the %s is not known", what)
		}
	}
}
