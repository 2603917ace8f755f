// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The controller's count is written in steps.
func TestTimeLeftIsTheControllers(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	for name, test := range map[string]struct {
		ttl, written int64
		made         time.Duration // ago
		renewed      time.Duration // ago; 0: never
		seen         bool          // the renewal is in its status
		want         string
	}{
		"not written yet":                 {ttl: 3600, made: 5 * time.Minute, want: "in about 55m"},
		"behind the clock":                {ttl: 600, written: 300, made: 30 * time.Minute, want: "in about 4m"},
		"over by the clock alone":         {ttl: 600, written: 540, made: 11 * time.Minute, want: "any moment"},
		"written a moment ago":            {ttl: 3600, written: 1440, made: 1450 * time.Second, want: "in about 35m"},
		"another clock than the writer's": {ttl: 3600, written: 360, made: 350 * time.Second, want: "in about 54m"},
		"renewed":                         {ttl: 3600, written: 3000, made: time.Hour, renewed: time.Minute, want: "in about 59m"},
		"renewed, and counted":            {ttl: 3600, written: 720, made: 5 * time.Hour, renewed: 14 * time.Minute, seen: true, want: "in about 46m"},
	} {
		ticket := &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", CreationTimestamp: metav1.NewTime(ago(test.made))},
			Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketBackup, TTLSeconds: &test.ttl},
			Status:     v1alpha1.VolumeTicketStatus{TTLElapsedSeconds: test.written},
		}
		if test.renewed > 0 {
			at := ago(test.renewed).Format(time.RFC3339Nano)
			ticket.Annotations = map[string]string{v1alpha1.AnnotationRenewed: at}
			if test.seen {
				ticket.Status.Renewed = at
			}
		}
		if got := endsIn(timeLeft(ticket, noon())); got != test.want {
			t.Errorf("%s: it ends %q, want %q", name, got, test.want)
		}
	}
}
