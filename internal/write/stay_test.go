// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestLiveMigrationNamesItsSource(t *testing.T) {
	w := start(t, withUser, nil)
	step := creation()
	step.Beside = "n0"
	must(t, w.Do(t.Context(), step))
	var got storagev1.VolumeAttachment
	if !w.server.Get("volumeattachments", "", step.Attachment, &got) || got.Annotations[v1alpha1.AnnotationBeside] != "n0" {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// A note is known at once: it is not written again.
func TestMarkWanted(t *testing.T) {
	w := start(t, withUser, nil)
	must(t, w.Do(t.Context(), creation()))
	step := w.step(rules.MarkWanted)
	step.Who = "default/db"
	other := step
	other.UID = "00000000-0000-0000-0000-00000000dead"
	if err := w.Do(t.Context(), other); !errors.Is(err, protocol.ErrStale) {
		t.Errorf("another object of the name: %v", err)
	}
	must(t, w.Do(t.Context(), step))
	var got storagev1.VolumeAttachment
	if !w.server.Get("volumeattachments", "", step.Attachment, &got) || got.Annotations[v1alpha1.AnnotationWanted] != "default/db" {
		t.Errorf("annotations %v", got.Annotations)
	}
	if va := w.place().Own(); va == nil || !va.Wanted {
		t.Errorf("the ledger has %+v", va)
	}
}

// The ledger knows the retry at once; the attachment does not count as confirmed.
func TestRetryAttach(t *testing.T) {
	w := start(t, withUser, nil)
	must(t, w.Do(t.Context(), creation()))
	step := w.step(rules.RetryAttach)
	must(t, w.Do(t.Context(), step))
	if va := w.place().Own(); va == nil || !va.Confirmed || va.Wanted || va.Version == step.Version {
		t.Errorf("the ledger has %+v", va)
	}
}
