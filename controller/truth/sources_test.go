// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func agreed(t *testing.T) *world {
	t.Helper()
	keep := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "s", Name: "keep"}, UID: "t", Version: "3", Type: ledger.TypeManual, Node: "n1",
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
	held := hold("n1")
	held.Hold.Requesters = append(held.Hold.Requesters, ledger.Requester{Ticket: true, Namespace: "s", Name: "keep", UID: "t"})
	w := start(t, rules.Arbiter{}, boundPod(), keep, held, attachment("n1", nil), reported("9"))
	w.says(true)
	return w
}

func (w *world) says(safe bool) {
	w.t.Helper()
	annotation, err := v1alpha1.VolumeStatus{UID: "p", Volumes: []v1alpha1.PodVolumeStatus{{Name: "v", Claim: "data", SafeToMount: safe}}}.Annotation()
	if err != nil {
		w.t.Fatal(err)
	}
	w.pods["s/db"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "db", UID: types.UID("p"),
		Annotations: map[string]string{v1alpha1.AnnotationVolumeStatus: annotation}}}
}

// A lone difference is reported within two rounds, and handed to its repair.
func TestEverySource(t *testing.T) {
	moved := hold("n2")
	moved.Hold.Version = "20"
	lost := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "s", Name: "keep"}, UID: "t", Version: "20", Type: ledger.TypeManual, Node: "n1",
		Phase: ledger.TicketPending, Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
	unreported := reported("20")
	unreported.Reported = nil
	for name, test := range map[string]struct {
		differs func(*world)
		code    string
		repairs string
	}{
		"volumesAttached does not name what is attached": {func(w *world) { w.see(unreported) }, StepOverdue, disk.String()},
		"volumesAttached names what is not": {func(w *world) {
			w.see(attachment("n1", func(a *ledger.Attachment) { a.Version, a.Attached = "20", false }))
		}, ReportedTooEarly, "p"},
		"there is no VolumeAttachment": {func(w *world) {
			w.see(ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "n1")})
		}, StepOverdue, disk.String()},
		"there is a second VolumeAttachment":  {func(w *world) { w.see(attachment("n2", nil)) }, AttachedTwice, disk.String()},
		"there is no VolumeHold":              {func(w *world) { w.see(ledger.HoldGone{Volume: disk}) }, StepOverdue, disk.String()},
		"the VolumeHold names another node":   {func(w *world) { w.see(moved) }, StepOverdue, disk.String()},
		"a ticket is not granted any more":    {func(w *world) { w.see(lost) }, TicketOverdue, "s/keep"},
		"the pod's annotation says otherwise": {func(w *world) { w.says(false) }, StatusDiffers, "p"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agreed(t)
			w.Round()
			w.Round()
			w.told()
			if len(w.repaired) > 0 {
				t.Fatalf("nothing differs, and it hands on %v", w.repaired)
			}
			test.differs(w)
			w.Look(disk)
			w.Round()
			w.Round()
			var codes []string
			for len(w.recorder.Events) > 0 {
				codes = append(codes, strings.Fields(<-w.recorder.Events)[1])
			}
			if !slices.Contains(codes, test.code) || !slices.Contains(w.repaired, test.repairs) {
				t.Errorf("told %v, handed on %v, want %s, and %s handed on", codes, w.repaired, test.code, test.repairs)
			}
		})
	}
}
