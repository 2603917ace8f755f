// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

func split(key string) (namespace, name string) {
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

// get reads the present object. A missing object is no error.
func (e *Executor) get(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	var answer protocol.Answer
	var err error
	namespace, name := split(r.Key)
	switch core := e.config.Kube.CoreV1(); r.Object {
	case protocol.Nodes:
		answer, err = e.share(ctx, &e.looks, r, e.getNode)
	case protocol.Attachments:
		answer, err = ask(ctx, e, r, attachmentFact, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
			return e.config.Kube.StorageV1().VolumeAttachments().Get(ctx, r.Key, metav1.GetOptions{})
		})
	case protocol.PersistentVolumes:
		answer, err = ask(ctx, e, r, volumeFact, func(ctx context.Context) (*corev1.PersistentVolume, error) {
			return core.PersistentVolumes().Get(ctx, r.Key, metav1.GetOptions{})
		})
	case protocol.Claims:
		answer, err = ask(ctx, e, r, func(c *corev1.PersistentVolumeClaim) ledger.Event { return convert.Claim(c) }, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
			return core.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		})
	case protocol.Holds:
		answer, err = ask(ctx, e, r, holdFact, func(ctx context.Context) (*v1alpha1.VolumeHold, error) {
			return e.config.Moorage.VolumeHolds().Get(ctx, v1alpha1.VolumeHoldName(r.Volume.Driver, r.Volume.Handle), metav1.GetOptions{})
		})
	case protocol.Tickets:
		answer, err = ask(ctx, e, r, ticketFact, func(ctx context.Context) (*v1alpha1.VolumeTicket, error) {
			return e.config.Moorage.VolumeTickets(namespace).Get(ctx, name, metav1.GetOptions{})
		})
	case protocol.NodeWords:
		answer, err = ask(ctx, e, r, wordFact, func(ctx context.Context) (*v1alpha1.NodeMountReport, error) {
			return e.config.Moorage.NodeMountReports().Get(ctx, r.Key, metav1.GetOptions{})
		})
	default:
		err = fmt.Errorf("%w: nobody knows how to read %s", errNotSent, r.Object)
		answer = answerOf(r, err)
	}
	switch {
	case apierrors.IsNotFound(err):
		return answer, nil
	case err != nil:
		return answer, fmt.Errorf("read %s %s: %w", r.Object, r.Key, err)
	}
	return answer, nil
}

func attachmentFact(a *storagev1.VolumeAttachment) ledger.Event {
	fact, _ := convert.Attachment(a) // a broken source is left out
	return fact
}

func volumeFact(pv *corev1.PersistentVolume) ledger.Event {
	fact, _ := convert.PersistentVolume(pv) // a broken source: of no volume
	return fact
}

func holdFact(h *v1alpha1.VolumeHold) ledger.Event { return convert.Hold(h) }

func wordFact(n *v1alpha1.NodeMountReport) ledger.Event { return convert.NodeWord(n) }

func ticketFact(t *v1alpha1.VolumeTicket) ledger.Event { return convert.Ticket(t) }
