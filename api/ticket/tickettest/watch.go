// SPDX-License-Identifier: Apache-2.0

package tickettest

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Watch sends what changes after a version, which has to be given, until ctx ends.
func (k *tickets) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	k.cluster.mu.Lock()
	defer k.cluster.mu.Unlock()
	if err := k.cluster.away(ctx); err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(opts.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest("tickettest: a watch needs the version from which it goes on")
	}
	out := make(chan watch.Event)
	w := watch.NewProxyWatcher(out)
	go k.send(ctx, out, w.StopChan(), from, opts)
	return w, nil
}

func (k *tickets) send(ctx context.Context, out chan<- watch.Event, stop <-chan struct{}, from int, opts metav1.ListOptions) {
	defer close(out)
	for {
		k.cluster.mu.Lock()
		var news []watch.Event
		for _, e := range k.cluster.history {
			if e.version > from && k.selects(opts, e.Object.(*v1alpha1.VolumeTicket)) {
				news = append(news, watch.Event{Type: e.Type, Object: e.Object.DeepCopyObject()})
			}
		}
		from = k.cluster.version
		changed, failing := k.cluster.changed, k.cluster.failing
		k.cluster.mu.Unlock()
		if failing != nil {
			return
		}
		for _, e := range news {
			select {
			case out <- e:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}
