// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A countdown begins with the controller's writing, and not anew with each look.
func TestCountdownBeginsWhenItWasWritten(t *testing.T) {
	id := ledger.VolumeID{Driver: driver, Handle: "v1"}
	reason := rules.Reason{Code: rules.NodeUnreachable, Volume: id, Node: "n1", Claim: "data", Seconds: 240}
	hold := &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName(driver, "v1"), ManagedFields: []metav1.ManagedFieldsEntry{
			{Subresource: "status", Time: &metav1.Time{Time: noon().Add(-time.Minute)}},
			{Time: &metav1.Time{Time: noon()}},
		}},
		Spec: v1alpha1.VolumeHoldSpec{Driver: driver, Handle: "v1"},
		Status: v1alpha1.VolumeHoldStatus{Holder: &v1alpha1.Holder{Node: "n1"}, Conditions: []metav1.Condition{
			{Type: v1alpha1.HoldDetachPending, Status: "True", Reason: string(reason.Code), Message: reason.Message()}}},
	}
	w := NewWorld(Objects{Holds: []*v1alpha1.VolumeHold{hold}}, noon())
	if got, want := w.reason(reason, nil).Until, noon().Add(3*time.Minute); !got.Equal(want) {
		t.Errorf("it waits until %s, want %s", got, want)
	}
	reason.Node = "n2" // without the controller's record only this process has begun to measure
	if got := w.reason(reason, nil).Until; !got.IsZero() {
		t.Errorf("it waits until %s", got)
	}
	kept := rules.Reason{Code: rules.DetachDelayed, Volume: id, Node: "n1", Until: noon().Add(time.Minute).Unix()}
	if got, want := w.reason(kept, nil).Until, noon().Add(time.Minute); !got.Equal(want) {
		t.Errorf("it is kept until %s, want %s", got, want)
	}
}
