// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

// Reconcile compares attachments with the driver's list and reports volumes without an attachment.
func (e *engine) Reconcile(ctx context.Context) error {
	asOf := e.now()
	published, err := e.config.Backend.List(ctx)
	if err != nil {
		return fmt.Errorf("list the driver's volumes: %w", err)
	}
	e.tell(ctx, e.compare(published, asOf))
	return nil
}

func (e *engine) compare(published map[string][]string, asOf time.Time) []stray {
	e.mu.Lock()
	defer e.mu.Unlock()
	accounted, at := 0, map[string]map[string]bool{}
	var touched []decide.VolumeID
	for _, va := range e.store.attachments {
		handle, nodeID, ok := e.listed(va)
		if !ok {
			continue
		}
		if at[handle] == nil {
			at[handle] = map[string]bool{}
		}
		at[handle][nodeID] = true
		there := slices.Contains(published[handle], nodeID)
		if there {
			accounted++
		}
		if there != va.Status.Attached && va.DeletionTimestamp == nil {
			klog.FromContext(e.ctx).Info("The driver and the VolumeAttachment disagree", "VolumeAttachment", va.Name,
				"attached", va.Status.Attached, "published", there)
		}
		touched = append(touched, e.tracker.Sighted(string(va.UID), there, asOf)...)
	}
	e.unaccounted = max(count(published)-accounted, 0)
	if e.unaccounted > 0 {
		klog.FromContext(e.ctx).V(2).Info("The driver has volumes published that no VolumeAttachment accounts for", "number", e.unaccounted)
	}
	slices.Sort(touched)
	e.look(slices.Compact(touched)...)
	return e.strayed(published, at)
}

// listed is the attachment's entry in the driver's list; not ok if unknown.
func (e *engine) listed(va *storagev1.VolumeAttachment) (handle, nodeID string, ok bool) {
	a, ok := e.read(va)
	if !ok || a.Volume == "" {
		return "", "", false
	}
	if nodeID = a.NodeID; nodeID == "" {
		nodeID = a.TargetID
	}
	handle, err := e.config.Reader.ListedHandle(e.calls[a.UID], nodeID)
	return handle, nodeID, err == nil && nodeID != ""
}

func count(published map[string][]string) int {
	n := 0
	for _, nodes := range published {
		n += len(nodes)
	}
	return n
}
