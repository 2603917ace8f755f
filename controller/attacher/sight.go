// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

// Reconcile compares every attachment with where the driver says its volumes
// are.
func (e *engine) Reconcile(ctx context.Context) error {
	asOf := e.now()
	published, err := e.config.Backend.List(ctx)
	if err != nil {
		return fmt.Errorf("list the driver's volumes: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	accounted := 0
	var touched []decide.VolumeID
	for _, va := range e.store.attachments {
		there, ok := e.publishedFor(va, published)
		if !ok {
			continue
		}
		if there {
			accounted++
		}
		if there != va.Status.Attached && va.DeletionTimestamp == nil {
			klog.FromContext(e.ctx).Info("The driver and the VolumeAttachment disagree", "VolumeAttachment", va.Name,
				"attached", va.Status.Attached, "published", there)
		}
		touched = append(touched, e.book.Sighted(string(va.UID), there, asOf)...)
	}
	e.unaccounted = max(count(published)-accounted, 0)
	if e.unaccounted > 0 {
		klog.FromContext(e.ctx).V(2).Info("The driver has volumes published that no VolumeAttachment accounts for", "number", e.unaccounted)
	}
	slices.Sort(touched)
	e.look(slices.Compact(touched)...)
	return nil
}

// publishedFor says whether the driver lists an attachment's volume at the
// attachment's node; not ok if that can't be told.
func (e *engine) publishedFor(va *storagev1.VolumeAttachment, published map[string][]string) (there, ok bool) {
	a, ok := e.read(va)
	if !ok || a.Volume == "" {
		return false, false
	}
	nodeID := a.NodeID
	if nodeID == "" {
		nodeID = a.TargetID
	}
	handle, err := e.config.Reader.ListedHandle(e.calls[a.UID], nodeID)
	if err != nil || nodeID == "" {
		return false, false
	}
	return slices.Contains(published[handle], nodeID), true
}

func count(published map[string][]string) int {
	n := 0
	for _, nodes := range published {
		n += len(nodes)
	}
	return n
}
