// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// nodeGetter reads a Node as it is now.
type nodeGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error)
}

// unstager has the driver of a node unstage a volume. It returns nil when the driver has
// answered that nothing of it is left at the path.
type unstager interface {
	Unstage(ctx context.Context, driver, handle, path string) error
}

// removeWithin is for how long after the driver's answer the kubelet's records may be
// removed: a process that was stopped in between does not know what is mounted there by then.
const removeWithin = 5 * time.Second

// carryOut does what was written to be begun, side by side: a driver that hangs delays no
// other volume, nor a look.
func (a *agent) carryOut(ctx context.Context, begun []v1alpha1.NodeUnstage) {
	for i := range begun {
		order := begun[i]
		a.calls.Go(func() {
			result, why := a.unstage(ctx, &order)
			a.orders.ended(&order, result, why)
			klog.FromContext(ctx).Info("Carried out an order to unstage a volume", "driver", order.Driver, "handle", order.Handle, "number", order.Number, "result", result, "reason", why)
			a.metrics.unstaged(result)
			signal(a.ended)
		})
	}
}

// unstage looks once more whether nobody has the volume, and then does as the kubelet does
// that unstages it (csi_attacher.go:526, UnmountDevice).
func (a *agent) unstage(ctx context.Context, order *v1alpha1.NodeUnstage) (result v1alpha1.UnstageResult, why string) {
	if why := a.named(ctx, order); why != "" {
		return v1alpha1.UnstageRefused, why
	}
	seen, err := a.see(ctx)
	if err != nil {
		return v1alpha1.UnstageRefused, err.Error()
	}
	if why := a.orders.allowed(order, seen); why != "" {
		return v1alpha1.UnstageRefused, why
	}
	a.orders.calls(order)
	path := filepath.Join(a.config.KubeletRoot, nodevolumes.StagingPath(order.Driver, order.Handle))
	timed, cancel := context.WithTimeout(ctx, a.config.UnstageTimeout)
	defer cancel()
	if err := a.drivers.Unstage(timed, order.Driver, order.Handle, path); err != nil {
		return v1alpha1.UnstageFailed, err.Error()
	}
	if err := a.removeRecords(order, a.clock.Now()); err != nil {
		return v1alpha1.UnstageFailed, err.Error()
	}
	return v1alpha1.UnstageDone, ""
}

// named says why the Node, as the API server has it now, forbids to unstage a volume; empty:
// it does not.
func (a *agent) named(ctx context.Context, order *v1alpha1.NodeUnstage) string {
	ctx, cancel := context.WithTimeout(ctx, a.config.WriteTimeout)
	defer cancel()
	node, err := a.nodes.Get(ctx, a.node, metav1.GetOptions{})
	unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + order.Driver + "^" + order.Handle)
	switch {
	case err != nil:
		return fmt.Sprintf("the Node can't be read: %v", err)
	case node.UID != a.uid:
		return "the Node was made again since this process began"
	case node.Status.NodeInfo.BootID != order.BootID:
		return "the Node is of another boot"
	case slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == unique }):
		return "the node's volumesAttached names it again"
	}
	return ""
}

// removeRecords removes the kubelet's records of a volume that was unstaged.
func (a *agent) removeRecords(order *v1alpha1.NodeUnstage, answered time.Time) error {
	root, err := os.OpenRoot(a.config.KubeletRoot)
	if err != nil {
		return err
	}
	defer root.Close()
	table, err := os.Open(a.config.Mounts)
	if err != nil {
		return err
	}
	defer table.Close()
	mounts := nodevolumes.ReadMounts(table, a.config.KubeletRoot)
	if a.clock.Since(answered) > removeWithin {
		return fmt.Errorf("the kubelet's records were not removed within %s", removeWithin)
	}
	return nodevolumes.RemoveStaged(root, mounts, order.Driver, order.Handle)
}
