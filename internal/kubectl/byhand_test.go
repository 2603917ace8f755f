// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func grantedTicket(ns, name string, kind v1alpha1.TicketType, node, claim string, more ...metav1.Condition) *v1alpha1.VolumeTicket {
	yes := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
	}
	return &v1alpha1.VolumeTicket{TypeMeta: metav1.TypeMeta{APIVersion: "moorage.dev/v1alpha1", Kind: "VolumeTicket"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "uid-of-it"},
		Spec:       v1alpha1.VolumeTicketSpec{Type: kind, NodeName: node, Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}}, TTLSeconds: new(int64(3600))},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: append([]metav1.Condition{yes(v1alpha1.TicketGranted), yes(v1alpha1.TicketSatisfied)}, more...)}}
}

func TestTicketsWhileTheControllerIsDown(t *testing.T) {
	server, now := load(t, "testdata/ticket-controller-down")
	server.Put("volumetickets", grantedTicket("shop", "asked", v1alpha1.TicketBackup, "worker-1", "used", metav1.Condition{Type: v1alpha1.TicketYielding, Status: metav1.ConditionTrue, Reason: "Outranked",
		Message: "let go by 2026-03-01T12:05:00Z: pod shop/used needs it", LastTransitionTime: metav1.NewTime(now.Add(-10 * time.Second))}))
	has := grantedTicket("shop", "has", v1alpha1.TicketBackup, "worker-1", "used")
	has.UID = "another"
	server.Put("volumetickets", has)
	for name, says := range map[string]string{"asked": "let go by", "has": "moorage-controller is down: until it is back nobody ends the ticket"} {
		if out, errors, code := run(t.Context(), server, now, "ticket", "explain", name, "-n", "shop"); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errors)
		}
	}
}

// drain --dry-run is about pods, drain-plan about the node with a ticket's volume.
func TestDrainPlanAndDryRunBesideATicket(t *testing.T) {
	server, now := load(t, "testdata/ticket-told")
	server.Put("volumetickets", grantedTicket("shop", "stays", v1alpha1.TicketManual, "worker-1", "data"))
	for code, args := range map[int][]string{2: {"drain-plan", "worker-1"}, 0: {"drain", "worker-1", "--dry-run", "--ignore-tickets"}} {
		if out, errors, got := run(t.Context(), server, now, args...); got != code {
			t.Errorf("%v: exit code %d: %s%s", args, got, out, errors)
		}
	}
}

func TestForbiddenByAQuota(t *testing.T) {
	for message, names := range map[string]bool{"exceeded quota: q": false, `User "u" cannot create resource "volumetickets"`: true} {
		server, now := load(t, "testdata/ticket-told")
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Verb == "create" && r.Resource == "volumetickets" {
				return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: r.Resource}, "q", errors.New(message))
			}
			serve()
			return nil
		})
		_, said, code := run(t.Context(), server, now, "ticket", "make", "q", "-n", "shop", "--type", "Backup", "--node", "worker-2", "--claim", "data", "--wait=false")
		if code != 1 || strings.Contains(said, "auth can-i") != names {
			t.Errorf("%s: exit code %d: %s", message, code, said)
		}
	}
}
