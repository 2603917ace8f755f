// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// listPage is how many objects are read at a time.
const listPage = 500

// list reads all objects of a kind consistently, for all that ask for that kind at the
// same time: where many volumes go at once, that is one list and not one for each. The
// answer has what may be of the request's volume, or everything where it names none.
func (e *Executor) list(ctx context.Context, r flow.Request) (flow.Answer, error) {
	r.Key = r.Kind.String() // what requests share
	switch r.Kind {
	case flow.Tickets:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, batch, e.ticketsPage, ofNoVolume(ticketFact))
		})
	case flow.Holds:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, batch, e.holdsPage, holdOf)
		})
	case flow.PersistentVolumes:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, batch, e.volumesPage, volumeOf)
		})
	case flow.Attachments:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, batch, e.attachmentsPage, attachmentOf)
		})
	case flow.Pods:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, batch, e.unboundPage, ofNoVolume(podFact))
		})
	default:
		err := fmt.Errorf("%w: nobody knows how to list %s", errNotSent, r.Kind)
		return answerOf(r, err), err
	}
}

// answerAll lists once, and answers each of a batch with what is of its volume.
func answerAll[T any, O interface {
	*T
	runtime.Object
}](ctx context.Context, e *Executor, batch []*shared, page func(context.Context, metav1.ListOptions) ([]T, string, error), of func(O, ledger.VolumeID) (ledger.Event, bool)) {
	facts := make([][]ledger.Event, len(batch))
	options := metav1.ListOptions{Limit: listPage}
	type part struct {
		items []T
		next  string
	}
	for {
		read, err := callIn(ctx, e, e.config.Background, until(batch), func(ctx context.Context) (part, error) {
			items, next, err := page(ctx, options)
			return part{items, next}, err
		})
		if err != nil {
			err = fmt.Errorf("list %s: %w", batch[0].request.Kind, err)
			for _, item := range batch {
				item.deliver(answerOf(item.request, err), err)
			}
			return
		}
		for i := range read.items {
			for k, item := range batch {
				if fact, is := of(&read.items[i], item.request.Volume); is || item.request.Volume.IsZero() {
					e.config.Observer.Saw(O(&read.items[i]))
					facts[k] = append(facts[k], fact)
				}
			}
		}
		if options.Continue = read.next; options.Continue == "" {
			break
		}
	}
	for k, item := range batch {
		item.deliver(answerOf(item.request, nil, facts[k]...), nil)
	}
}

// ofNoVolume is for objects that are of no one volume.
func ofNoVolume[O any](fact func(O) ledger.Event) func(O, ledger.VolumeID) (ledger.Event, bool) {
	return func(object O, _ ledger.VolumeID) (ledger.Event, bool) { return fact(object), false }
}

func (e *Executor) ticketsPage(ctx context.Context, options metav1.ListOptions) ([]v1alpha1.VolumeTicket, string, error) {
	list, err := e.config.Moorage.VolumeTickets(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

// unboundPage reads pods without a node: of those that have one, a take-over wants nothing.
func (e *Executor) unboundPage(ctx context.Context, options metav1.ListOptions) ([]corev1.Pod, string, error) {
	options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "").String()
	list, err := e.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func (e *Executor) holdsPage(ctx context.Context, options metav1.ListOptions) ([]v1alpha1.VolumeHold, string, error) {
	list, err := e.config.Moorage.VolumeHolds().List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func holdOf(object *v1alpha1.VolumeHold, v ledger.VolumeID) (ledger.Event, bool) {
	hold := translate.Hold(object)
	return hold, hold.Volume == v
}

func (e *Executor) volumesPage(ctx context.Context, options metav1.ListOptions) ([]corev1.PersistentVolume, string, error) {
	list, err := e.config.Kube.CoreV1().PersistentVolumes().List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func volumeOf(object *corev1.PersistentVolume, v ledger.VolumeID) (ledger.Event, bool) {
	pv, _ := translate.PersistentVolume(object) // one with a broken source is of no volume
	return pv, pv.Volume == v
}

func (e *Executor) attachmentsPage(ctx context.Context, options metav1.ListOptions) ([]storagev1.VolumeAttachment, string, error) {
	list, err := e.config.Kube.StorageV1().VolumeAttachments().List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func attachmentOf(object *storagev1.VolumeAttachment, v ledger.VolumeID) (ledger.Event, bool) {
	a, _ := translate.Attachment(object) // one with a broken source still has its name
	return a, a.Driver == v.Driver && a.Name == ledger.AttachmentName(v, a.Node)
}
