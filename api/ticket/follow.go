// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// A watch is silent without changes, and silent when the link is cut. So the ticket is read again this
// often while it may go unread.
const (
	looksPerUnheard  = 3
	pausesPerUnheard = 10 // the largest part of that time for a pause after a failure
)

// follow looks on until the handle is over.
func (h *Handle) follow(t *v1alpha1.VolumeTicket) {
	for h.see(t) {
		next, looked := h.watch(t.ResourceVersion)
		if !looked {
			next, looked = h.lookAgain()
		}
		if !looked {
			return
		}
		t = next
	}
}

// lookAgain reads the ticket as often as it takes to get an answer; false: the handle is over.
func (h *Handle) lookAgain() (*v1alpha1.VolumeTicket, bool) {
	longest := lastPause
	if h.unheard != nil {
		longest = h.request.unheard() / pausesPerUnheard
	}
	for pause := min(firstPause, longest); ; pause = min(2*pause, longest) {
		if !sleep(h.life, pause) {
			return nil, false
		}
		if t, err := h.look(); err == nil {
			return t, true
		}
	}
}

// look reads the ticket; nil: it is gone.
func (h *Handle) look() (*v1alpha1.VolumeTicket, error) {
	ctx, cancel := context.WithTimeout(h.life, h.request.unheard()/looksPerUnheard)
	defer cancel()
	began := time.Now()
	t, err := h.client.api.VolumeTickets(h.request.Namespace).Get(ctx, h.request.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t, err = nil, nil
	}
	if err == nil && h.unheard != nil {
		h.unheard.Reset(time.Until(began.Add(h.request.unheard())))
	}
	if err == nil && h.unheard == nil {
		h.renewWaiting(ctx)
	}
	return t, err
}

// renewWaiting starts the TTL again when a third of it is over: while Acquire waits nothing else does.
// A failure is tried again at the next look.
func (h *Handle) renewWaiting(ctx context.Context) {
	now := time.Now()
	if h.request.TTL == 0 || now.Sub(h.renewed) < h.request.TTL/3 {
		return
	}
	if err := h.Renew(ctx); err == nil {
		h.renewed = now
	}
}

// listens ends the handle, whose ticket was just seen satisfied, when nothing is heard any more.
func (h *Handle) listens() {
	limit := h.request.unheard()
	h.unheard = time.AfterFunc(limit, func() {
		h.end(&LostError{h.name(), ReasonUnheard, fmt.Sprintf("the API server has not answered for %s: meanwhile the ticket may have been asked to yield, and others may have its volumes", limit)})
	})
}

// watch looks on from a version until the watch breaks off. It returns another version, nil where
// the ticket is gone, if it has read one meanwhile that the watch has not sent.
func (h *Handle) watch(version string) (next *v1alpha1.VolumeTicket, looked bool) {
	every := h.request.unheard() / looksPerUnheard
	ctx, cancel := context.WithCancel(h.life)
	defer cancel()
	late := time.AfterFunc(every, cancel)
	w, err := h.client.api.VolumeTickets(h.request.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, h.request.Name).String(), ResourceVersion: version,
	})
	if err != nil {
		return nil, false
	}
	defer w.Stop()
	if !late.Stop() {
		return nil, false
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-h.life.Done():
			return nil, false
		case <-tick.C:
			t, err := h.look()
			if err != nil {
				return nil, false
			}
			if t == nil || t.ResourceVersion != version {
				return t, true // what the watch sends next may be older
			}
		case e, ok := <-w.ResultChan():
			t, is := e.Object.(*v1alpha1.VolumeTicket)
			switch {
			case !ok || !is:
				return nil, false
			case e.Type == watch.Deleted:
				return nil, true
			case !h.see(t):
				return nil, false
			}
			version = t.ResourceVersion
		}
	}
}
