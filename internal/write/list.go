// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

const listPage = 500

// list reads all objects of a kind consistently, once for all simultaneous requests. The answer has the
// objects that may be of the request's volume, or all without one.
func (e *Executor) list(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	namespace := r.Key
	r.Key = r.Object.String() // shared by the requests
	switch r.Object {
	case protocol.Claims:
		r.Key += " " + namespace
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, e.config.Turn, batch, e.claimsPage(namespace), claimOf) // a caller waits for it
		})
	case protocol.Tickets:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, e.config.Background, batch, e.ticketsPage, ticketOf)
		})
	case protocol.Holds:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, e.config.Background, batch, e.holdsPage, holdOf)
		})
	case protocol.PersistentVolumes:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, e.config.Background, batch, e.volumesPage, volumeOf)
		})
	case protocol.Attachments:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			names := namesAt{volumes: volumesOf(batch), known: map[ledger.NodeName]map[string]ledger.VolumeID{}}
			answerAll(ctx, e, e.config.Background, batch, e.attachmentsPage, names.attachmentOf)
		})
	case protocol.Nodes:
		return e.share(ctx, &e.scans, r, func(ctx context.Context, _ ledger.NodeName, batch []*shared) {
			answerAll(ctx, e, e.config.Background, batch, e.nodesPage, nodeOf)
		})
	default:
		err := fmt.Errorf("%w: nobody knows how to list %s", errNotSent, r.Object)
		return answerOf(r, err), err
	}
}

// answerAll lists once, each page in its turn, and answers each request with its volume's objects. of
// returns an object's fact and volume.
func answerAll[T any, O interface {
	*T
	runtime.Object
}](ctx context.Context, e *Executor, turn func(context.Context) error, batch []*shared, page func(context.Context, metav1.ListOptions) ([]T, string, error), of func(O) (ledger.Event, ledger.VolumeID)) {
	all := newFindings(volumesOf(batch))
	options := metav1.ListOptions{Limit: listPage}
	type part struct {
		items []T
		next  string
	}
	for {
		read, err := callIn(ctx, e, turn, until(batch), func(ctx context.Context) (part, error) {
			items, next, err := page(ctx, options)
			return part{items, next}, err
		})
		if err != nil {
			err = fmt.Errorf("list %s: %w", batch[0].request.Key, err)
			for _, item := range batch {
				item.deliver(answerOf(item.request, err), err)
			}
			return
		}
		for i := range read.items {
			if all.add(of(&read.items[i])) {
				e.config.Observer.Saw(O(&read.items[i]))
			}
		}
		if options.Continue = read.next; options.Continue == "" {
			break
		}
	}
	for k, item := range batch {
		item.deliver(answerOf(item.request, nil, all.facts[k]...), nil)
	}
}

type findings struct {
	facts  [][]ledger.Event
	asking map[ledger.VolumeID][]int // the zero volume: about all
}

func newFindings(volumes []ledger.VolumeID) findings {
	f := findings{make([][]ledger.Event, len(volumes)), map[ledger.VolumeID][]int{}}
	for i, v := range volumes {
		f.asking[v] = append(f.asking[v], i)
	}
	return f
}

// add returns whether there is a request.
func (f findings) add(fact ledger.Event, volume ledger.VolumeID) bool {
	who := f.asking[ledger.VolumeID{}]
	if !volume.IsZero() {
		who = slices.Concat(who, f.asking[volume])
	}
	for _, i := range who {
		f.facts[i] = append(f.facts[i], fact)
	}
	return len(who) > 0
}

func volumesOf(batch []*shared) []ledger.VolumeID {
	list := make([]ledger.VolumeID, len(batch))
	for i, item := range batch {
		list[i] = item.request.Volume
	}
	return list
}

func ticketOf(t *v1alpha1.VolumeTicket) (ledger.Event, ledger.VolumeID) {
	return ticketFact(t), ledger.VolumeID{}
}

func (e *Executor) ticketsPage(ctx context.Context, options metav1.ListOptions) ([]v1alpha1.VolumeTicket, string, error) {
	list, err := e.config.Moorage.VolumeTickets(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func claimOf(c *corev1.PersistentVolumeClaim) (ledger.Event, ledger.VolumeID) {
	return convert.Claim(c), ledger.VolumeID{}
}

func (e *Executor) claimsPage(namespace string) func(context.Context, metav1.ListOptions) ([]corev1.PersistentVolumeClaim, string, error) {
	return func(ctx context.Context, options metav1.ListOptions) ([]corev1.PersistentVolumeClaim, string, error) {
		list, err := e.config.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}
}

func nodeOf(n *corev1.Node) (ledger.Event, ledger.VolumeID) {
	return convert.Node(n), ledger.VolumeID{}
}

func (e *Executor) nodesPage(ctx context.Context, options metav1.ListOptions) ([]corev1.Node, string, error) {
	list, err := e.config.Kube.CoreV1().Nodes().List(ctx, options)
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

func holdOf(object *v1alpha1.VolumeHold) (ledger.Event, ledger.VolumeID) {
	hold := convert.Hold(object)
	return hold, hold.Volume
}

func (e *Executor) volumesPage(ctx context.Context, options metav1.ListOptions) ([]corev1.PersistentVolume, string, error) {
	list, err := e.config.Kube.CoreV1().PersistentVolumes().List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

func volumeOf(object *corev1.PersistentVolume) (ledger.Event, ledger.VolumeID) {
	pv, _ := convert.PersistentVolume(object) // a broken source: of no volume
	return pv, pv.Volume
}

func (e *Executor) attachmentsPage(ctx context.Context, options metav1.ListOptions) ([]storagev1.VolumeAttachment, string, error) {
	list, err := e.config.Kube.StorageV1().VolumeAttachments().List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.Continue, nil
}

// namesAt are the names of some volumes' VolumeAttachments, computed once per node.
type namesAt struct {
	volumes []ledger.VolumeID
	known   map[ledger.NodeName]map[string]ledger.VolumeID
}

func (n namesAt) attachmentOf(object *storagev1.VolumeAttachment) (ledger.Event, ledger.VolumeID) {
	a, _ := convert.Attachment(object) // one with a broken source still has its name
	names := n.known[a.Node]
	if names == nil {
		names = map[string]ledger.VolumeID{}
		for _, v := range n.volumes {
			names[ledger.AttachmentName(v, a.Node)] = v
		}
		n.known[a.Node] = names
	}
	if v := names[a.Name]; v.Driver == a.Driver {
		return a, v
	}
	return a, ledger.VolumeID{}
}
