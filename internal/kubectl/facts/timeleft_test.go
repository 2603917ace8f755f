// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// A ticket ends by its controller's count, and not by the clock: a restarted controller goes on from the
// count in the ticket's status.
func TestTimeLeftIsTheControllers(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	for name, test := range map[string]struct {
		ttl, written int64
		made         time.Duration // ago
		renewed      time.Duration // ago; 0: never
		seen         bool          // the renewal is in its status
		leads        time.Duration // since this long; 0: not known
		down         bool
		want         string
	}{
		"as the clock has it":             {ttl: 3600, made: 5 * time.Minute, leads: time.Hour, want: "in about 55m"},
		"perhaps restarted":               {ttl: 3600, made: 5 * time.Minute, want: "in about 55m (within 1h if moorage-controller was restarted)"},
		"restarted since":                 {ttl: 3600, made: 5 * time.Minute, leads: 2 * time.Minute, want: "in about 55m (within 58m if moorage-controller was restarted)"},
		"restarted once and again":        {ttl: 600, written: 300, made: 30 * time.Minute, leads: 10 * time.Second, want: "in about 4m (within 5m if moorage-controller was restarted)"},
		"over by the clock alone":         {ttl: 600, written: 540, made: 11 * time.Minute, want: "any moment (within 1m if moorage-controller was restarted)"},
		"written a moment ago":            {ttl: 3600, written: 1440, made: 1450 * time.Second, want: "in about 35m50s"},
		"another clock than the writer's": {ttl: 3600, written: 360, made: 350 * time.Second, leads: time.Hour, want: "in about 54m"},
		"renewed":                         {ttl: 3600, written: 3000, made: time.Hour, renewed: time.Minute, leads: 2 * time.Hour, want: "in about 59m"},
		"renewed, and counted":            {ttl: 3600, written: 720, made: 5 * time.Hour, renewed: 20 * time.Minute, seen: true, leads: 2 * time.Hour, want: "in about 40m"},
		"nobody counts":                   {ttl: 600, written: 300, made: 8 * time.Minute, leads: time.Hour, down: true, want: "about 5m after moorage-controller is back"},
		"over, and nobody ends it":        {ttl: 600, written: 600, made: time.Hour, down: true, want: "as soon as moorage-controller is back"},
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
		lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: v1alpha1.ControllerName}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("x"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(noon())),
		}}
		if test.leads > 0 {
			lease.Spec.AcquireTime = new(metav1.NewMicroTime(ago(test.leads)))
		}
		if test.down {
			lease.Spec.RenewTime = new(metav1.NewMicroTime(ago(5 * time.Minute)))
		}
		w := NewWorld(Objects{Tickets: []*v1alpha1.VolumeTicket{ticket}, Leases: Leases{Components: []coordinationv1.Lease{lease}, Seen: true}}, noon())
		x, _ := w.ExplainTicket("shop", "nightly")
		if want := test.want + ", unless it is renewed, or when it is deleted"; x.Ends() != want {
			t.Errorf("%s: it ends %s, want %s", name, x.Ends(), want)
		}
	}
}
