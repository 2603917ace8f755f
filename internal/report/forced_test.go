// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A single event for any number of leaders. Without a VolumeAttachment, another outage is another event.
func TestForcedDetachIsToldOnce(t *testing.T) {
	server := apitest.Start(t)
	v, other := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "d", Handle: "i"}
	of := func(node, attachment, nodeUID string, since int64) ledger.Fence {
		return ledger.Fence{Node: ledger.NodeName(node), Attachment: attachment, NodeUID: nodeUID, Since: since, Rule: rules.AfterPodGone}
	}
	for i, step := range []struct {
		v    ledger.VolumeID
		f    ledger.Fence
		news bool
	}{
		{v, of("n1", "a", "u", 1), true},
		{v, of("n1", "a", "u", 1), false},
		{v, of("n1", "a", "u", 2), false},
		{v, of("n1", "b", "u", 1), true},
		{v, of("n2", "a", "u", 1), true},
		{other, of("n1", "a", "u", 1), true},
		{v, of("n1", "", "u", 1), true},
		{v, of("n1", "", "u", 2), true},
		{v, of("n1", "", "w", 2), true},
		{v, of("n1", "", "w", 2), false},
	} {
		leader := report.NewEvents(t.Context(), server.Kube)
		if news := leader.ForcedDetach(t.Context(), step.v, step.f); news != step.news {
			t.Errorf("step %d is news: %t", i, news)
		}
	}
	list, err := server.Kube.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 7 {
		t.Errorf("%d events", len(list.Items))
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name == "" || e.Reason != "ForcedDetach" || e.Type != corev1.EventTypeWarning || e.Message == "" || e.Count != 1 || e.LastTimestamp.IsZero() {
			t.Errorf("event %+v", e)
		}
	}
}

// Otherwise the next leader would count it again, or miss it.
func TestForcedDetachIsToldAtTheEndOfATerm(t *testing.T) {
	server := apitest.Start(t)
	ctx, end := context.WithCancel(t.Context())
	leader := report.NewEvents(ctx, server.Kube)
	end()
	f := ledger.Fence{Node: "n1", Attachment: "a", Rule: rules.OutOfService}
	leader.ForcedDetach(ctx, ledger.VolumeID{Driver: "d", Handle: "h"}, f)
	list, err := server.Kube.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d events, want 1 (%v)", len(list.Items), err)
	}
}
