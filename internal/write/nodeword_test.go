// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/apitest"
)

func TestAskNode(t *testing.T) {
	w := start(t, func(s *apitest.Server) {
		withUser(s)
		s.Put("nodemountreports", &v1alpha1.NodeMountReport{
			ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Spec:       v1alpha1.NodeMountReportSpec{Look: 3}, Status: v1alpha1.NodeMountReportStatus{Looked: 3, BootID: "b"},
		})
	}, nil)
	must(t, w.Do(t.Context(), creation()))
	va := w.place().Own()
	w.observer.Apply(ledger.Unreported{Volume: data, Node: "n1", UID: va.UID, Version: va.Version})
	var was v1alpha1.NodeMountReport
	if !w.server.Get("nodemountreports", "", "n1", &was) {
		t.Fatal("there is no NodeMountReport")
	}
	step := w.step(rules.AskNode)
	step.Word = convert.NodeWord(&was)
	old := step
	old.Word.Version = "1"
	if err := w.Do(t.Context(), old); !errors.Is(err, protocol.ErrStale) {
		t.Errorf("at another version: %v", err)
	}
	must(t, w.Do(t.Context(), step))
	var is v1alpha1.NodeMountReport
	w.server.Get("nodemountreports", "", "n1", &is)
	if is.Spec.Look != 4 || is.Status.Looked != 3 || is.Status.BootID != "b" {
		t.Errorf("it asks with %d, and the status is %+v", is.Spec.Look, is.Status)
	}
	if got := w.place().Proof.Look; got != 4 {
		t.Errorf("the ledger has %d", got)
	}
}
