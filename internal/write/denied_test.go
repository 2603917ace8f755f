// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/apitest"
)

// policyDenied is kube-apiserver's answer without a reason
// (admission/plugin/policy/validating/dispatcher.go).
func policyDenied() error {
	message := "ValidatingAdmissionPolicy 'theirs' with binding 'theirs' denied request: no"
	denied := apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New(message))
	denied.ErrStatus.Reason, denied.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: message}}
	return denied
}

func webhookDenied(code int32, reason metav1.StatusReason) error {
	return webhookerrors.ToStatusErr("theirs.example.com", &metav1.Status{Code: code, Reason: reason, Message: "no"})
}

// A failed JSON Patch test (endpoints/handlers/patch.go).
func testFailed() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value /metadata/uid failed: test failed", 0, false)
}

// A denial will repeat: unlike our failed precondition, it is no reason to decide again at once.
func TestDeniedWrites(t *testing.T) {
	for name, denied := range map[string]error{
		"a policy":                          policyDenied(),
		"a webhook, as invalid":             webhookDenied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
		"a webhook, as a conflict":          webhookDenied(http.StatusConflict, metav1.StatusReasonConflict),
		"a webhook, as if nothing is there": webhookDenied(http.StatusNotFound, metav1.StatusReasonNotFound),
		"a failed test":                     testFailed(),
	} {
		for _, do := range []rules.Kind{rules.Unreport, rules.Report, rules.MarkWanted, rules.RetryAttach} {
			w := start(t, all(withNode(nil, nil), withAttachment(nil)), nil)
			writes := 0
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb != "patch" {
					serve()
					return nil
				}
				writes++
				return denied
			})
			err := w.Do(t.Context(), w.step(do))
			if stale, failed := errors.Is(err, protocol.ErrStale), name == "a failed test"; err == nil || stale != failed || writes != 1 {
				t.Errorf("%s, of %s: %d writes, error %v", name, do, writes, err)
			}
		}
	}
}

// A webhook's 404 does not make a ticket gone: its slots count.
func TestDeniedDeletionOfTicket(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "p1"}
	w := start(t, func(s *apitest.Server) { s.Put("volumetickets", ticketObject()) }, nil)
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb != "delete" {
			serve()
			return nil
		}
		return webhookDenied(http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	ticket := w.observer.Snapshot().Ticket(id)
	if ticket == nil {
		t.Fatal("the ticket is not known")
	}
	if err := w.DeleteTicket(t.Context(), ticket); err == nil || w.observer.Snapshot().Ticket(id) == nil {
		t.Errorf("error %v, and the ticket is %v", err, w.observer.Snapshot().Ticket(id))
	}
}
