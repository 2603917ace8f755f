// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// The arbiter stops forgeries that the API server lets pass.
func forgeries() []attempt {
	const granted = `{"status":{"conditions":[{"type":"Granted","status":"True","reason":"Granted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	return []attempt{
		{wildcard(), "a forged grant", byTickets, forgeStatus(granted)},
		{wildcard(), "a forged epoch", byTickets, forgeStatus(`{"status":{"epoch":4611686018427387904}}`)},
		{wildcard(), "a grant of another's volume", byTickets, forgeStatus(`{"status":{"volumes":[{"claim":"nothing","driver":"disk.example.com","volumeHandle":"x"}]}}`)},
		{wildcard(), "a ticket for a claim without a volume", "the arbiter: " + string(rules.ClaimUnbound), ticketForPaper},
		{wildcard(), "a claim that says it is bound to another's volume", "the arbiter: " + string(rules.ClaimLost), ticketForTheft},
	}
}

func forgeStatus(patch string) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		err := s.admin.make(ctx, s.ticket("forged", v1alpha1.TicketManual, "nothing"))
		if err != nil {
			return err
		}
		defer s.end(ctx, "forged")
		_, err = c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).Patch(ctx, "forged", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
}

func (s *Scene) end(ctx context.Context, ticket string) {
	_ = s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).Delete(ctx, ticket, metav1.DeleteOptions{}) // the namespace ends it otherwise
}

func ticketForPaper(ctx context.Context, s *Scene, c clients) error {
	claim := sandbox.Claim("paper", corev1.ReadWriteOnce)
	claim.Spec.StorageClassName = new("moorage-attack-nothing")
	if _, err := c.kube.CoreV1().PersistentVolumeClaims(s.Own).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.make(ctx, s.ticket("paper", v1alpha1.TicketManual, "paper")); err != nil {
		return err
	}
	defer s.end(ctx, "paper")
	return s.refused(ctx, "paper")
}

func ticketForTheft(ctx context.Context, s *Scene, c clients) error {
	claims := c.kube.CoreV1().PersistentVolumeClaims(s.Own)
	claim := sandbox.Claim("theft", corev1.ReadWriteOnce)
	claim.Spec.VolumeName = s.victimVolume
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	if _, err := claims.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.make(ctx, s.ticket("theft", v1alpha1.TicketManual, "theft")); err != nil {
		return err
	}
	defer s.end(ctx, "theft")
	for range 20 { // the volume controller says otherwise, again and again
		if _, err := claims.Patch(ctx, "theft", types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	if err := s.refused(ctx, "theft"); err != nil {
		return err
	}
	return nil
}

func (s *Scene) refused(ctx context.Context, name string) error {
	var found outcome
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		o, err := s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var ticket v1alpha1.VolumeTicket
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ticket); err != nil {
			return false, err
		}
		granted := meta.FindStatusCondition(ticket.Status.Conditions, v1alpha1.TicketGranted)
		switch {
		case granted == nil:
			return false, nil
		case granted.Status == metav1.ConditionTrue:
			found = "nothing: it is granted"
		default:
			found = outcome("the arbiter: " + granted.Reason)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("ticket %s has no answer: %w", name, err)
	}
	return found
}

// It looks like Moorage's ticket for an operation, and a finalizer keeps it.
func keptTicket(ctx context.Context, s *Scene, c clients) error {
	ticket := s.ticket("kept", v1alpha1.TicketManual, "data")
	ticket.SetLabels(map[string]string{v1alpha1.LabelOperation: "Snapshot", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
	ticket.SetFinalizers([]string{"attack.example.com/stay"})
	if err := c.make(ctx, ticket); err != nil {
		return err
	}
	tickets := s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own)
	if err := tickets.Delete(ctx, "kept", metav1.DeleteOptions{}); err != nil {
		return err
	}
	working := s.works(ctx)
	_, err := tickets.Patch(ctx, "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return working
}

func endTickets(ctx context.Context, s *Scene, c clients) error {
	return c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}
